package slurm_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// statePolls: with every shortcut on, a sighting equals one that was read in full.
func statePolls(l *live) {
	lazy := l.another(func(c *slurm.Config) { c.SmallList, c.Singles, c.FullEvery = -1, 50, time.Hour })
	compare := func(when string) {
		l.Helper()
		var got, want cluster.Observation
		var err error
		l.eventually(when+": both see the same", func() bool {
			if got, err = lazy.Observe(l.Context(), 0); err != nil {
				l.Fatal(err)
			}
			want = l.see()
			return cmp.Diff(told(want), told(got)) == ""
		}, func() string { return "full -, lazy +\n" + cmp.Diff(told(want), told(got)) })
	}
	a := job(l.submit("alice", sleeper, "--gres=gpu:2", "-w", "v1"))
	b := job(l.submit("bob", sleeper, "--gres=gpu:1", "--begin=now+1hour"))
	array := l.submit("carol", sleeper, "--array=0-9%4", "--gres=gpu:1", "--begin=now+1hour")
	l.until(a, "running", in(cluster.Running))
	compare("at first")
	l.eventually("a quiet look is unchanged", func() bool {
		s, err := lazy.Observe(l.Context(), 0)
		return err == nil && s.Unchanged
	}, func() string { return "always something" })
	l.exec("alice", "scancel", strconv.FormatInt(a.ID, 10))
	l.exec("root", "scontrol", "update", fmt.Sprintf("jobid=%d_3", array), "StartTime=now")
	compare("after a cancel and a task's start")
	l.exec("carol", "scancel", fmt.Sprintf("%d_5", array))
	c := job(l.submit("alice", sleeper, "--gres=gpu:1"))
	l.until(c, "running", in(cluster.Running))
	compare("after a task's cancel and a new job")
	s, err := lazy.Observe(l.Context(), 0)
	if err != nil {
		l.Fatal(err)
	}
	j, _ := find(s, b)
	g := act(cluster.Grant, j)
	g.Nodes = []string{"k2"}
	task, _ := find(s, cluster.TaskID(array, 7))
	gt := act(cluster.Grant, task)
	gt.Nodes = []string{"k2"}
	j, _ = find(s, c)
	r := act(cluster.Reclaim, j)
	r.Until = in1h()
	for i, o := range lazy.Apply(l.Context(), []cluster.Action{g, gt, r}) {
		if !o.OK {
			l.Errorf("action %d: %+v", i, o)
		}
	}
	compare("after our actions")
	l.until(b, "running", in(cluster.Running))
	compare("when they have taken effect")
}

// told gives a sighting's jobs, without what may differ between two consecutive looks and what
// Slurm forgets when a job starts.
func told(s cluster.Observation) []cluster.Job {
	jobs := slices.Clone(s.Jobs)
	for i := range jobs {
		jobs[i].PendingReason, jobs[i].Request.MaxNodes, jobs[i].Version = "", 0, 0 // versions are of one client
	}
	return jobs
}
