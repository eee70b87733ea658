package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/actions"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// next gives the first moment after now at which time alone changes something.
func (h *hall) next() cluster.Instant {
	var first cluster.Instant
	at := func(t cluster.Instant) {
		if t > h.Now && (first == 0 || t < first) {
			first = t
		}
	}
	for _, l := range h.Leases {
		if l == nil {
			continue
		}
		at(l.End)
		at(l.End - cluster.Instant(h.Settings.Notice))
		if l.State == cluster.Granted {
			at(l.Granted.Add(h.Settings.GrantTimeout))
		}
	}
	for i := range h.Snapshot.Cases {
		r := &h.Records[i]
		at(r.Avoid)
		at(eligible.Settled(&h.Snapshot.Cases[i].Job))
		at(lease.MayDisplace(r, h.Settings.Term))
		at(r.UserBegin)
		if st := &h.Jobs[i]; st.Waits && st.Ours(cluster.Act) && !h.Snapshot.Cases[i].Job.Locked {
			gate := max(h.Snapshot.Cases[i].Job.Eligible, r.Gate)
			at(gate - cluster.Instant(h.Settings.GateTTL/2))
		}
	}
	at(h.recallAt)
	for i := range h.Claims {
		at(h.Claims[i].At)
	}
	for i := range h.Snapshot.Overrides {
		at(h.Snapshot.Overrides[i].Until)
	}
	for i := range h.Snapshot.Reservations {
		at(h.Snapshot.Reservations[i].Start)
		at(h.Snapshot.Reservations[i].End)
		if t, ok := actions.Prolong(h.Books, &h.Snapshot.Reservations[i]); ok {
			at(t)
		}
	}
	return first
}
