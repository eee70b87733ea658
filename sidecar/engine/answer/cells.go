package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// divideCells answers a question of a cluster with virtual clusters (SEMANTICS §4): one problem for each VC on
// its healthy cells, between its tenant's parties only, and one for all other GPUs, between all tenants. No
// problem depends on the demand of another VC, so a tenant's cells are its own whatever others ask for.
//
// The other GPUs are those in no cell (the commons), and whole GPUs of cells that their VC leaves idle, which
// are lent. A party bids there with the demand that its cells do not meet.
//
// Tenants whose VCs have tradable cells trade them first; see swapCells. A trade changes what a VC has once it is in
// force, which the rounds decide.
func divideCells(q cluster.AllocationRequest, by Policy) cluster.Allocation {
	swaps := swapCells(&q)
	rest := q
	rest.Cells, rest.CellTrades, rest.Pools, rest.Bids = nil, nil, slices.Clone(q.Pools), slices.Clone(q.Bids)
	own, late, why := make([]cluster.Part, len(q.Bids)), []cluster.JobKey(nil), []string(nil)
	for i := range own {
		own[i] = cluster.Part{Party: q.Bids[i].Party, GPUs: make([]cluster.MicroGPU, len(q.Pools))}
	}
	note := func(whose string, d *cluster.Allocation) {
		if d.Why != "" {
			why = append(why, whose+": "+d.Why)
		}
		late = append(late, d.Late...)
	}
	used := make([]cluster.MicroGPU, len(q.Pools))
	for k := range q.Cells {
		c := &q.Cells[k]
		d, bids := divideVC(&q, c, by)
		note(fmt.Sprintf("the cells of %s", c.Tenant), &d)
		for at, i := range bids {
			own[i] = d.Parts[at]
			for p, gpus := range own[i].GPUs {
				used[p] += gpus
			}
		}
	}
	for p := range rest.Pools { // a GPU that is used for a part of the time is not lent as a whole
		rest.Pools[p].Count = max(q.Pools[p].Count-int((used[p]+cluster.WholeGPU-1)/cluster.WholeGPU), 0)
	}
	var bids []int
	rest.Bids = rest.Bids[:0]
	for i := range q.Bids {
		if b, ok := unmet(q.Bids[i], own[i].GPUs); ok {
			rest.Bids, bids = append(rest.Bids, b), append(bids, i)
		}
	}
	d := Divide(rest, by)
	note("the other GPUs", &d)
	for at, i := range bids {
		left := cluster.MicroGPU(q.Bids[i].Demand)*cluster.WholeGPU - total(own[i].GPUs)
		add(own[i].GPUs, d.Parts[at].GPUs, left)
	}
	slices.Sort(late)
	d.CellTrades, d.Undone = swaps.Kept, append(swaps.Undone, d.Undone...)
	d.Parts, d.Late, d.Why = own, slices.Compact(late), strings.Join(why, "; ")
	return d
}

// divideVC divides a VC's cells between its tenant's bids, and returns their indices.
func divideVC(q *cluster.AllocationRequest, c *cluster.CellGPUs, by Policy) (cluster.Allocation, []int) {
	in := *q
	in.Cells, in.CellTrades, in.Trades, in.NextTrade = nil, nil, nil, 0
	in.Pools, in.Bids = slices.Clone(q.Pools), nil
	for p := range in.Pools {
		in.Pools[p].Count = c.GPUs[p]
	}
	var bids []int
	for i := range q.Bids {
		if q.Bids[i].Tenant == c.Tenant {
			in.Bids, bids = append(in.Bids, q.Bids[i]), append(bids, i)
		}
	}
	if len(bids) == 0 {
		return cluster.Allocation{}, nil
	}
	return Divide(in, by), bids
}

// unmet returns a bid for the demand that the given GPUs do not meet, as one for that many GPUs with that part
// of the work; false = less than a hundredth of a GPU.
func unmet(b cluster.Bid, has []cluster.MicroGPU) (cluster.Bid, bool) {
	all := cluster.MicroGPU(b.Demand) * cluster.WholeGPU
	left := all - total(has)
	if left == all {
		return b, true
	}
	if left < worthwhile.Least {
		return b, false
	}
	part := float64(left) / float64(all)
	b.Demand = int((left + cluster.WholeGPU - 1) / cluster.WholeGPU)
	b.Gang = min(b.Gang, b.Demand)
	b.Steps, b.Did = b.Steps*part, b.Did*part
	return b, true
}

// total sums GPUs.
func total(gpus []cluster.MicroGPU) (sum cluster.MicroGPU) {
	for _, g := range gpus {
		sum += g
	}
	return sum
}

// add adds GPUs to others, but together at most a limit: beyond it all are reduced by the same factor.
func add(to, gpus []cluster.MicroGPU, limit cluster.MicroGPU) {
	sum := total(gpus)
	for p, g := range gpus {
		if sum > limit {
			g = cluster.MicroGPU(cluster.MulDiv(int64(g), int64(max(limit, 0)), int64(sum)))
		}
		to[p] += g
	}
}
