package simtest

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Scheduled is a virtual cluster with gated jobs under one scheduler. Requeues cost nothing, so that results can be computed by hand.
type Scheduled struct {
	*World
	t testing.TB
}

// Schedule makes such a cluster. Its settings are plain: a notice of a minute and no other limits.
func Schedule(t testing.TB, term cluster.Span, decide func(cluster.Snapshot) cluster.Plan, nodes []cluster.Node, tenants ...string) *Scheduled {
	s := Paper(term)
	s.Notice, s.Signal, s.SignalTo = cluster.Minute, "USR1", "steps"
	s.GateTTL = 365 * cluster.Day
	w := &Scheduled{New(t, s, nodes, tenants...), t}
	w.Loop.Decide = decide
	w.Gate, w.Completing = w.Settings.GateTTL, 0
	return w
}

// Queue submits a job of a tenant.
func (w *Scheduled) Queue(tenant string, gpus int, runs cluster.Span, change func(*sim.Work)) cluster.JobID {
	work := sim.Work{Name: "train", User: tenant, Account: tenant, Partition: "gpu", Request: Gang(gpus), Runs: runs}
	if change != nil {
		change(&work)
	}
	return w.Virtual.Submit(work)
}

// Anywhere asks for GPUs on any number of nodes.
func Anywhere(gpus int) func(*sim.Work) {
	return func(w *sim.Work) {
		w.Request = cluster.Request{Size: cluster.Whole(gpus), CPUs: gpus, MemoryMB: int64(gpus) * 1024}
	}
}

// WantRunning checks which of some jobs run now.
func (w *Scheduled) WantRunning(what string, want map[cluster.JobID]bool) {
	w.t.Helper()
	for id, run := range want {
		if got := w.Job(id).State; (got == cluster.Running) != run {
			w.t.Errorf("%s: job %s is %s, want it to run: %v", what, id, got, run)
		}
	}
}

// Started gives the last start of a job after the begin; -1 = never.
func (w *Scheduled) Started(id cluster.JobID) cluster.Span {
	if start := w.Job(id).Start; start > 0 {
		return start.Sub(Start)
	}
	return -1
}

// Ended gives the end of a job after the begin.
func (w *Scheduled) Ended(id cluster.JobID) cluster.Span { return w.Job(id).End.Sub(Start) }

// LeaseOf gives the lease of a job after the last turn.
func (w *Scheduled) LeaseOf(id cluster.JobID) cluster.Lease {
	key := w.Record(id).Key
	for _, l := range w.Last.State.Leases {
		if l.Job == key {
			return l
		}
	}
	return cluster.Lease{}
}
