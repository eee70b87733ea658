package sim_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// busy is a synthetic load like two weeks of a research cluster: 93 % of the jobs want one GPU,
// tenants of unequal size submit by Poisson processes, and most of the demand is in few long
// jobs.
type busy struct {
	seed    uint64
	jobs    int
	tenants int
	span    cluster.Span
	gpus    float64 // mean demand
}

func (b busy) tenant(i int) string { return fmt.Sprintf("t%02d", i) }

func (b busy) accounts() []cluster.Account {
	out := []cluster.Account{{Name: "root"}}
	for i := range b.tenants {
		out = append(out, cluster.Account{Name: b.tenant(i), Parent: "root", Shares: 1})
	}
	return out
}

func (b busy) arrivals() iter.Seq[sim.Arrival] {
	return func(yield func(sim.Arrival) bool) {
		rng := rand.New(rand.NewPCG(b.seed, 1))
		const meanGPUs = 1.3
		mean := b.gpus * float64(b.span) / float64(b.jobs) / meanGPUs
		at := simtest.Start
		for range b.jobs {
			at = at.Add(cluster.Span(rng.ExpFloat64() * float64(b.span) / float64(b.jobs)))
			gpus := 1
			if rng.IntN(100) >= 93 {
				gpus = []int{2, 4, 4, 8, 8}[rng.IntN(5)]
			}
			scale := 0.2 // nine of ten are short; the tenth has most of the work
			if rng.IntN(10) == 0 {
				scale = 8.2
			}
			tenant := b.tenant(min(rng.IntN(b.tenants), rng.IntN(b.tenants)))
			work := sim.Work{Name: "train", User: tenant, Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus),
				Runs: cluster.Minute + cluster.Span(rng.ExpFloat64()*scale*mean), Saves: sim.AtEnd}
			if !yield(sim.Arrival{At: at, Work: work}) {
				return
			}
		}
	}
}

// meter measures the time of every part of the loop.
type meter struct {
	*sim.Virtual
	*sim.Memory
	spent map[string]time.Duration
	turns int
	asked time.Time // end of the overrides query
}

func (m *meter) since(what string, begin time.Time) { m.spent[what] += time.Since(begin) }

func (m *meter) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	defer m.since("observe", time.Now())
	return m.Virtual.Observe(ctx, since)
}

func (m *meter) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	orders, err := m.Memory.Overrides(ctx, now)
	m.asked = time.Now()
	return orders, err
}

func (m *meter) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	defer m.since("apply", time.Now())
	return m.Virtual.Apply(ctx, actions)
}

func (m *meter) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	defer m.since("commit", time.Now())
	return m.Memory.Commit(ctx, snap, plan)
}

// open makes a cluster of nodes of 8 GPUs under the loop, configured as a simulation: nothing can
// die, so gates need no extension.
func (b busy) open(nodes int, decide func(cluster.Snapshot) cluster.Plan) (*meter, *loop.Loop) {
	v := sim.NewVirtual(simtest.Start, simtest.Nodes("n", "v100", nodes, 8), b.accounts())
	v.Costs, v.Forget, v.Lend, v.Gate = sim.DefaultCosts(), true, true, 365*cluster.Day
	m := &meter{Virtual: v, Memory: sim.NewMemory(), spent: map[string]time.Duration{}}
	m.Trust = true
	set := simtest.Product()
	set.GateTTL = v.Gate
	return m, &loop.Loop{Cluster: m, Journal: m, Decide: func(s cluster.Snapshot) cluster.Plan {
		m.since("remember", m.asked)
		defer m.since("decide", time.Now())
		m.turns++
		return decide(s)
	}, Configure: func() (loop.Rules, cluster.Settings) {
		return loop.Rules{Mode: loop.Act, Partitions: []string{"gpu"}, TenantLevel: 1}, set
	}}
}

func BenchmarkTwoWeeks(b *testing.B) {
	for _, nodes := range []int{64, 140} { // congested for weeks, and at times
		b.Run(fmt.Sprintf("%dnodes", nodes), func(b *testing.B) {
			for b.Loop() {
				load := busy{seed: 1, jobs: 22_000, tenants: 11, span: 14 * cluster.Day, gpus: 700}
				m, l := load.open(nodes, engine.Decide)
				defer m.Feed(load.arrivals())()
				begin := time.Now()
				ended := 0
				m.Watch = func(e sim.Event) {
					if e.What == sim.Ended {
						ended++
					}
				}
				if err := sim.Run(context.Background(), m.Virtual, l, 10*cluster.Second, simtest.Start.Add(365*cluster.Day), nil); err != nil {
					b.Fatal(err)
				}
				all := time.Since(begin)
				if ended != load.jobs {
					b.Fatalf("%d of %d jobs ended", ended, load.jobs)
				}
				rest := all
				for _, what := range []string{"observe", "remember", "decide", "commit", "apply"} {
					b.ReportMetric(m.spent[what].Seconds(), what+"_s")
					rest -= m.spent[what]
				}
				b.ReportMetric(rest.Seconds(), "advance_s")
				b.ReportMetric(float64(m.turns), "turns")
				b.ReportMetric(m.Now().Sub(simtest.Start).Duration().Hours()/24, "days")
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				b.ReportMetric(float64(mem.Sys)/(1<<20), "MiB")
			}
		})
	}
}

// The virtual cluster without a loop: the cost of a job that arrives, starts and ends, on a large
// cluster with space for it.
func BenchmarkVirtual(b *testing.B) {
	load := busy{seed: 1, jobs: 100_000, tenants: 100, span: 36 * cluster.Day, gpus: 6000}
	for b.Loop() {
		v := sim.NewVirtual(simtest.Start, simtest.Nodes("n", "v100", 1250, 8), load.accounts())
		v.Costs, v.Forget, v.Lend = sim.DefaultCosts(), true, true
		ended := 0
		v.Watch = func(e sim.Event) {
			if e.What == sim.Ended {
				ended++
			}
		}
		stop := v.Feed(load.arrivals())
		for !v.Drained() {
			v.Advance(v.Now().Add(cluster.Minute))
			if _, err := v.Observe(context.Background(), v.Now()); err != nil {
				b.Fatal(err)
			}
		}
		stop()
		if ended != load.jobs {
			b.Fatalf("%d of %d jobs ended", ended, load.jobs)
		}
		b.ReportMetric(float64(load.jobs), "jobs")
		var mem runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(mem.HeapAlloc)/(1<<20), "heap_MiB")
	}
}
