package actions

import (
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A fence is a short-lived reservation on the nodes that are bound to a VC whole and on which Slurm
// also starts jobs that we do not see: those of partitions that are not managed. Without it these
// would take GPUs that are promised. It is prolonged while it is wanted, and ends by itself
// when nobody does that. No job of ours is ever in a fence: grants on its nodes go by the
// reservation of a hand-over, which may overlap it and, other than a fence, covers all nodes
// of a job. There is one fence for each VC, since Slurm looks through all reservations often.

// fencePrefix starts the name of every fence; that of the VC follows.
const fencePrefix = cluster.ReservationPrefix + "cell_"

func isFence(r *cluster.Reservation) bool {
	return r.Ours && len(r.Name) > len(fencePrefix) && strings.HasPrefix(r.Name, fencePrefix)
}

// Prolong gives the first moment at which a reservation of ours is prolonged, if it is wanted still; false = it never is.
func Prolong(b *round.Books, r *cluster.Reservation) (cluster.Instant, bool) {
	switch {
	case r.Name == cluster.GateReservation && b.Snapshot.License.Total > 0:
		return r.End - cluster.Instant(b.Settings.GateTTL/2) + 1, true
	case isFence(r):
		return r.End - cluster.Instant(b.Settings.GateTTL) + 1, true
	}
	return 0, false
}

// fenced gives the nodes that are within a fence, were until now, or are about to be.
func fenced(b *round.Books, wanted map[string][]string) map[string]bool {
	out := map[string]bool{}
	for i := range b.Snapshot.Reservations {
		if r := &b.Snapshot.Reservations[i]; isFence(r) && r.End > b.Now {
			for _, n := range r.Nodes {
				out[n] = true
			}
		}
	}
	for _, nodes := range wanted {
		for _, n := range nodes {
			out[n] = true
		}
	}
	return out
}

// fences makes the fences that are wanted, moves them, and prolongs them half-way.
func (w *writer) fences(out []cluster.Action) []cluster.Action {
	for _, vc := range slices.Sorted(maps.Keys(w.wanted)) {
		name, nodes := fencePrefix+vc, w.wanted[vc]
		if slices.ContainsFunc(w.Snapshot.Reservations, func(r cluster.Reservation) bool {
			return r.Name == name && r.End >= w.Now.Add(w.Settings.GateTTL) && slices.Contains(r.Accounts, vc) &&
				slices.Equal(slices.Sorted(slices.Values(r.Nodes)), nodes)
		}) {
			continue
		}
		out = append(out, cluster.Action{Verb: cluster.Reserve, Reservation: name, Nodes: nodes, Accounts: []string{vc},
			Until: w.Now.Add(2 * w.Settings.GateTTL), Reason: cluster.Reason{Code: cluster.ReasonFence}})
	}
	return out
}
