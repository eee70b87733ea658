package loop

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Scheduler is a virtual cluster's own scheduler, with the view of one round. Ask waits for its answer, for a bounded time; Since is unset.
type Scheduler struct {
	VC  string
	Ask func() cluster.VCOrder
}

// orders are the answers of virtual clusters' own schedulers. A slow one delays neither rounds nor others.
type orders struct {
	last    []cluster.VCOrder // by VC; replaced, never modified
	pending map[string]chan cluster.VCOrder
}

// ask asks the schedulers that owe no answer, and forgets the answers of others than those listed.
func (o *orders) ask(all []Scheduler) {
	if o.pending == nil {
		o.pending = map[string]chan cluster.VCOrder{}
	}
	listed := map[string]bool{}
	for _, s := range all {
		if listed[s.VC] = true; o.pending[s.VC] == nil {
			answer := make(chan cluster.VCOrder, 1)
			o.pending[s.VC] = answer
			go func() { answer <- s.Ask() }()
		}
	}
	gone := func(x cluster.VCOrder) bool { return !listed[x.VC] }
	if slices.ContainsFunc(o.last, gone) {
		o.last = slices.DeleteFunc(slices.Clone(o.last), gone)
	}
}

// hear takes the answers that have come, and reports whether one differs from that before.
func (o *orders) hear() (news bool) {
	for _, vc := range slices.Sorted(maps.Keys(o.pending)) {
		select {
		case x := <-o.pending[vc]:
			delete(o.pending, vc)
			x.VC, x.Since = vc, x.At
			at, known := slices.BinarySearchFunc(o.last, vc, func(x cluster.VCOrder, vc string) int { return cmp.Compare(x.VC, vc) })
			now := slices.Clone(o.last)
			if !known {
				now = slices.Insert(now, at, x)
			} else if was := o.last[at]; was.Why == x.Why {
				x.Since = was.Since
			}
			news = news || !known || x.Why != o.last[at].Why || !reflect.DeepEqual(x.Turns, o.last[at].Turns)
			now[at], o.last = x, now
		default:
		}
	}
	return news
}
