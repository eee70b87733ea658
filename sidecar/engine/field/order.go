package field

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
)

// order is the candidates of the last round in the order of their turns. Most of them will be in it again, so that few need sorting.
type order struct {
	keys  []cluster.JobKey // of the candidates, as they were listed
	line  []int32          // of keys, in the order of turns
	now   []int32          // by key: its candidate now; -1 = none
	first []int32          // the candidates now, those of the last round first
	known []bool           // by candidate: it is one of those
}

// of lists candidates in the order of the last round, then the others.
func (o *order) of(cs []lease.Candidate) []int32 {
	o.now, o.known, o.first = o.now[:0], slices.Grow(o.known[:0], len(cs))[:len(cs)], o.first[:0]
	clear(o.known)
	at := 0
	for _, key := range o.keys {
		for at < len(cs) && cs[at].Key < key {
			at++
		}
		if at == len(cs) || cs[at].Key != key {
			o.now = append(o.now, -1)
			continue
		}
		o.now = append(o.now, int32(at))
		at++
	}
	for _, k := range o.line {
		if i := o.now[k]; i >= 0 {
			o.first, o.known[i] = append(o.first, i), true
		}
	}
	for i, known := range o.known {
		if !known {
			o.first = append(o.first, int32(i))
		}
	}
	return o.first
}

// open begins a new order of candidates.
func (o *order) open(cs []lease.Candidate) {
	o.keys, o.line = o.keys[:0], o.line[:0]
	for i := range cs {
		o.keys = append(o.keys, cs[i].Key)
	}
}

// next adds a candidate to the order.
func (o *order) next(candidate int) { o.line = append(o.line, int32(candidate)) }
