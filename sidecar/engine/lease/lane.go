package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A lease binds its GPUs when its job cannot be stopped any more within its stop budget. A tenant's lane is
// the part of its share that it does not bind. Its young jobs run there at once. Jobs that outlive the stop
// allowance are stopped once and wait for GPUs outside the lane.

// Lane is the number of GPUs of a pool that are bound, and that tenants keep unbound.
type Lane struct {
	GPUs  cluster.MicroGPU // of the pool
	Keeps cluster.MicroGPU // lanes of all tenants
	Bound cluster.MicroGPU
	// Limited is true if of what others are due and want, or wanted lately, at most Most may be bound for long.
	Limited bool
	Most    cluster.MicroGPU
	Pays    cluster.GPUTime // limit on the cost of stops of leases that begin or are renewed
}

// denial is a candidate that may not bind GPUs within its tenant's share.
type denial struct {
	queue     *queue
	candidate int
}

// bindings counts GPUs by tenant, then pool, while leases are chosen.
type bindings struct {
	all   []cluster.MicroGPU // bound ones of all tenants, by pool
	of    [][]cluster.MicroGPU
	long  [][]cluster.MicroGPU   // of these, those of jobs that do not end soon
	holds [][]cluster.MicroGPU   // GPUs of leases
	told  [][]*cluster.BindLimit // by tenant, then pool: the limit that it has reached
	lanes []Lane                 // by pool; nil = no lanes
	fits  [][]cluster.MicroGPU   // by tenant, then pool: of what it wants, its waiting jobs could take that within its share; -1 = not known
	paid  []cluster.GPUTime      // by pool: what stops of new leases will cost
	rest  []besides              // by pool: for limitOf; nil = it was not asked for
}

// openBindings counts the GPUs before the choice begins.
func openBindings(in *Input, m *Memory, npools int) bindings {
	n := len(in.Tenants)
	m.rows = zeroed(m.rows, 3*n)
	rows := m.rows
	b := bindings{lanes: in.Lanes, paid: make([]cluster.GPUTime, npools), all: m.gpus.zeros(npools), of: rows[:n:n], long: rows[n : 2*n : 2*n], holds: rows[2*n:]}
	for p := range in.Lanes {
		b.all[p] = in.Lanes[p].Bound
	}
	for t := range in.Tenants {
		b.of[t], b.long[t], b.holds[t] = m.gpus.zeros(npools), m.gpus.zeros(npools), m.gpus.zeros(npools)
		for p := range in.Tenants[t].Shares {
			sh := &in.Tenants[t].Shares[p]
			b.of[t][p], b.long[t][p], b.holds[t][p] = sh.Bound, sh.Long, sh.Holds
		}
	}
	return b
}

// binds tells how a candidate binds the GPUs that it gets. Where GPUs are kept for others, a lease that can be ended later binds them
// too if the pool could not pay for that.
func (b *bindings) binds(k *Candidate, pool int) Binding {
	if k.Binds == Unbound && k.Ends.Cost > 0 && b.lanes != nil && b.lanes[pool].Limited && b.paid[pool]+k.In(pool).Over(k.Ends.Cost) > b.lanes[pool].Pays {
		return BindsLong
	}
	return k.Binds
}

// take counts the GPUs of a candidate's lease.
func (b *bindings) take(k *Candidate, pool int) {
	b.holds[k.Tenant][pool] += k.In(pool)
	if b.rest != nil {
		b.rest[pool].changed = append(b.rest[pool].changed, k.Tenant)
	}
	binds := b.binds(k, pool)
	if binds == Unbound {
		b.paid[pool] += k.In(pool).Over(k.Ends.Cost)
		return
	}
	b.all[pool] += k.In(pool)
	b.of[k.Tenant][pool] += k.In(pool)
	if binds == BindsLong {
		b.long[k.Tenant][pool] += k.In(pool)
	}
}

// beyondFor is the span for which the excess over a share is measured. The tenant, or the job within its
// tenant, must be owed that much before the job may bind the excess.
const beyondFor = cluster.Day

// mayBind reports whether a candidate may bind GPUs. It may within its tenant's share, less the lane. Beyond
// that, the tenant, or the job within its tenant, must be owed at least the excess for a day, so that no job
// starves. Slurm may start a loose candidate in any of its pools, so that it must be allowed in all.
func (c *chooser) mayBind(k *Candidate, pool int) bool {
	if len(c.in.Lanes) == 0 {
		return true
	}
	if k.Loose {
		return !slices.ContainsFunc(k.Pools, func(p int) bool { return !mayBindIn(c, k, p) })
	}
	return mayBindIn(c, k, pool)
}

func mayBindIn(c *chooser, k *Candidate, pool int) bool {
	sh := &c.in.Tenants[k.Tenant].Shares[pool]
	beyond := Beyond(sh.Entitlement-sh.Siblings, c.bound.of[k.Tenant][pool]+sh.Lane+k.In(pool))
	return beyond == 0 || max(sh.Owed, k.Priority.Owed) >= Worth(beyond, beyondFor)
}

// mayBindRest reports whether a candidate may bind GPUs that no other candidate took, except all tenants' lanes and what is
// kept for absent tenants; limit is the limit that does not let it, if it is that of bound GPUs. Without lanes, only barred
// candidates may not.
func (c *chooser) mayBindRest(k *Candidate, pool int) (limit *cluster.BindLimit, may bool) {
	if !k.Loose {
		return mayBindRestIn(c, k, pool)
	}
	for _, p := range k.Pools {
		if limit, may = mayBindRestIn(c, k, p); !may {
			break
		}
	}
	return limit, may
}

func mayBindRestIn(c *chooser, k *Candidate, pool int) (limit *cluster.BindLimit, may bool) {
	if k.Barred || c.bound.all[pool] > 0 && c.bound.all[pool]+k.In(pool) > c.in.Lanes[pool].GPUs-c.in.Lanes[pool].Keeps {
		return nil, false
	}
	limit = c.limitOf(k, pool)
	return limit, limit == nil
}

// MayBind reports whether a candidate that has got nothing may have GPUs of a pool after the choice, if it would bind them.
func (c *Choice) MayBind(candidate, pool int) bool {
	_, may := admits(c.by, &c.by.in.Candidates[candidate], pool)
	return may
}

// admits reports whether a candidate may have GPUs that no other candidate took: it does not bind them, or may. limit is as of
// mayBindRest.
func admits(c *chooser, k *Candidate, pool int) (limit *cluster.BindLimit, may bool) {
	if c.bound.binds(k, pool) == Unbound || !k.Barred && c.mayBind(k, pool) {
		return nil, true
	}
	return c.mayBindRest(k, pool)
}

// unbound is the reason of a candidate that may not bind GPUs of a pool; limit is that of bound GPUs, if it is the cause.
func unbound(c *chooser, pool int, limit *cluster.BindLimit) round.Passed {
	if limit != nil {
		return round.Passed{Code: cluster.ReasonBound, Pool: pool, Free: c.board.Idle(pool), Bound: limit}
	}
	return round.Passed{Code: cluster.ReasonLane, Pool: pool, Free: c.board.Idle(pool)}
}

// Late counts the GPUs that a candidate has got after the choice.
func (c *Choice) Late(candidate, pool int) { c.by.bound.take(&c.by.in.Candidates[candidate], pool) }

// Beyond returns the part of some GPUs that exceeds a share.
func Beyond(due, gpus cluster.MicroGPU) cluster.MicroGPU {
	return max(gpus-due, 0)
}

// Worth returns the GPU time of GPUs over a span.
func Worth(gpus cluster.MicroGPU, span cluster.Span) cluster.GPUTime {
	return cluster.GPUTime(cluster.MulDiv(int64(gpus), int64(span), int64(cluster.WholeGPU)))
}

// bindRest gives denied candidates the GPUs that no other candidate took and that they may bind, also those of ending leases, whose jobs
// are denied as well: tenants furthest behind go first.
func (c *chooser) bindRest(denied []denial) {
	c.rest, c.bound.fits = true, nil
	defer func() { c.rest = false }()
	h := newQueues(nil, c.in.Settings.Threshold)
	for _, d := range denied {
		k, pool := &c.in.Candidates[d.candidate], d.queue.pool
		if c.settled[d.candidate] {
			continue
		}
		limit, may := c.mayBindRest(k, pool)
		if may {
			c.lease(h, d.queue, d.candidate)
			continue
		}
		c.choice.Passed[d.candidate] = unbound(c, pool, limit)
		c.choice.Passed[d.candidate].Behind = d.queue.behind
	}
}

// limitOf returns the limit that keeps a candidate from binding GPUs beyond its tenant's share for long; nil = none does. Every
// tenant has had its turn, and keeps what it holds of its share. But it may want more of its share than fits on the GPUs that are
// free at this instant, or may have wanted it lately. These GPUs and the bound ones may take at most Most of what others are due
// and do not hold.
func (c *chooser) limitOf(k *Candidate, pool int) *cluster.BindLimit {
	if len(c.in.Lanes) == 0 || !c.in.Lanes[pool].Limited || c.bound.binds(k, pool) != BindsLong {
		return nil
	}
	lane := &c.in.Lanes[pool]
	x := c.bound.besides(c, k.Tenant, pool)
	own, part := &c.in.Tenants[k.Tenant].Shares[pool], x.of[k.Tenant]
	long := c.bound.long[k.Tenant][pool] + k.In(pool)
	wanted, lacked, kept := x.sum.wants-part.wants, x.sum.lacks-part.lacks, x.sum.keeps-part.keeps+max(long, part.holds)
	one := k.Worths.Of(pool)
	wanted, lacked = whole(wanted, one), whole(lacked, one) // nobody holds a part of a GPU
	over := min(wanted, kept+lacked-lane.GPUs)
	within := Beyond(own.lasting(), long) < one // parts of a GPU do not count
	if within || over <= lane.Most {
		return nil
	}
	return c.bound.tell(k.Tenant, pool, func() *cluster.BindLimit {
		at := x.most[0]
		if at == k.Tenant {
			at = x.most[1]
		}
		return &cluster.BindLimit{Tenant: c.in.Tenants[at].Name, Kept: wanted, Until: c.in.Tenants[at].Shares[pool].Away.Until,
			Held: max(over-k.In(pool), 0), Max: lane.Most}
	})
}

// besides is what tenants are due in a pool and do not hold, and what they keep. It is brought up to date where a lease has changed it.
type besides struct {
	of      []otherPart // by tenant
	sum     otherPart
	most    [2]int // the tenants that want most
	unknown int    // the tenant whose waiting jobs were not counted, since it asked itself; -1 = none
	changed []int  // tenants that got leases since then
}

// otherPart is one tenant's.
type otherPart struct {
	wants, lacks cluster.MicroGPU // of what it is due, now or lately, and of this, what it does not hold
	keeps, holds cluster.MicroGPU // GPUs that it binds for long or holds of its share, and the latter
}

// besides returns those of all tenants. The part of the tenant that asks need not be known.
func (b *bindings) besides(c *chooser, tenant, pool int) *besides {
	if b.rest == nil {
		b.rest = make([]besides, len(c.in.Lanes))
	}
	x := &b.rest[pool]
	if x.of == nil {
		*x = besides{of: make([]otherPart, len(c.in.Tenants)), most: [2]int{-1, -1}, unknown: tenant}
		for t := range c.in.Tenants {
			x.count(c, t, pool, t != tenant)
			switch wants := x.of[t].wants; {
			case wants <= 0:
			case x.most[0] < 0 || wants > x.of[x.most[0]].wants:
				x.most = [2]int{t, x.most[0]}
			case x.most[1] < 0 || wants > x.of[x.most[1]].wants:
				x.most[1] = t
			}
		}
	}
	if x.unknown >= 0 && x.unknown != tenant {
		x.changed, x.unknown = append(x.changed, x.unknown), -1
	}
	for _, t := range x.changed {
		x.count(c, t, pool, t != x.unknown)
	}
	x.changed = x.changed[:0]
	return x
}

// count brings a tenant's part up to date, without what it lacks if that is not asked for.
func (x *besides) count(c *chooser, t, pool int, lacks bool) {
	sh, was := &c.in.Tenants[t].Shares[pool], x.of[t]
	now := otherPart{wants: max(sh.Away.GPUs+sh.Wants, 0), holds: min(c.bound.holds[t][pool], sh.lasting())}
	now.keeps = max(c.bound.long[t][pool], now.holds)
	if lacks && now.wants > 0 {
		now.lacks = sh.Away.GPUs + min(max(sh.Wants-now.holds, 0), fitting(c, t, pool))
	}
	x.of[t] = now
	x.sum = otherPart{x.sum.wants + now.wants - was.wants, x.sum.lacks + now.lacks - was.lacks, x.sum.keeps + now.keeps - was.keeps, x.sum.holds + now.holds - was.holds}
}

// whole rounds a number of GPUs to whole devices; one is what a device counts as.
func whole(gpus, one cluster.MicroGPU) cluster.MicroGPU {
	return (gpus + one/2) / one * one
}

// fitting returns the GPUs of a pool, of those that a tenant wants, that its waiting jobs could take within its share: they do not bind
// them for long, or the share has room for them. GPUs kept for larger jobs would idle in vain: such jobs need shares of others, and their
// tenants take turns.
func fitting(c *chooser, tenant, pool int) cluster.MicroGPU {
	if c.bound.fits == nil {
		c.bound.fits = make([][]cluster.MicroGPU, len(c.in.Tenants))
		for t := range c.in.Tenants {
			c.bound.fits[t] = slices.Repeat([]cluster.MicroGPU{-1}, len(c.in.Lanes))
		}
	}
	gpus := &c.bound.fits[tenant][pool]
	if *gpus >= 0 {
		return *gpus
	}
	sh := &c.in.Tenants[tenant].Shares[pool]
	*gpus = 0
	for _, i := range c.in.Tenants[tenant].Jobs {
		if *gpus >= sh.Wants {
			break
		}
		k := &c.in.Candidates[i]
		if !k.Running && !c.settled[i] && slices.Contains(k.Pools, pool) &&
			(c.bound.binds(k, pool) != BindsLong || Beyond(sh.lasting(), c.bound.long[tenant][pool]+k.In(pool)) < k.Worths.Of(pool)) {
			*gpus += k.In(pool)
		}
	}
	return *gpus
}

// lasting returns the part of a share that nobody takes back: without repayments, and without what siblings leave to it.
func (sh *Share) lasting() cluster.MicroGPU { return cmp.Or(sh.Own, sh.Entitlement) - sh.Siblings }

// tell returns the limit that a tenant has reached in a pool, made once.
func (b *bindings) tell(tenant, pool int, limit func() *cluster.BindLimit) *cluster.BindLimit {
	if b.told == nil {
		b.told = make([][]*cluster.BindLimit, len(b.of))
	}
	if b.told[tenant] == nil {
		b.told[tenant] = make([]*cluster.BindLimit, len(b.all))
	}
	if b.told[tenant][pool] == nil {
		b.told[tenant][pool] = limit()
	}
	return b.told[tenant][pool]
}
