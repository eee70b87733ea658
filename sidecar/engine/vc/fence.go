package vc

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// fence works out which nodes the fence of each VC is around.
func (v *vcs) fence() {
	h := v.h
	if v.touch != cluster.Act || len(h.Snapshot.Managed) == 0 {
		return
	}
	open := map[string]bool{}
	for i := range h.Snapshot.Nodes {
		if slices.ContainsFunc(h.Snapshot.Nodes[i].Partitions, func(p string) bool { return !slices.Contains(h.Snapshot.Managed, p) }) {
			open[h.Snapshot.Nodes[i].Name] = true
		}
	}
	if len(open) == 0 {
		return
	}
	h.Fences = map[string][]string{}
	bound := map[[2]string]uint64{} // by VC and node
	for _, b := range v.state.Bound() {
		for _, p := range b.Parts {
			key := [2]string{b.VC, p.Node}
			bound[key] |= p.GPUs
			if at, _ := v.state.Place(p.Node); open[p.Node] && bits.OnesCount64(bound[key]) == at.GPUs {
				h.Fences[b.VC] = append(h.Fences[b.VC], p.Node)
			}
		}
	}
	for _, nodes := range h.Fences {
		slices.Sort(nodes)
	}
}
