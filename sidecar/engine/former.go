package engine

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// former is the list of former jobs in the last plan. The next plan's is the same memory, with more at its end and less at its start.
type former []cluster.Record

// keep returns the records of a round, and those of former jobs, which are taken from them in place. It is the last step.
func (f *former) keep(b *round.Facts, all []cluster.Record) (records, old []cluster.Record) {
	old = b.Snapshot.Former
	if was := *f; len(was) == len(old) && len(was) > 0 && &was[0] == &old[0] {
		old = was
	} else { // another plan may continue it in its memory
		old = slices.Clip(old)
	}
	for len(old) > 0 && expired(&old[0], b.Now) {
		old = old[1:]
	}
	had, kept := len(old), 0
	for i := range all {
		switch r := &all[i]; {
		case expired(r, b.Now):
		case r.IsFormer(b.Now):
			old = append(old, *r)
		default:
			if kept < i {
				all[kept] = *r
			}
			kept++
		}
	}
	slices.SortFunc(old[had:], cluster.CompareFormer)
	if had > 0 && had < len(old) && cluster.CompareFormer(old[had], old[had-1]) < 0 { // a job that was a case again
		old = slices.Clone(old)
		slices.SortFunc(old, cluster.CompareFormer)
	}
	clear(all[kept:])
	*f = old
	return all[:kept], old
}

func expired(r *cluster.Record, now cluster.Instant) bool {
	return r.Done != 0 && now.Sub(r.Done) >= cluster.FormerFor
}
