package actions

import (
	"maps"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A fence is a short-lived reservation on nodes that are bound entirely to a VC, and on which Slurm also
// starts jobs of unmanaged partitions. Without it, such jobs would take promised GPUs. fairlease prolongs a
// fence while it is wanted; otherwise it ends by itself. No managed job is ever in a fence. Grants on its
// nodes use the reservation of a hand-over, which may overlap a fence and covers all nodes of the job. There
// is one fence per VC, because Slurm searches all reservations often.

// fencePrefix starts the name of every fence. The name of the VC follows.
const fencePrefix = cluster.ReservationPrefix + "cell_"

func isFence(r *cluster.Reservation) bool {
	return r.Ours && len(r.Name) > len(fencePrefix) && strings.HasPrefix(r.Name, fencePrefix)
}

// Prolong returns the first moment at which a reservation of ours is prolonged if it is still wanted; false =
// never.
func Prolong(b *round.Books, r *cluster.Reservation) (cluster.Instant, bool) {
	switch {
	case r.Name == cluster.GateReservation && b.Snapshot.License.Total > 0:
		return r.End - cluster.Instant(b.Settings.GateTTL/2) + 1, true
	case isFence(r):
		return r.End - cluster.Instant(b.Settings.GateTTL) + 1, true
	}
	return 0, false
}

// fenced returns the nodes inside a fence now or soon.
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

// fences creates and moves the wanted fences, and prolongs them half-way.
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
