package store

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// allCases are the rows of a snapshot's jobs, with its former jobs among them, by key.
type allCases struct {
	records []*cluster.Record
	cases   []cluster.Case
	next    int          // case
	former  cluster.Case // the last one that was given
}

func casesWithFormer(snap *cluster.Snapshot) *allCases {
	return &allCases{cases: snap.Cases, records: withFormer(len(snap.Cases), func(i int) *cluster.Record { return &snap.Cases[i].Record }, snap.Former)}
}

// withFormer gives n records, with those of former jobs among them, by key.
func withFormer(n int, record func(int) *cluster.Record, former []cluster.Record) []*cluster.Record {
	all := make([]*cluster.Record, 0, n+len(former))
	for i := range n {
		all = append(all, record(i))
	}
	if len(former) == 0 {
		return all
	}
	for i := range former {
		all = append(all, &former[i])
	}
	slices.SortStableFunc(all, func(a, b *cluster.Record) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// row gives the case of a record. It is asked for one after the other. That of a former job is gone, and says no more.
func (a *allCases) row(i int) reflect.Value {
	c := &a.former
	if a.next < len(a.cases) && a.records[i] == &a.cases[a.next].Record {
		c, a.next = &a.cases[a.next], a.next+1
	} else {
		a.former = cluster.Case{Gone: true, Record: cluster.Record{Key: a.records[i].Key}}
	}
	return reflect.ValueOf(c).Elem()
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
