package forecast_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// starts is when a waiting job starts: by the engine, and in a run of the forecast.
type starts struct{ engine, forecast cluster.Instant }

// kinds of drawn sites.
const (
	whole = iota // jobs have whole GPUs
	parts        // most want parts of GPUs
	turns        // most may take turns on a GPU
)

// drawn gives the starts of the jobs that wait at a drawn site. All run times are known, and no job arrives.
func drawn(t *testing.T, seed uint64, kind int) (out []starts) {
	const ahead = 2 * cluster.Day
	rng := rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "b", "c", "d", "e"}[:2+rng.IntN(4)]
	nodes := simtest.Nodes("n", "v100", 2+rng.IntN(4), 8)
	if rng.IntN(3) == 0 {
		nodes = append(nodes, simtest.Nodes("h", "h100", 1+rng.IntN(3), 8)...)
	}
	for i := range nodes {
		if kind != whole {
			nodes[i].Shards = 4
		}
	}
	set := simtest.Product()
	if kind == turns {
		set.Slices = &cluster.Slices{Quantum: cluster.Minute, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
	}
	set.Interval = 30 * cluster.Second // as in the first hours of a run
	w := simtest.New(t, set, nodes, names...)
	for _, name := range names {
		w.SetShares(name, int64(1+rng.IntN(8)))
	}
	runs, began := map[cluster.JobID]cluster.Span{}, map[cluster.JobID]cluster.Instant{}
	w.Watch = func(e sim.Event) {
		if e.What == sim.Started && began[e.Job] == 0 {
			began[e.Job] = e.At
		}
	}
	many := 8 + rng.IntN(6)
	if kind != whole {
		many *= 2
	}
	for range len(nodes) * many {
		tenant, span := names[min(rng.IntN(len(names)), rng.IntN(len(names)))], cluster.Span(5+rng.IntN(300))*cluster.Minute
		request := simtest.Gang([]int{1, 1, 1, 2, 4, 8}[rng.IntN(6)])
		comment := ""
		if most := kind != whole && rng.IntN(4) > 0; most && kind == parts {
			request = simtest.Shard(1+rng.IntN(3), 4)
		} else if most && kind == turns {
			request, comment = simtest.Gang(1), "share=yes,mem.v100=14g"
		}
		id := w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Comment: comment, Request: request, Runs: span, Saves: sim.AtEnd})
		runs[id] = span
	}
	w.Run(cluster.Span(rng.IntN(90)) * cluster.Minute)
	snap, plan, err := w.Loop.Preview(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	q := &forecast.Question{Snapshot: &snap, Plan: &plan, Runs: 1, Seed: 1, Horizon: ahead, Known: map[cluster.JobKey]cluster.Span{}, Future: []forecast.PastJob{}}
	ids := map[cluster.JobKey]cluster.JobID{}
	for i := range snap.Cases {
		r := &snap.Cases[i].Record
		q.Known[r.Key], ids[r.Key] = runs[r.ID], r.ID
	}
	f, err := forecast.Make(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	clear(began)
	w.Run(ahead)
	for _, j := range f.Jobs {
		if x := (starts{began[ids[j.Key]], j.Start.P50}); j.Waits && x.engine != 0 && x.forecast != 0 {
			out = append(out, x)
		}
	}
	return out
}

// A run has a scheduler of its own. Of two jobs whose starts are an hour apart by the engine, it starts the same one first. Jobs with parts of GPUs, or
// that take turns, start as late, beside the engine's starts, as those with whole ones.
func TestRunsStartJobsInTheEnginesOrder(t *testing.T) {
	const apart, near = cluster.Hour, 10 // percent
	late, bounds := [3]float64{}, [...]float64{whole: 0.94, parts: 0.84, turns: 0.86}
	if !seeds.Full() { // sites with turns differ much: of few, fewer pairs may be in order
		bounds[turns] = 0.76
	}
	for kind, least := range bounds {
		pairs, same, waits, off := 0, 0, cluster.Span(0), cluster.Span(0)
		for seed := range uint64(seeds.Some(8, 80)) {
			jobs := drawn(t, seed, kind)
			for i, a := range jobs {
				waits, off = waits+a.engine.Sub(simtest.Start), off+a.forecast.Sub(a.engine)
				for _, b := range jobs[:i] {
					if a.engine > b.engine {
						a, b = b, a
					}
					if b.engine.Sub(a.engine) < apart {
						continue
					}
					if pairs++; a.forecast < b.forecast {
						same++
					}
				}
			}
		}
		late[kind] = 100 * float64(off) / float64(waits)
		if part := float64(same) / float64(pairs); pairs < 500 || part < least {
			t.Errorf("kind %d: of %d pairs of jobs that start %v apart, %.3f are in the engine's order", kind, pairs, apart, part)
		} else {
			t.Logf("kind %d: %d pairs, %.3f, starts %+.1f %% late", kind, pairs, part, late[kind])
		}
	}
	if math.Abs(late[parts]-late[whole]) > near || math.Abs(late[turns]-late[whole]) > near {
		t.Errorf("starts are late by %+.1f %% with whole GPUs, %+.1f %% with parts, %+.1f %% with turns", late[whole], late[parts], late[turns])
	}
}
