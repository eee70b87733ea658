package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// serveFloors gives tenants what they lack of their floors where debts are repaid, before all others and however far ahead they are.
// Deficits, which rank tenants, would let one that is owed much take all GPUs until it is even: repayments move
// entitlements only. A tenant that an administrator puts first goes first, in the order of its jobs, then the one that lacks most, with its
// largest jobs first: small ones would keep them out, hour after hour.
func serveFloors(c *chooser, queues []*queue) {
	type line struct {
		*queue
		jobs []int // that are left
	}
	var all []line
	for _, q := range queues {
		lacks := func(o *queue) bool { return o.pool == q.pool && misses(c, o, 0) && o.entitled > 0 && !o.spent }
		if lacks(q) || q.boost && slices.ContainsFunc(queues, lacks) {
			jobs := slices.Clone(q.jobs)
			if !q.boost {
				slices.SortStableFunc(jobs, func(a, b int) int { return c.Candidates[b].GPUs - c.Candidates[a].GPUs })
			}
			all = append(all, line{q, jobs})
		}
	}
	was := slices.Clone(c.served) // others are compared with those that go by their deficits
	for len(all) > 0 {
		first := 0
		for k := range all {
			if a, b := all[k].queue, all[first].queue; a.boost && !b.boost || a.boost == b.boost && lacks(c, a) > lacks(c, b) {
				first = k
			}
		}
		q := &all[first]
		if len(q.jobs) == 0 || !q.boost && !misses(c, q.queue, 0) {
			all = slices.Delete(all, first, first+1)
			continue
		}
		k := &c.Candidates[q.jobs[0]]
		fits := keepFloor(c, q.queue, q.jobs[0])
		if q.jobs = q.jobs[1:]; !fits {
			q.jobs = slices.DeleteFunc(q.jobs, func(i int) bool { x := &c.Candidates[i]; return x.Shape == k.Shape && x.Binds == k.Binds && !x.Running })
		}
	}
	copy(c.served, was)
}

// keepFloor gives a candidate a lease before others, if it may have one here and now; else it waits for its turn. It reports whether others
// like it may fit.
func keepFloor(c *chooser, q *queue, i int) bool {
	k := &c.Candidates[i]
	if c.settled[i] || k.IdleOnly || k.idles(q.pool) || k.Running && !k.stays(q.pool) || c.overBurst(q, i) ||
		c.bound.binds(k, q.pool) != Unbound && (k.Barred || !c.mayBind(k, q.pool)) {
		return true
	}
	if k.Running {
		if renewable(c, k) {
			c.renew(q, i)
		}
		return true
	}
	before, when := c.reclaims, room(c, i)
	c.reclaims = 0 // reclaim.max does not limit floors
	g, ok := c.try(i, k.Shape, q.pool, ofAnybody, 1+q.tenant)
	if ok {
		c.charge(q, k.GPUs, g.End.Sub(g.At))
	}
	c.reclaims += before
	return ok || when != Now
}

// lacks returns what a queue lacks of its floor as time at its tenant's due.
func lacks(c *chooser, q *queue) cluster.Span {
	return Cost(cmp.Or(c.Tenants[q.tenant].Shares[q.pool].Own, q.entitled), 1, cluster.Span(max(q.lacks, 0)))
}

// misses reports whether a queue lacks more of its floor than its tenant's largest gang, and so many GPUs, for one term.
func misses(c *chooser, q *queue, gpus int) bool {
	return q.lacks > cluster.Times(c.Tenants[q.tenant].Gang+gpus, c.Settings.Term)
}

// lacking reports the same of a tenant in a pool before it has a queue, less what is paid already.
func lacking(c *chooser, tenant, pool int, paid []payment) bool {
	lacks := c.Tenants[tenant].Shares[pool].Lacks - cluster.Times(c.Tenants[tenant].Gang, c.Settings.Term)
	for _, p := range paid {
		if p.tenant == tenant && p.pool == pool {
			lacks -= cluster.Times(p.gpus, p.span)
		}
	}
	return lacks > 0
}
