package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// next gives the first moment after now at which time alone changes something.
func (h *hall) next() cluster.Instant {
	var first cluster.Instant
	at := func(t cluster.Instant) {
		if t > h.now && (first == 0 || t < first) {
			first = t
		}
	}
	for _, l := range h.leases {
		if l == nil {
			continue
		}
		at(l.End)
		at(l.End - cluster.Instant(h.set.Notice))
		if l.State == cluster.Granted {
			at(l.Granted.Add(h.set.GrantTimeout))
		}
	}
	for i := range h.s.Cases {
		r := &h.records[i]
		at(r.Avoid)
		at(settled(&h.s.Cases[i].Job))
		at(lease.MayDisplace(r, h.set.Term))
		at(r.UserBegin)
		if st := &h.standing[i]; st.waits && st.ours(cluster.Act) && !h.s.Cases[i].Job.Locked {
			gate := max(h.s.Cases[i].Job.Eligible, r.Gate)
			at(gate - cluster.Instant(h.set.GateTTL/2))
		}
	}
	at(h.recallAt)
	for i := range h.claims {
		at(h.claims[i].At)
	}
	for i := range h.s.Overrides {
		at(h.s.Overrides[i].Until)
	}
	for i := range h.s.Reservations {
		at(h.s.Reservations[i].Start)
		at(h.s.Reservations[i].End)
		if h.s.Reservations[i].Name == cluster.GateReservation && h.s.License.Total > 0 {
			at(h.s.Reservations[i].End - cluster.Instant(h.set.GateTTL/2) + 1)
		}
		if isFence(&h.s.Reservations[i]) {
			at(h.s.Reservations[i].End - cluster.Instant(h.set.GateTTL) + 1)
		}
	}
	return first
}
