package vc

import (
	"math/bits"
	"slices"
)

// fences returns the nodes inside each VC's fence, by VC; nil = no node needs one.
func fences(v *ground) map[string][]string {
	if len(v.turn.f.In.Snapshot.Managed) == 0 {
		return nil
	}
	open := map[string]bool{}
	for i := range v.turn.f.In.Snapshot.Nodes {
		if slices.ContainsFunc(v.turn.f.In.Snapshot.Nodes[i].Partitions, func(p string) bool { return !slices.Contains(v.turn.f.In.Snapshot.Managed, p) }) {
			open[v.turn.f.In.Snapshot.Nodes[i].Name] = true
		}
	}
	if len(open) == 0 {
		return nil
	}
	out := map[string][]string{}
	bound := map[[2]string]uint64{} // by VC and node
	for _, b := range v.state.Leases.Bound(nil) {
		for _, p := range b.Parts {
			key := [2]string{b.VC, p.Node}
			bound[key] |= p.GPUs
			if at, _ := v.state.Cells.Place(p.Node); open[p.Node] && bits.OnesCount64(bound[key]) == at.GPUs {
				out[b.VC] = append(out[b.VC], p.Node)
			}
		}
	}
	for _, nodes := range out {
		slices.Sort(nodes)
	}
	return out
}
