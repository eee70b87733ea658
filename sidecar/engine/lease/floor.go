package lease

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// serveFloors gives tenants what they lack of their floors where debts are repaid, before all others and however far ahead they are.
// Deficits, which rank tenants, would let one that is owed much take all GPUs until it is even: repayments move
// entitlements only. A tenant that an administrator puts first goes first, in the order of its jobs, then the one that lacks most, with its
// largest jobs first: small ones would keep them out, hour after hour.
func serveFloors(c *chooser, queues []*queue) {
	lacking := make([]bool, len(c.served)) // by pool
	for _, q := range queues {
		lacking[q.pool] = lacking[q.pool] || lacks(c, q)
	}
	var all floors
	for at, q := range queues {
		if !lacks(c, q) && (!q.boost || !lacking[q.pool]) {
			continue
		}
		jobs := slices.Clone(q.jobs)
		if !q.boost {
			slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(c.in.Candidates[b].GPUs, c.in.Candidates[a].GPUs) })
		}
		all = append(all, floor{q, at, shortfall(c, q), jobs})
	}
	heap.Init(&all)
	was := slices.Clone(c.served) // others are compared with those that go by their deficits
	for len(all) > 0 {
		f := &all[0]
		if len(f.jobs) == 0 || !f.boost && !misses(c, f.queue, 0) {
			heap.Pop(&all)
			continue
		}
		k := &c.in.Candidates[f.jobs[0]]
		fits := keepFloor(c, f.queue, f.jobs[0])
		if f.jobs = f.jobs[1:]; !fits {
			f.jobs = slices.DeleteFunc(f.jobs, func(i int) bool {
				x := &c.in.Candidates[i]
				return x.Shape == k.Shape && x.Binds == k.Binds && !x.Running
			})
		}
		f.short = shortfall(c, f.queue)
		heap.Fix(&all, 0)
	}
	copy(c.served, was)
}

// floor is a queue that gets what it lacks of its floor.
type floor struct {
	*queue
	at    int          // among the queues
	short cluster.Span // of its floor, as time at its due
	jobs  []int        // that are left
}

// floors is a heap with the queue first that has its turn.
type floors []floor

func (f floors) Len() int      { return len(f) }
func (f floors) Swap(i, k int) { f[i], f[k] = f[k], f[i] }
func (f *floors) Push(x any)   { *f = append(*f, x.(floor)) }

func (f floors) Less(i, k int) bool {
	if f[i].boost != f[k].boost {
		return f[i].boost
	}
	return cmp.Or(cmp.Compare(f[k].short, f[i].short), f[i].at-f[k].at) < 0
}

func (f *floors) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// lacks reports whether a queue gets what it lacks of its floor before others.
func lacks(c *chooser, q *queue) bool { return misses(c, q, 0) && q.entitled > 0 && !q.spent }

// keepFloor gives a candidate a lease before others, if it may have one here and now; else it waits for its turn. It reports whether others
// like it may fit.
func keepFloor(c *chooser, q *queue, i int) bool {
	k := &c.in.Candidates[i]
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
		c.charge(q, k.In(q.pool), g.End.Sub(g.At))
	}
	c.reclaims += before
	return ok || when != Now
}

// shortfall returns what a queue lacks of its floor as time at its tenant's due.
func shortfall(c *chooser, q *queue) cluster.Span {
	return Cost(cmp.Or(c.in.Tenants[q.tenant].Shares[q.pool].Own, q.entitled), cluster.WholeGPU, cluster.Span(max(q.lacks, 0)))
}

// misses reports whether a queue lacks more of its floor than its tenant's largest gang, and so many GPUs, for one term.
func misses(c *chooser, q *queue, gpus cluster.MicroGPU) bool {
	return q.lacks > (c.in.Worths.In(q.pool, c.in.Tenants[q.tenant].Gang) + gpus).Over(c.in.Settings.Term)
}

// lacking reports the same of a tenant in a pool before it has a queue, less what is paid already.
func lacking(c *chooser, tenant, pool int, paid []payment) bool {
	lacks := c.in.Tenants[tenant].Shares[pool].Lacks - c.in.Worths.In(pool, c.in.Tenants[tenant].Gang).Over(c.in.Settings.Term)
	for _, p := range paid {
		if p.tenant == tenant && p.pool == pool {
			lacks -= p.gpus.Over(p.span)
		}
	}
	return lacks > 0
}
