package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// shapes are the shapes of the cases' requests, in this round and the last one.
type shapes struct {
	now, last []shape
}

// shape is that of a case's request on each of the sites that are kept, plus 1; 0 = it is not known, or its job's own request does not
// determine it.
type shape struct {
	on    [2]int32
	limit cluster.Span
}

// turn opens a round.
func (x *shapes) turn(s *cluster.Snapshot) {
	x.now, x.last = slices.Grow(x.last[:0], len(s.Cases))[:len(s.Cases)], x.now
	clear(x.now)
}

// forget drops the shapes on a site that was replaced.
func (x *shapes) forget(site int) {
	for i := range x.last {
		x.last[i].on[site] = 0
	}
}

// of returns the shape of a case's request on a site.
func (x *shapes) of(b *round.Books, i int, site *place.Site, at int) int {
	if r := &b.Records[i]; b.Jobs[i].Gate != nil || len(r.AvoidNodes)+len(r.UserNodes) > 0 {
		return site.Shape(Spec(b, i))
	}
	now, limit := &x.now[i], limitOf(b, i)
	if k := int(b.Jobs[i].Before); k >= 0 && k < len(x.last) && x.last[k].limit == limit {
		*now = x.last[k]
	}
	if now.on[at] == 0 {
		now.on[at], now.limit = int32(site.Shape(Spec(b, i)))+1, limit
	}
	return int(now.on[at]) - 1
}
