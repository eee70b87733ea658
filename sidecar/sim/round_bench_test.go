package sim_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// BenchmarkRound profiles an ordinary simulated round: in the middle of a term on a full cluster
// of one model, with most jobs waiting and one new job since the last round. It reports
// nanoseconds per job.
func BenchmarkRound(b *testing.B) {
	for _, size := range []struct{ nodes, tenants, jobs int }{{64, 11, 300}, {140, 18, 2000}} {
		r := midTerm(b, size.nodes, size.tenants, size.jobs)
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"observe", func() { r.check(b, errOf(r.world.Observe(r.ctx, r.memory.Ledger.At))) }},
			{"remember", func() { r.check(b, errOf(r.remember())) }},
			{"decide", func() { engine.Decide(r.snap) }},
			{"commit", func() { r.check(b, sim.NewMemory().Commit(r.ctx, r.snap, r.plan)) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", step.name, size.jobs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					step.do()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(r.snap.Cases)), "ns/job")
			})
		}
	}
}

// round is the input of one round's steps.
type round struct {
	ctx    context.Context
	world  *simtest.World
	memory cluster.State
	seen   cluster.Observation
	snap   cluster.Snapshot
	plan   cluster.Plan
}

// midTerm makes a world and the inputs of a round in the middle of its second term.
func midTerm(b *testing.B, nodes, tenants, jobs int) *round {
	names := make([]string, tenants)
	for t := range names {
		names[t] = fmt.Sprintf("t%02d", t)
	}
	journal := sim.NewMemory()
	w := simtest.New(b, simtest.Product(), simtest.Nodes("n", "v100", nodes, 8), names...)
	w.Loop.Journal = journal
	gpus := []int{1, 1, 2, 1, 4, 1, 8, 2}
	for i := range jobs {
		w.Submit(names[i*7%tenants], 1, gpus[i%len(gpus)], 100*cluster.Hour)
	}
	w.Run(20*cluster.Minute + 70*cluster.Second) // after the rounds in which all gates are extended
	w.Submit(names[0], 1, 1, cluster.Hour)
	r := &round{ctx: context.Background(), world: w}
	var err error
	r.memory, err = journal.Open(r.ctx)
	r.check(b, err)
	r.seen, err = w.Observe(r.ctx, r.memory.Ledger.At)
	r.check(b, err)
	r.snap, err = r.remember()
	r.check(b, err)
	r.plan = engine.Decide(r.snap)
	return r
}

func (r *round) remember() (cluster.Snapshot, error) {
	return loop.Remember(r.memory, r.seen, nil, r.world.Rules, r.world.Settings)
}

func (r *round) check(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// errOf gives the error of a call, for timing it.
func errOf[T any](_ T, err error) error { return err }
