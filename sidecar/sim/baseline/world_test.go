package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

const (
	second  = cluster.Second
	minute  = cluster.Minute
	hour    = cluster.Hour
	term    = 15 * minute
	forever = 10_000 * hour
)

// world is a virtual cluster with gated jobs under one scheduler. Requeues cost nothing, so that
// results can be computed by hand.
type world struct {
	*simtest.World
	t testing.TB
}

// settings are plain: a notice of a minute and no other limits.
func settings() cluster.Settings {
	s := simtest.Paper(term)
	s.Notice, s.Signal, s.SignalTo = minute, "USR1", "steps"
	s.GateTTL = 365 * cluster.Day
	return s
}

func newWorld(t testing.TB, s baseline.Scheduler, nodes []cluster.Node, tenants ...string) *world {
	w := &world{simtest.New(t, settings(), nodes, tenants...), t}
	w.Loop.Decide = s.Decide
	w.Gate, w.Completing = w.Settings.GateTTL, 0
	return w
}

// scheduler gives a scheduler by name.
func scheduler(t testing.TB, name string, o baseline.Options) baseline.Scheduler {
	t.Helper()
	s, err := baseline.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nodes gives n nodes of so many GPUs.
func nodes(n, gpus int) []cluster.Node { return simtest.Nodes("n", "v100", n, gpus) }

// submit queues a job of a tenant.
func (w *world) submit(tenant string, gpus int, runs cluster.Span, change func(*sim.Work)) cluster.JobID {
	work := sim.Work{Name: "train", User: tenant, Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus), Runs: runs}
	if change != nil {
		change(&work)
	}
	return w.Virtual.Submit(work)
}

// spread asks for GPUs on any number of nodes.
func spread(gpus int) func(*sim.Work) {
	return func(w *sim.Work) { w.Request = cluster.Request{GPUs: gpus, CPUs: gpus, MemoryMB: int64(gpus) * 1024} }
}

// runs checks which of some jobs run now.
func (w *world) runs(what string, want map[cluster.JobID]bool) {
	w.t.Helper()
	for id, run := range want {
		if got := w.Job(id).State; (got == cluster.Running) != run {
			w.t.Errorf("%s: job %s is %s, want it to run: %v", what, id, got, run)
		}
	}
}

// started gives the last start of a job after the begin; -1 = never.
func (w *world) started(id cluster.JobID) cluster.Span {
	if start := w.Job(id).Start; start > 0 {
		return start.Sub(simtest.Start)
	}
	return -1
}

// ended gives the end of a job after the begin.
func (w *world) ended(id cluster.JobID) cluster.Span { return w.Job(id).End.Sub(simtest.Start) }

// lease gives the lease of a job after the last turn.
func (w *world) lease(id cluster.JobID) cluster.Lease {
	key := w.Record(id).Key
	for _, l := range w.Last.State.Leases {
		if l.Job == key {
			return l
		}
	}
	return cluster.Lease{}
}
