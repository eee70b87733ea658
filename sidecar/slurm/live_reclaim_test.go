package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func reclaims(l *live) {
	home := l.slurm.Home("alice")
	// The job receives TERM, records it and takes its time.
	script := "#!/bin/bash\ntrap 'echo heard >> " + "$HOME/heard; exit 0' TERM\nsleep 900 & wait\n"
	id := job(l.submit("alice", script, "--gres=gpu:2", "-w", "v1", "-N1"))
	j := l.runs(id)
	r := act(cluster.Reclaim, j)
	r.Until, r.NodeList = in1h(), []string{"v1"}
	l.apply(r)
	if now, _ := find(l.see(), id); now.State == cluster.Completing && (!reflect.DeepEqual(now.Holds, j.Holds) || now.Start != j.Start || now.Outcome != "") {
		l.Errorf("completing: %+v; was %+v", now, j)
	}
	j = l.until(id, "waiting", in(cluster.Waiting))
	if !l.gated(j, r) || j.Restarts != 1 || !slices.Equal(j.NodeList, []string{"v1"}) || j.Inactive != "" || j.Request.MaxNodes != 1 {
		l.Errorf("reclaimed: %+v", j)
	}
	if b, err := os.ReadFile(filepath.Join(home, "heard")); err != nil || strings.TrimSpace(string(b)) != "heard" {
		l.Errorf("heard %q, %v", b, err)
	}
	// Carried out twice it has no further effect.
	l.apply(r)
	if j, _ := find(l.see(), id); j.Restarts != 1 {
		l.Errorf("reclaimed twice: %+v", j)
	}
	// Granted again, the job is not affected by the earlier action.
	g := act(cluster.Grant, j)
	g.Nodes = []string{"v2"}
	l.apply(g)
	l.until(id, "running", in(cluster.Running))
	if o := l.client.Apply(l.Context(), []cluster.Action{r}); !o[0].Skipped {
		l.Errorf("an old reclaim: %+v", o[0])
	}

	// A job that has just ended by itself is never run again.
	flag := filepath.Join(home, "runs")
	quick := job(l.submit("alice", "#!/bin/bash\necho run >> $HOME/runs\nuntil [ -e $HOME/enough ]; do sleep 0.1; done\n", "--gres=gpu:1"))
	j = l.until(quick, "running", in(cluster.Running))
	if err := os.WriteFile(filepath.Join(home, "enough"), nil, 0o644); err != nil {
		l.Fatal(err)
	}
	r = act(cluster.Reclaim, j)
	r.Until = cluster.InstantOf(time.Now())
	l.until(quick, "done", in(cluster.Done))
	if o := l.client.Apply(l.Context(), []cluster.Action{r}); !o[0].Skipped || !strings.Contains(o[0].Error, "finished") {
		l.Errorf("reclaim of a finished job: %+v", o[0])
	}
	if b, _ := os.ReadFile(flag); strings.Count(string(b), "run") != 1 {
		l.Errorf("the finished job ran %q", b)
	}

	// A job whose owner has taken Requeue from it while it runs is requeued all the same, a suspended one too.
	for _, suspended := range []bool{false, true} {
		kept := job(l.submit("alice", sleeper, "--gres=gpu:1"))
		l.runs(kept)
		l.exec("alice", "scontrol", "update", "jobid="+kept.String(), "requeue=0")
		if suspended {
			l.exec("root", "scontrol", "suspend", kept.String())
		}
		j = l.until(kept, "not requeueable", func(j cluster.Job) bool { return !j.Requeueable && (j.State == cluster.Suspended) == suspended })
		r = act(cluster.Reclaim, j)
		r.Until = in1h()
		l.apply(r)
		if j = l.until(kept, "waiting", in(cluster.Waiting)); j.Restarts != 1 || !j.Requeueable || j.Inactive != "" {
			l.Errorf("reclaimed after its owner took Requeue from it: %+v", j)
		}
	}
}

// handOver: in one round, two GPUs of one busy node go to two beneficiaries of two accounts,
// while a third job with a high priority waits for that node.
func handOver(l *live) {
	holders := []cluster.JobID{
		job(l.submit("alice", sleeper, "--gres=gpu:2", "-w", "v1")),
		job(l.submit("alice", sleeper, "--gres=gpu:2", "-w", "v1")),
	}
	for _, id := range holders {
		l.until(id, "running", in(cluster.Running))
	}
	thief := job(l.submit("carol", sleeper, "--gres=gpu:2", "-w", "v1"))
	l.exec("root", "scontrol", "update", fmt.Sprintf("jobid=%d", thief.ID), "priority=1000000")
	beneficiaries := []cluster.JobID{
		job(l.submit("bob", sleeper, "--gres=gpu:2", "--begin=now+1hour")),
		job(l.submit("bob", sleeper, "--gres=gpu:2", "--begin=now+1hour")),
	}
	s := l.see()
	var plan []cluster.Action
	until := cluster.InstantOf(time.Now().Add(2 * time.Minute).Truncate(time.Second))
	for i, id := range beneficiaries {
		name := fmt.Sprintf("%s%d", cluster.ReservationPrefix, i)
		plan = append(plan, cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: []string{"v1"}, Accounts: []string{"vision"}, Until: until})
		j, _ := find(s, id)
		g := act(cluster.Grant, j)
		g.Nodes, g.Reservation = []string{"v1"}, name
		plan = append(plan, g)
	}
	for i, id := range holders {
		j, _ := find(s, id)
		r := act(cluster.Reclaim, j)
		r.Until, r.Reservation = in1h(), fmt.Sprintf("%s%d", cluster.ReservationPrefix, i)
		plan = append(plan, r)
	}
	began := time.Now()
	l.apply(plan...)
	l.Logf("orders took %v", time.Since(began))
	for _, id := range beneficiaries {
		l.until(id, "running", in(cluster.Running))
	}
	l.Logf("hand-over took %v", time.Since(began))
	s = l.see()
	if j, _ := find(s, thief); j.State != cluster.Waiting {
		l.Errorf("the third job got in between: %+v", j)
	}
	for _, id := range holders {
		if j, _ := find(s, id); j.State == cluster.Waiting && !l.gated(j, plan[len(plan)-1]) || j.State == cluster.Running || j.Reservation != "" {
			l.Errorf("holder: %+v", j)
		}
	}
	if len(s.Reservations) != 2 || !s.Reservations[0].Ours || s.Reservations[0].End != until || !slices.Equal(s.Reservations[0].Accounts, []string{"vision"}) {
		l.Errorf("reservations: %+v", s.Reservations)
	}
	// Extending a reservation is the same action with another end.
	again := plan[0]
	again.Until += 60_000
	l.apply(again)
	if s = l.see(); s.Reservations[0].End != again.Until {
		l.Errorf("prolonged: %+v", s.Reservations[0])
	}
	for i, id := range beneficiaries {
		j, _ := find(s, id)
		if want := fmt.Sprintf("%s%d", cluster.ReservationPrefix, i); j.Reservation != want {
			l.Errorf("beneficiary in reservation %q; want %q", j.Reservation, want)
		}
		free := act(cluster.Release, j)
		free.Reservation = j.Reservation
		l.apply(free)
		l.apply(free) // and once more
	}
	s = l.see()
	for _, id := range beneficiaries {
		if j, _ := find(s, id); j.State != cluster.Running || j.Reservation != "" {
			l.Errorf("released beneficiary: %+v", j)
		}
	}
	if len(s.Reservations) != 0 {
		l.Errorf("reservations remain: %+v", s.Reservations)
	}

	// A reservation that a waiting job names is deleted without leaving the job held.
	name := cluster.ReservationPrefix + "9"
	late := job(l.submit("bob", sleeper, "--gres=gpu:2", "--begin=now+1hour"))
	j := l.until(late, "waiting", in(cluster.Waiting))
	g := act(cluster.Grant, j)
	g.Nodes, g.Reservation = []string{"v1"}, name
	l.apply(cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: []string{"v1"}, Accounts: []string{"vision"}, Until: until}, g)
	l.until(late, "in the reservation", func(j cluster.Job) bool { return j.Reservation == name })
	gone := cluster.Action{Verb: cluster.Unreserve, Reservation: name}
	l.apply(gone, gone)
	if j, _ := find(l.see(), late); j.Reservation != "" || j.Inactive != "" || j.State != cluster.Waiting {
		l.Errorf("job of the deleted reservation: %+v", j)
	}
}
