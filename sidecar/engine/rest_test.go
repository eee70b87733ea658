package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// rests runs a job on 4 GPUs. The newest look, of that age, shows so many of them idle for half an hour. It tells whether
// a waiting job of another tenant, with so many GPUs, gets them at the end of the term, and counts the events about it.
func rests(t *testing.T, after cluster.Span, idle int, age cluster.Span, waits int) (ran bool, events int) {
	t.Helper()
	s := simtest.Paper(15 * cluster.Minute)
	s.Threshold, s.CreditCap, s.Notice, s.MinLease, s.IdleReclaim = 10*cluster.Hour, 0, cluster.Minute, 5*cluster.Minute, after
	w := simtest.New(t, s, simtest.Nodes("n", "v100", 1, 4), "a", "b")
	first := w.Submit("a", 1, 4, 10*cluster.Hour)[0]
	w.Run(30 * cluster.Minute)
	if w.Record(first).Terms == 0 {
		t.Fatal("the job does not run")
	}
	start := w.Now().Add(-30 * cluster.Minute)
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		for i := range s.Cases {
			if c := &s.Cases[i]; c.Job.ID == first && c.Job.State == cluster.Running && c.Job.Restarts == 0 {
				s.Uses = []cluster.GPUUse{{Job: first, Model: "v100", Start: c.Job.Start, GPUs: 4, From: start, At: s.Now.Add(-age), Idle: idle, IdleSince: start}}
			}
		}
		plan := engine.Decide(s)
		for _, e := range plan.Events {
			if e.Kind == "idle_reclaim" {
				events++
			}
		}
		return plan
	}
	var next []cluster.JobID
	if waits > 0 {
		next = w.Submit("b", 1, waits, cluster.Hour)
	}
	w.Run(20 * cluster.Minute) // past the next end of a term
	return len(next) > 0 && w.Alloc(next[0]) > 0, events
}

// The lease of an idle job is not renewed while another waits for its GPUs. It is renewed if nobody waits, if some of its
// GPUs work, if nobody looked at them lately, and if the site has not asked for it.
func TestLeasesOfIdleJobs(t *testing.T) {
	for name, c := range map[string]struct {
		after  cluster.Span
		idle   int
		age    cluster.Span
		waits  int
		ran    bool
		events int
	}{
		"idle":              {20 * cluster.Minute, 4, 0, 4, true, 1},
		"idle, a small one": {20 * cluster.Minute, 4, 0, 1, true, 1},
		"nobody waits":      {20 * cluster.Minute, 4, 0, 0, false, 0},
		"one works":         {20 * cluster.Minute, 3, 0, 4, false, 0},
		"idle for less":     {2 * cluster.Hour, 4, 0, 4, false, 0},
		"not seen any more": {20 * cluster.Minute, 4, 11 * cluster.Minute, 4, false, 0},
		"not asked for":     {0, 4, 0, 4, false, 0},
	} {
		ran, events := rests(t, c.after, c.idle, c.age, c.waits)
		if ran != c.ran || events != c.events {
			t.Errorf("%s: the other ran %v, %d events; want %v, %d", name, ran, events, c.ran, c.events)
		}
	}
}
