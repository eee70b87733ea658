package slurm_test

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/hostlist"
)

func gates(l *live) {
	id := job(l.submit("alice", sleeper, "--gres=gpu:1", "--begin=now+2hours"))
	dead := job(l.submit("alice", sleeper, "--gres=gpu:1", "--begin=now+1minute", "-t5", "--deadline=now+20minutes"))
	if out, err := l.slurm.Sbatch(l.Context(), "alice", sleeper, "--gres=gpu:1", "-t10", "--deadline=now+5minutes"); err == nil {
		l.Errorf("Slurm takes a job that cannot be done by its deadline: %s", out)
	}
	runs := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(runs, "running", in(cluster.Running))
	s := l.see()
	until := in1h()
	gate := func(id cluster.JobID) cluster.Action {
		j, _ := find(s, id)
		a := act(cluster.Gate, j)
		a.Until = until
		return a
	}
	// Slurm closes the connection after each refusal; the gates behind it are shut too.
	out := l.client.Apply(l.Context(), []cluster.Action{gate(runs), gate(id), {Verb: cluster.Gate, ID: job(999999), Record: 999999, Until: until}, gate(dead)})
	if !out[0].Skipped || !out[1].OK || !out[2].Skipped || !out[3].OK {
		l.Errorf("outcomes: %+v", out)
	}
	s = l.see()
	if j, _ := find(s, id); j.Eligible != until {
		l.Errorf("gate at %v; want %v", j.Eligible, until)
	}
	if j, _ := find(s, dead); j.Eligible.Sub(s.Now) > 16*cluster.Minute || j.Eligible.Sub(s.Now) < 13*cluster.Minute {
		l.Errorf("the gate of a job with a deadline in 20 minutes and 5 to run stands %v ahead", j.Eligible.Sub(s.Now))
	}
	// Repeating it does no harm; opening starts the job at once.
	l.apply(gate(id))
	began := time.Now()
	l.apply(act(cluster.Open, l.until(id, "waiting", in(cluster.Waiting))))
	l.until(id, "running", in(cluster.Running))
	l.Logf("open to running: %v", time.Since(began))
}

func grants(l *live) {
	id := job(l.submit("alice", sleeper, "--gres=gpu:2", "--begin=now+1hour", "-w", "v1", "-t", "600"))
	j := l.until(id, "waiting", in(cluster.Waiting))
	g := act(cluster.Grant, j)
	g.Nodes, g.Limit, g.SiteFactor = []string{"k2"}, 90*cluster.Second, 1_000_000
	began := time.Now()
	l.apply(g)
	j = l.until(id, "running", in(cluster.Running))
	l.Logf("grant to running: %v", time.Since(began))
	if len(j.Holds) != 1 || j.Holds[0].Node != "k2" || j.Holds[0].Model != "k80" || j.Limit != 2*cluster.Minute {
		l.Errorf("granted job: %+v", j)
	}
	if o := l.client.Apply(l.Context(), []cluster.Action{g}); !o[0].Skipped {
		l.Errorf("granted twice: %+v", o[0])
	}

	// A grant that cannot start because of a QOS limit is revoked, and the job restored.
	blocked := job(l.submit("alice", sleeper, "--gres=gpu:2", "--begin=now+1hour", "--qos=small", "-w", "v2"))
	j, there := find(l.see(), blocked)
	if !there {
		l.Fatal("the second job is not seen")
	}
	g = act(cluster.Grant, j)
	g.Nodes = []string{"v1"}
	l.apply(g)
	j = l.until(blocked, "blocked by its QOS", func(j cluster.Job) bool { return strings.Contains(j.PendingReason, "QOSGrpGRES") })
	if !slices.Equal(j.NodeList, []string{"v1"}) || j.Eligible > cluster.InstantOf(time.Now()) {
		l.Errorf("granted job: %+v", j)
	}
	back := act(cluster.RevokeGrant, j)
	back.Until, back.NodeList = in1h(), []string{"v2"}
	l.apply(back)
	j, _ = find(l.see(), blocked)
	if j.State != cluster.Waiting || j.Eligible != back.Until || !slices.Equal(j.NodeList, []string{"v2"}) {
		l.Errorf("taken back: %+v", j)
	}
	back.NodeList = []string{"v[1-2]"} // in Slurm's spelling
	l.apply(back)
	if j, _ = find(l.see(), blocked); !hostlist.Same(j.NodeList, []string{"v1", "v2"}) {
		l.Errorf("taken back to two nodes: %+v", j)
	}
	back.NodeList = nil
	l.apply(back)
	if j, _ = find(l.see(), blocked); len(j.NodeList) != 0 {
		l.Errorf("taken back without nodes: %+v", j)
	}
}
