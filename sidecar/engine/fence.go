package engine

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A fence is a short-lived reservation on the nodes of a VC's bound cells on which Slurm also
// starts jobs that we do not see: those of partitions that are not managed. Without it these
// would take GPUs that are promised. It is prolonged while it is wanted, and ends by itself
// when nobody does that. No job of ours is ever in a fence: grants on its nodes go by the
// reservation of a hand-over, which may overlap it and, other than a fence, covers all nodes
// of a job. There is one fence for each VC, since Slurm looks through all reservations often.

// fencePrefix starts the name of every fence; that of the VC follows.
const fencePrefix = cluster.ReservationPrefix + "cell_"

// fence works out which nodes the fence of each VC is around.
func (v *vcs) fence() {
	h := v.h
	if v.touch != cluster.Act || len(h.s.Managed) == 0 {
		return
	}
	open := map[string]bool{}
	for i := range h.s.Nodes {
		if slices.ContainsFunc(h.s.Nodes[i].Partitions, func(p string) bool { return !slices.Contains(h.s.Managed, p) }) {
			open[h.s.Nodes[i].Name] = true
		}
	}
	if len(open) == 0 {
		return
	}
	h.fences = map[string][]string{}
	for _, b := range v.state.Bound() {
		for _, p := range b.Parts {
			if at, _ := v.state.Place(p.Node); open[p.Node] && bits.OnesCount64(p.GPUs) == at.GPUs {
				h.fences[fencePrefix+b.VC] = append(h.fences[fencePrefix+b.VC], p.Node)
			}
		}
	}
	for _, nodes := range h.fences {
		slices.Sort(nodes)
	}
}

// fenced tells whether a fence is around one of these nodes, or is about to be.
func (h *hall) fenced(nodes []string) bool {
	in := func(name string) bool { return slices.Contains(nodes, name) }
	for _, around := range h.fences {
		if slices.ContainsFunc(around, in) {
			return true
		}
	}
	return slices.ContainsFunc(h.s.Reservations, func(r cluster.Reservation) bool {
		return isFence(&r) && r.End > h.now && slices.ContainsFunc(r.Nodes, in)
	})
}

func isFence(r *cluster.Reservation) bool {
	return r.Ours && len(r.Name) > len(fencePrefix) && r.Name[:len(fencePrefix)] == fencePrefix
}

// putFences makes the fences that are wanted, moves them, and prolongs them half-way.
func (h *hall) putFences() {
	for _, name := range slices.Sorted(maps.Keys(h.fences)) {
		vc, nodes := name[len(fencePrefix):], h.fences[name]
		if slices.ContainsFunc(h.s.Reservations, func(r cluster.Reservation) bool {
			return r.Name == name && r.End >= h.now.Add(h.set.GateTTL) && slices.Contains(r.Accounts, vc) &&
				slices.Equal(slices.Sorted(slices.Values(r.Nodes)), nodes)
		}) {
			continue
		}
		h.actions = append(h.actions, cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: nodes, Accounts: []string{vc},
			Until: h.now.Add(2 * h.set.GateTTL), Because: cluster.Reason{Code: cluster.BecauseFence}})
	}
}
