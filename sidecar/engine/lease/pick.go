package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Pick is a candidate that a mechanism chose to run in a pool.
type Pick struct{ Candidate, Pool int }

// Mechanism chooses the candidates that hold leases in the coming term, and their pools. free lists the GPUs of
// the nodes that can be leased, by pool: idle ones, and those of leases that end. taken is, by candidate, the pool in which it has
// a lease or a claim already; -1 = none.
type Mechanism func(free [][]int, taken []int) []Pick

// servePicks gives leases to the candidates that the mechanism chooses, larger gangs first and running jobs before waiting ones. The rest
// of the GPUs is shared as without a mechanism. A gang that fits nowhere, because the free GPUs are scattered, is due.
func (c *chooser) servePicks(queues []*queue, npools int) {
	if c.in.Mechanism == nil {
		return
	}
	free := make([][]int, npools)
	for p := range free {
		free[p] = c.board.Free(p)
	}
	taken := slices.Repeat([]int{-1}, len(c.in.Candidates))
	for i := range c.in.Claims {
		taken[c.in.Claims[i].Candidate] = c.in.Claims[i].InPool
	}
	for i := range c.choice.Grants {
		taken[c.choice.Grants[i].Candidate] = c.choice.Grants[i].Pool
	}
	for _, i := range c.choice.Renewed {
		taken[i] = c.in.Candidates[i].Pools[0]
	}
	picks := c.in.Mechanism(free, taken)
	slices.SortStableFunc(picks, func(a, b Pick) int {
		x, y := &c.in.Candidates[a.Candidate], &c.in.Candidates[b.Candidate]
		return cmp.Or(cmp.Compare(y.GPUs, x.GPUs), cmp.Compare(last(x.stays(a.Pool)), last(y.stays(b.Pool))))
	})
	at := make(map[account]*queue, len(queues))
	for _, q := range queues {
		at[account{q.tenant, q.pool}] = q
	}
	picked := make([]bool, len(c.in.Candidates))
	for _, x := range picks {
		picked[x.Candidate] = true
		if k := &c.in.Candidates[x.Candidate]; k.stays(x.Pool) {
			c.board.Prefer(k.Case)
		}
	}
	for _, x := range picks {
		k := &c.in.Candidates[x.Candidate]
		q := at[account{k.Tenant, x.Pool}]
		if q == nil || c.bound.binds(k, q.pool) != Unbound && (k.Barred || !c.mayBind(k, q.pool)) {
			continue
		}
		c.pick(q, x, picked)
	}
}

// account is a tenant in a pool.
type account struct{ tenant, pool int }

// stays reports whether a candidate runs in a pool.
func (k *Candidate) stays(pool int) bool { return k.Running && k.Pools[0] == pool }

// pick gives one chosen candidate its lease.
func (c *chooser) pick(q *queue, x Pick, picked []bool) {
	k := &c.in.Candidates[x.Candidate]
	if k.stays(x.Pool) {
		if renewable(c, k) {
			c.renew(q, x.Candidate)
			return
		}
		if i := c.instead(x, picked); i >= 0 {
			x.Candidate, k = i, &c.in.Candidates[i]
		}
	}
	if g, ok := c.try(x.Candidate, k.Shape, x.Pool, ofAnybody, 0); ok {
		c.charge(q, k.In(q.pool), g.End.Sub(g.At))
	} else if !k.Running && k.GPUs > cluster.WholeGPU && !chooses(c, x.Candidate) {
		c.choice.Due = append(c.choice.Due, Due(x))
	}
}

// instead returns a waiting candidate of the same party and size for one that a larger gang displaces; -1 = none. It starts at once,
// while the other would have to stop first.
func (c *chooser) instead(x Pick, picked []bool) int {
	k := &c.in.Candidates[x.Candidate]
	for _, i := range c.in.Tenants[k.Tenant].Jobs {
		o := &c.in.Candidates[i]
		if c.in.Parties[i] == c.in.Parties[x.Candidate] && o.GPUs == k.GPUs && !o.Running && !o.IdleOnly && o.Binds == Unbound && !picked[i] && !c.settled[i] && slices.Contains(o.Pools, x.Pool) {
			picked[i] = true
			return i
		}
	}
	return -1
}

// renew records the renewal of a running candidate.
func (c *chooser) renew(q *queue, i int) {
	k := &c.in.Candidates[i]
	c.settled[i] = true
	counts(c, k)
	c.choice.Renewed = append(c.choice.Renewed, i)
	c.choice.Passed[i] = round.Passed{}
	c.bound.take(k, q.pool)
	c.charge(q, k.In(q.pool), c.in.Settings.Term)
	c.served[q.pool].renewed = true
}
