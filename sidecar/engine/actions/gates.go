package actions

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Gate is what a round changes of a job's gate; see cluster.Record.
type Gate struct {
	Case           int
	Until          cluster.Instant // the begin time that was set last; 0 = none
	Locked         bool
	Pinned         bool
	Basis          *cluster.Basis
	UserMaxNodes   int
	UserPartitions []string
	Slice          *cluster.Slice
}

// Put writes it into the records, which are by case.
func (g *Gate) Put(records []cluster.Record) {
	r := &records[g.Case]
	r.Gate, r.Locked, r.Pinned, r.Basis, r.UserMaxNodes, r.UserPartitions, r.Slice = g.Until, g.Locked, g.Pinned, g.Basis, g.UserMaxNodes, g.UserPartitions, g.Slice
}

// gates are the gates that a round changes.
type gates struct {
	records []cluster.Record
	changed []Gate
	at      []int32 // by case: its index in changed, plus 1; 0 = it has not changed
}

// open begins a round.
func (x *gates) open(in *round.Facts) {
	x.records, x.changed = in.Records, x.changed[:0]
	x.at = slices.Grow(x.at[:0], len(in.Records))[:len(in.Records)]
	clear(x.at)
}

// of returns the gate of a case now.
func (x *gates) of(i int) Gate {
	if k := x.at[i]; k > 0 {
		return x.changed[k-1]
	}
	r := &x.records[i]
	return Gate{i, r.Gate, r.Locked, r.Pinned, r.Basis, r.UserMaxNodes, r.UserPartitions, r.Slice}
}

// set changes the gate of a case.
func (x *gates) set(g Gate) {
	if x.at[g.Case] == 0 {
		x.changed = append(x.changed, Gate{})
		x.at[g.Case] = int32(len(x.changed))
	}
	x.changed[x.at[g.Case]-1] = g
}

// lock notes whether a job asks for our licence.
func (x *gates) lock(i int, locked bool) {
	if g := x.of(i); g.Locked != locked {
		g.Locked = locked
		x.set(g)
	}
}

// shut notes the begin time of a job's gate.
func (x *gates) shut(i int, until cluster.Instant) {
	g := x.of(i)
	g.Until = until
	x.set(g)
}
