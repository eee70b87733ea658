package answer

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Halves returns a question with two pools in place of each on which gangs are slower on more nodes than they need: the GPUs on which they can have
// their fewest nodes, and the rest, at the speed on more nodes (Gavel §3.1: two worker types). of is the pool of each; nil = the question stays as it is.
// It answers the same as a bound on the gangs that are on their fewest nodes: whichever runs on those GPUs is on its fewest.
func Halves(q *cluster.AllocationRequest) (two cluster.AllocationRequest, of []int) {
	two = *q
	two.Pools, two.Prices, two.Together = nil, nil, nil
	rest := make([]bool, 0, 2*len(q.Pools)) // by new pool
	for p, pool := range q.Pools {
		apart := pool.Count
		if p < len(q.Together) && slices.ContainsFunc(q.Bids, func(b cluster.Bid) bool { return b.Apart != nil && b.Apart[p] > 0 && b.Apart[p] < 1 }) {
			apart = (pool.Count*q.Together[p] + 500) / 1000
		}
		two.Pools, of, rest = append(two.Pools, cluster.GPUs{Model: pool.Model, Count: apart}), append(of, p), append(rest, false)
		if apart < pool.Count {
			two.Pools, of, rest = append(two.Pools, cluster.GPUs{Model: pool.Model, Count: pool.Count - apart}), append(of, p), append(rest, true)
		}
	}
	if len(of) == len(q.Pools) {
		return *q, nil
	}
	if q.Prices != nil {
		two.Prices = picked(q.Prices, of)
	}
	two.Pairs = slices.Clone(q.Pairs)
	for k := range two.Pairs {
		two.Pairs[k].PartA, two.Pairs[k].PartB = picked(q.Pairs[k].PartA, of), picked(q.Pairs[k].PartB, of)
	}
	two.Bids = slices.Clone(q.Bids)
	for i := range two.Bids {
		b := &two.Bids[i]
		b.Speeds, b.Margins, b.Basis, b.Priced, b.Apart = make([]float64, len(of)), nil, nil, nil, nil
		for n, p := range of {
			if b.Speeds[n] = q.Bids[i].Speeds[p]; rest[n] && q.Bids[i].Apart != nil {
				b.Speeds[n] *= min(cmp.Or(q.Bids[i].Apart[p], 1), 1)
			}
		}
	}
	return two, of
}

// whole returns parts of the pools of Halves as parts of the pools that these are of.
func whole(parts []cluster.Part, of []int, pools int) []cluster.Part {
	out := make([]cluster.Part, len(parts))
	for i := range parts {
		out[i] = cluster.Part{Party: parts[i].Party, GPUs: joined(parts[i].GPUs, of, pools)}
	}
	return out
}

// joined adds up GPUs of pools that are of the same pool.
func joined(gpus []cluster.MicroGPU, of []int, pools int) []cluster.MicroGPU {
	out := make([]cluster.MicroGPU, pools)
	for n, x := range gpus {
		out[of[n]] += x
	}
	return out
}

// picked gives the value of each of those pools.
func picked(values []float64, of []int) []float64 {
	out := make([]float64, len(of))
	for n, p := range of {
		out[n] = values[p]
	}
	return out
}
