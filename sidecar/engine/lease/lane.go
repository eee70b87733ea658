package lease

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A lease binds its GPUs when its job cannot be stopped any more within its stop budget. A tenant's lane is the part of
// its due that it does not bind: there its young jobs run at once, and those that outlive their budget's allowance are
// stopped once and wait for GPUs outside the lane.

// Lane is what is bound of a pool, and what tenants keep unbound.
type Lane struct {
	GPUs  int // of the pool
	Keeps int // lanes of all tenants
	Bound int
}

// denial is a candidate whose tenant's due does not let it bind GPUs.
type denial struct {
	queue     *queue
	candidate int
}

// openLanes counts what is bound before anything is chosen.
func (c *chooser) openLanes(npools int) {
	c.bound, c.boundOf = make([]int, npools), make([][]int, len(c.Tenants))
	for p := range c.Lanes {
		c.bound[p] = c.Lanes[p].Bound
	}
	for t := range c.Tenants {
		c.boundOf[t] = make([]int, npools)
		for p := range c.Tenants[t].Shares {
			c.boundOf[t][p] = c.Tenants[t].Shares[p].Bound
		}
	}
}

// bind notes that a candidate has a lease, if that binds its GPUs.
func (c *chooser) bind(k *Candidate, pool int) {
	if k.Binds {
		c.bound[pool] += k.GPUs
		c.boundOf[k.Tenant][pool] += k.GPUs
	}
}

// beyondFor is for how long a tenant, or a job within its tenant, must be owed what goes beyond the due for the job to
// bind that.
const beyondFor = cluster.Day

// mayBind tells whether a candidate may bind GPUs: within its tenant's due, its lane left out; beyond that where the
// tenant, or the job within its tenant, is owed as much as that is in a day, so that no job starves.
func (c *chooser) mayBind(q *queue, k *Candidate) bool {
	if len(c.Lanes) == 0 {
		return true
	}
	sh := &c.Tenants[k.Tenant].Shares[q.pool]
	beyond := Beyond(q.entitled, c.boundOf[k.Tenant][q.pool]+sh.Lane+k.GPUs)
	return beyond == 0 || max(sh.Owed, k.Owed) >= Worth(beyond, beyondFor)
}

// Beyond gives how much of some GPUs is beyond a due.
func Beyond(due cluster.MicroGPU, gpus int) cluster.MicroGPU {
	return max(cluster.MicroGPU(gpus)*cluster.WholeGPU-due, 0)
}

// Worth gives what GPUs are in a span.
func Worth(gpus cluster.MicroGPU, span cluster.Span) cluster.GPUTime {
	return cluster.GPUTime(cluster.MulDiv(int64(gpus), int64(span), int64(cluster.WholeGPU)))
}

// bindRest gives those that were denied what nobody else wants, all tenants' lanes left out. Where there are no lanes only
// those were denied that are barred.
func (c *chooser) bindRest(denied []denial) {
	h := newQueues(nil, c.Settings.Threshold)
	for _, d := range denied {
		k, pool := &c.Candidates[d.candidate], d.queue.pool
		switch {
		case c.settled[d.candidate]:
		case !k.Barred && (c.bound[pool] == 0 || c.bound[pool]+k.GPUs <= c.Lanes[pool].GPUs-c.Lanes[pool].Keeps):
			c.lease(h, d.queue, d.candidate)
		default:
			c.choice.Passed[d.candidate] = round.Passed{Code: cluster.ReasonLane, Pool: pool, Free: c.board.Idle(pool), Behind: d.queue.behind}
		}
	}
}
