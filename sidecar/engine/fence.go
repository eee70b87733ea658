package engine

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A fence is a short-lived reservation on the nodes that are bound to a VC whole and on which Slurm
// also starts jobs that we do not see: those of partitions that are not managed. Without it these
// would take GPUs that are promised. It is prolonged while it is wanted, and ends by itself
// when nobody does that. No job of ours is ever in a fence: grants on its nodes go by the
// reservation of a hand-over, which may overlap it and, other than a fence, covers all nodes
// of a job. There is one fence for each VC, since Slurm looks through all reservations often.

// fencePrefix starts the name of every fence; that of the VC follows.
const fencePrefix = cluster.ReservationPrefix + "cell_"

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
	h.fences = map[string][]string{}
	bound := map[[2]string]uint64{} // by VC and node
	for _, b := range v.state.Bound() {
		for _, p := range b.Parts {
			key := [2]string{b.VC, p.Node}
			bound[key] |= p.GPUs
			if at, _ := v.state.Place(p.Node); open[p.Node] && bits.OnesCount64(bound[key]) == at.GPUs {
				h.fences[fencePrefix+b.VC] = append(h.fences[fencePrefix+b.VC], p.Node)
			}
		}
	}
	for _, nodes := range h.fences {
		slices.Sort(nodes)
	}
}

func isFence(r *cluster.Reservation) bool {
	return r.Ours && len(r.Name) > len(fencePrefix) && r.Name[:len(fencePrefix)] == fencePrefix
}

// putFences makes the fences that are wanted, moves them, and prolongs them half-way. What is
// within one, or was until now, is noted.
func (h *hall) putFences() {
	h.fenced = map[string]bool{}
	note := func(nodes []string) {
		for _, n := range nodes {
			h.fenced[n] = true
		}
	}
	for i := range h.Snapshot.Reservations {
		if r := &h.Snapshot.Reservations[i]; isFence(r) && r.End > h.Now {
			note(r.Nodes)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.fences)) {
		vc, nodes := name[len(fencePrefix):], h.fences[name]
		note(nodes)
		if slices.ContainsFunc(h.Snapshot.Reservations, func(r cluster.Reservation) bool {
			return r.Name == name && r.End >= h.Now.Add(h.Settings.GateTTL) && slices.Contains(r.Accounts, vc) &&
				slices.Equal(slices.Sorted(slices.Values(r.Nodes)), nodes)
		}) {
			continue
		}
		h.actions = append(h.actions, cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: nodes, Accounts: []string{vc},
			Until: h.Now.Add(2 * h.Settings.GateTTL), Because: cluster.Reason{Code: cluster.BecauseFence}})
	}
}
