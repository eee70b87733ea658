package entitle

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// mostTypes is the maximum number of types of jobs whose pairs a division knows: those with the most jobs.
const mostTypes = 16

// typeOf returns the type of a job that may share a GPU with another one; "" = it may not.
func (x *bidder) typeOf(i int) string {
	if s := x.in.Settings.Slices; s == nil || !s.Pairs || x.in.Snapshot.Cells != nil {
		return ""
	}
	r, can := &x.in.Records[i], &x.found.Can[i]
	if r.Slice == nil && !slices.ContainsFunc(can.May, func(p int) bool { return x.in.MaySlice(i, x.in.Pools[p]) }) {
		return ""
	}
	return x.speeds.Pairs.Type(i)
}

// pairs returns the types of jobs that do more beside each other than in turns, by what is known of them, and that may be put on one GPU.
func (x *bidder) pairs(bids []cluster.Bid) (out []cluster.TypePair) {
	type kind struct {
		name string
		jobs []int // two of its jobs, as cases
		n    int
	}
	at, kinds := map[string]int{}, []kind(nil)
	for i := range bids {
		t := bids[i].Type
		if t == "" {
			continue
		}
		k, known := at[t]
		if !known {
			k = len(kinds)
			at[t], kinds = k, append(kinds, kind{name: t})
		}
		if kinds[k].n++; kinds[k].n <= 2 {
			kinds[k].jobs = append(kinds[k].jobs, x.in.Find(bids[i].Job))
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	kinds = kinds[:min(len(kinds), mostTypes)]
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Compare(a.name, b.name) })
	if len(kinds) == 0 {
		return nil
	}
	shared := sliceable(x.in)
	for k, a := range kinds {
		for _, b := range kinds[k:] {
			one, other := a.jobs[0], b.jobs[0]
			if a.name == b.name {
				if a.n < 2 {
					continue
				}
				other = a.jobs[1]
			}
			if !x.mayPair(one, other) {
				continue
			}
			t, some := cluster.TypePair{A: a.name, B: b.name, PartA: make([]float64, len(x.in.Pools)), PartB: make([]float64, len(x.in.Pools))}, false
			for p, pool := range x.in.Pools {
				if !shared[p] {
					continue
				}
				if own, with, known := x.speeds.Pairs.Beside(one, other, pool); known && cluster.Together(own, with, 0.5) >= cluster.LeastTogether {
					t.PartA[p], t.PartB[p], some = own, with, true
				}
			}
			if some {
				out = append(out, t)
			}
		}
	}
	return out
}

// mayPair reports whether jobs of two cases may be put on one GPU, by sharing.across. Where tenants queue, jobs of one tenant alone are.
func (x *bidder) mayPair(i, k int) bool {
	a, b := &x.in.Records[i], &x.in.Records[k]
	switch {
	case x.in.Settings.Across == cluster.SameUser:
		return a.User == b.User && (x.jobsQueue || a.Tenant == b.Tenant)
	case x.in.Settings.Across == cluster.SameTenant || !x.jobsQueue:
		return a.Tenant == b.Tenant
	}
	return true
}

// sliceable returns by pool whether GPUs of two jobs are possible there: a node has an even number of shards on each.
func sliceable(in *round.Facts) []bool {
	out := make([]bool, len(in.Pools))
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		for k := range n.GPUs {
			if p := in.Pool(n.GPUs[k].Model); p >= 0 && in.Settings.Slices.Shards(n) > 0 {
				out[p] = true
			}
		}
	}
	return out
}
