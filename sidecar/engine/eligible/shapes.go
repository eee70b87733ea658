package eligible

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// shapes are the shapes of the cases' requests, in this round and the last one.
type shapes struct {
	now, last []shape
	pools     []string
}

// shape is that of a case's request on each of the sites that are kept, plus 1; 0 = it is not known, or what else determines it is not kept.
type shape struct {
	on         [2]int32
	pool       int32        // that a running job holds, plus 1; 0 = not known, or none
	limit, ran cluster.Span // the user's time limit, and what counts to it
	gate       *round.Gate  // where Slurm's rules let it start, a copy; nil = no rule concerns it
}

// turn opens a round.
func (x *shapes) turn(in *round.Facts) {
	n := len(in.Cases)
	x.now, x.last = slices.Grow(x.last[:0], n)[:n], x.now
	if !slices.Equal(x.pools, in.Pools) {
		x.pools, x.last = slices.Clone(in.Pools), nil
	}
	for i := range x.now {
		if before := int(in.Cases[i].Before); before >= 0 && before < len(x.last) {
			x.now[i] = x.last[before]
		} else {
			x.now[i] = shape{}
		}
	}
}

// held returns the pool of a running job as a list: that of the first GPUs that it holds; nil = none.
func (x *shapes) held(in *round.Facts, i int) []int {
	now := &x.now[i]
	if now.pool == 0 {
		holds := in.Snapshot.Cases[i].Job.Holds
		for k := 0; k < len(holds) && now.pool == 0; k++ {
			if holds[k].Size.Devices > 0 {
				now.pool = int32(in.Pool(holds[k].Model)) + 1
			}
		}
	}
	if now.pool == 0 {
		return nil
	}
	return in.Just(int(now.pool) - 1)
}

// forget drops the shapes on a site that was replaced.
func (x *shapes) forget(site int) {
	for i := range x.now {
		x.now[i].on[site] = 0
	}
}

// of returns the shape of a case's request on the site of a round; at is the index of the site.
func (x *shapes) of(f *Found, i int, at int) int {
	now, r := &x.now[i], &f.facts.Records[i]
	if len(r.UserNodes) > 0 || len(f.Avoids(i)) > 0 {
		return f.Site.Shape(f.Spec(i))
	}
	if ran, gate := r.RanInLimit(), f.Can[i].Gate; now.limit != r.UserLimit || now.ran != ran || !sameGate(now.gate, gate) {
		if now.on, now.limit, now.ran, now.gate = [2]int32{}, r.UserLimit, ran, nil; gate != nil {
			now.gate = &round.Gate{Partitions: gate.Partitions, MaxNodes: gate.MaxNodes}
		}
	}
	if now.on[at] == 0 {
		now.on[at] = int32(f.Site.Shape(f.Spec(i))) + 1
	}
	return int(now.on[at]) - 1
}

func sameGate(a, b *round.Gate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.MaxNodes == b.MaxNodes && slices.Equal(a.Partitions, b.Partitions)
}
