package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// onPairDivisions measures divisions with as many jobs and types in pairs as the code allows.
func onPairDivisions() error {
	l, err := pairLab()
	if err != nil {
		return err
	}
	for _, x := range []struct{ name, by string }{{"divide_pairs_1000", "gavel:las"}, {"divide_pairs_jobs_1000", "gavel:las-jobs"}} {
		q := pairRequest(l.table, x.by)
		together := 0
		took, err := least(1, func() error {
			d := engine.Divide(q)
			together = len(d.Pairs)
			if d.Why != "" {
				return errors.New(d.Why)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		if together == 0 {
			return fmt.Errorf("%s: the division knows no pairs", x.name)
		}
		fmt.Printf("%s of 1000 jobs of 16 types of a tenant, on 125 V100, 125 P100 and 125 K80, with %d pairs of types; one core\n", x.by, len(q.Pairs))
		timed(x.name+"_ms", took)
	}
	return nil
}

// pairRequest is a question with 1,000 jobs of a tenant, of 16 types of Gavel's table, and all pairs of these that are worth it.
func pairRequest(table *trace.Throughputs, by string) cluster.AllocationRequest {
	q := cluster.AllocationRequest{Policy: by}
	for _, m := range table.Models {
		q.Pools = append(q.Pools, cluster.GPUs{Model: m, Count: 125})
	}
	alone := func(of trace.Task) (out []float64) {
		for _, m := range table.Models {
			out = append(out, table.Alone(m, of, false))
		}
		return out
	}
	var kinds []trace.Task
	for _, t := range table.Tasks() {
		if t.GPUs == 1 && len(kinds) < 16 && slices.Min(alone(t)) > 0 {
			kinds = append(kinds, t)
		}
	}
	slices.SortFunc(kinds, func(a, b trace.Task) int { return cmp.Compare(a.Kind, b.Kind) })
	draw := rand.New(rand.NewPCG(1, 0))
	for i := range 1000 {
		t := kinds[draw.IntN(len(kinds))]
		q.Bids = append(q.Bids, cluster.Bid{Party: fmt.Sprintf("nlp/%04d", i), Tenant: "nlp", Job: cluster.JobKey(i + 1), Weight: 1, Milli: 1000,
			Gang: 1, Demand: 1, Type: t.Kind, Speeds: alone(t), Steps: float64(1 + draw.IntN(1_000_000))})
	}
	for k, a := range kinds {
		for _, b := range kinds[k:] {
			x, some := cluster.TypePair{A: a.Kind, B: b.Kind, PartA: make([]float64, len(q.Pools)), PartB: make([]float64, len(q.Pools))}, false
			for p, m := range table.Models {
				own, other := table.Beside(m, a, b)
				if own, other = own/alone(a)[p], other/alone(b)[p]; cluster.Together(own, other, 0.5) >= cluster.LeastTogether {
					x.PartA[p], x.PartB[p], some = own, other, true
				}
			}
			if some {
				q.Pairs = append(q.Pairs, x)
			}
		}
	}
	return q
}
