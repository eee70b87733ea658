package store

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// withFormer gives n records, which are by key, with those of former jobs among them.
func withFormer(n int, record func(int) *cluster.Record, former []cluster.Record) []*cluster.Record {
	gone := make([]*cluster.Record, len(former))
	for i := range former {
		gone[i] = &former[i]
	}
	slices.SortFunc(gone, func(a, b *cluster.Record) int { return cmp.Compare(a.Key, b.Key) })
	all := make([]*cluster.Record, 0, n+len(former))
	for i := range n {
		r := record(i)
		for len(gone) > 0 && gone[0].Key < r.Key {
			all, gone = append(all, gone[0]), gone[1:]
		}
		all = append(all, r)
	}
	return append(all, gone...)
}

// formerCase is the case of a former job: it is gone, and says no more.
var formerCase = cluster.Case{Gone: true}

// casesOf gives the cases of a snapshot's records and former jobs.
func casesOf(snap *cluster.Snapshot, records []*cluster.Record) []*cluster.Case {
	out, next := make([]*cluster.Case, len(records)), 0
	for i, r := range records {
		out[i] = &formerCase
		if next < len(snap.Cases) && r == &snap.Cases[next].Record {
			out[i], next = &snap.Cases[next], next+1
		}
	}
	return out
}

// partFormer takes the former jobs out of the cases and the records.
func partFormer(snap *cluster.Snapshot, plan *cluster.Plan) {
	snap.Cases = slices.DeleteFunc(snap.Cases, func(c cluster.Case) bool {
		former := c.Gone && c.Control == ""
		if former {
			snap.Former = append(snap.Former, c.Record)
		}
		return former
	})
	slices.SortFunc(snap.Former, cluster.CompareFormer)
	plan.State.Part(plan.At)
}
