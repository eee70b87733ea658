package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// serveFloors gives tenants that repay others what they lack of their floors, before all others and however far ahead they are.
// Deficits, which rank tenants, would let one that is owed much take all GPUs until it is even: repayments move
// entitlements only. The tenant that lacks most goes first. A tenant has its turns in the order of its jobs. A tenant that an
// administrator puts first goes before floors.
func serveFloors(c *chooser, queues []*queue) {
	type line struct {
		*queue
		jobs []int // that are left
	}
	var all []line
	for _, q := range queues {
		boosted := func(o *queue) bool { return o.boost && o.pool == q.pool && o != q }
		if q.lacks > 0 && q.entitled > 0 && !q.spent && !slices.ContainsFunc(queues, boosted) {
			all = append(all, line{q, q.jobs})
		}
	}
	was := slices.Clone(c.served) // others are compared with those that go by their deficits
	for len(all) > 0 {
		first := 0
		for k := range all {
			if lacks(c, all[k].queue) > lacks(c, all[first].queue) {
				first = k
			}
		}
		q := &all[first]
		if q.lacks <= 0 || len(q.jobs) == 0 {
			all = slices.Delete(all, first, first+1)
			continue
		}
		i := q.jobs[0]
		q.jobs = q.jobs[1:]
		keepFloor(c, q.queue, i)
	}
	copy(c.served, was)
}

// keepFloor gives a candidate a lease for its tenant's floor, if it may have one here and now; else it waits for its turn.
func keepFloor(c *chooser, q *queue, i int) {
	k := &c.Candidates[i]
	if c.settled[i] || !Misses(q.lacks, k.GPUs, c.Settings.Term) || k.IdleOnly || k.idles(q.pool) || k.Running && !k.stays(q.pool) || c.overBurst(q, i) ||
		c.bound.binds(k, q.pool) != Unbound && (k.Barred || !c.mayBind(k, q.pool)) {
		return
	}
	if k.Running {
		if renewable(c, k) {
			c.renew(q, i)
		}
		return
	}
	if g, ok := c.try(i, k.Shape, q.pool, ofAnybody, 1+q.tenant); ok {
		c.charge(q, k.GPUs, g.End.Sub(g.At))
	}
}

// lacks returns what a queue lacks of its floor as time at its tenant's due.
func lacks(c *chooser, q *queue) cluster.Span {
	return Cost(cmp.Or(c.Tenants[q.tenant].Shares[q.pool].Own, q.entitled), 1, cluster.Span(max(q.lacks, 0)))
}

// Misses reports whether a tenant that lacks so much of its floor would lack more than a gang for one term without the gang.
func Misses(lacks cluster.GPUTime, gpus int, term cluster.Span) bool {
	return lacks > cluster.Times(gpus, term)
}
