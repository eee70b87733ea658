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
	pools     []string
}

// shape is that of a case's request on each of the sites that are kept, plus 1; 0 = it is not known, or its job's own request does not
// determine it.
type shape struct {
	on         [2]int32
	pool       int32        // that a running job holds, plus 1; 0 = not known, or none
	limit, ran cluster.Span // the user's time limit, and what counts to it
}

// turn opens a round.
func (x *shapes) turn(b *round.Books) {
	n := len(b.Jobs)
	x.now, x.last = slices.Grow(x.last[:0], n)[:n], x.now
	if !slices.Equal(x.pools, b.In.Pools) {
		x.pools, x.last = slices.Clone(b.In.Pools), nil
	}
	for i := range x.now {
		if before := int(b.Jobs[i].Is.Before); before >= 0 && before < len(x.last) {
			x.now[i] = x.last[before]
		} else {
			x.now[i] = shape{}
		}
	}
}

// held returns the pool of a running job as a list: that of the first GPUs that it holds; nil = none.
func (x *shapes) held(b *round.Books, i int) []int {
	now := &x.now[i]
	if now.pool == 0 {
		holds := b.In.Snapshot.Cases[i].Job.Holds
		for k := 0; k < len(holds) && now.pool == 0; k++ {
			if holds[k].GPUs > 0 {
				now.pool = int32(b.In.Pool(holds[k].Model)) + 1
			}
		}
	}
	if now.pool == 0 {
		return nil
	}
	return b.In.Just(int(now.pool) - 1)
}

// forget drops the shapes on a site that was replaced.
func (x *shapes) forget(site int) {
	for i := range x.now {
		x.now[i].on[site] = 0
	}
}

// of returns the shape of a case's request on a site.
func (x *shapes) of(b *round.Books, i int, site *place.Site, at int) int {
	now, r := &x.now[i], &b.Records[i]
	if b.Jobs[i].Can.Gate != nil || len(r.AvoidNodes)+len(r.UserNodes) > 0 {
		return site.Shape(Spec(b, i))
	}
	if ran := r.RanInLimit(); now.limit != r.UserLimit || now.ran != ran {
		now.on, now.limit, now.ran = [2]int32{}, r.UserLimit, ran
	}
	if now.on[at] == 0 {
		now.on[at] = int32(site.Shape(Spec(b, i))) + 1
	}
	return int(now.on[at]) - 1
}
