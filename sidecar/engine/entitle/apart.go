package entitle

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// apart returns the parts of its speed that a job keeps on more nodes than it needs, by pool; 0 = unknown, or it is never on more. nil = all are.
func apart(x *bidder, i int) (out []float64) {
	r, can := &x.in.Snapshot.Cases[i].Job.Request, &x.found.Can[i]
	if r.PerNode > 0 || r.Exclusive {
		return nil
	}
	for _, p := range can.May {
		if part, known := speeds.Keeps(x.speeds, i, p, cluster.Scattered); known && x.found.Together(can.Shape, p) {
			if out == nil {
				out = make([]float64, len(x.in.Pools))
			}
			out[p] = part
		}
	}
	return out
}

// together returns, by pool, the part of its GPUs that the largest gang of the bids that is slower on more nodes could have on its fewest nodes,
// if it had all of them: in thousandths. nil = there is no such gang.
func together(in *round.Facts, bids []cluster.Bid) (out []int) {
	largest := make([]int, len(in.Pools))
	for i := range bids {
		for p, part := range bids[i].Apart {
			if part > 0 {
				largest[p] = max(largest[p], bids[i].Gang)
				out = largest
			}
		}
	}
	for p, gang := range out {
		out[p] = 1000
		if gang > 0 {
			out[p] = fitting(in, p, gang)
		}
	}
	return out
}

// fitting returns the part of a pool's healthy GPUs, in thousandths, that gangs of one size can have on their fewest nodes.
func fitting(in *round.Facts, pool, gang int) int {
	var sizes []int
	most, all := 1, 0
	for i := range in.Snapshot.Nodes {
		n := &in.Snapshot.Nodes[i]
		for k := range n.GPUs {
			if g := &n.GPUs[k]; g.Model == in.Pools[pool] && n.Bad == "" {
				sizes, most, all = append(sizes, g.Count), max(most, g.Count), all+g.Count
			}
		}
	}
	nodes := (gang + most - 1) / most // of the fewest
	each := (gang + nodes - 1) / nodes
	places := 0
	for _, size := range sizes {
		places += size / each
	}
	return min(1000*(places/nodes)*gang/max(all, 1), 1000)
}
