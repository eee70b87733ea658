package lease

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A lease binds its GPUs when its job cannot be stopped any more within its stop budget. A tenant's lane is
// the part of its share that it does not bind. Its young jobs run there at once. Jobs that outlive the stop
// allowance are stopped once and wait for GPUs outside the lane.

// Lane is the number of GPUs of a pool that are bound, and that tenants keep unbound.
type Lane struct {
	GPUs  int // of the pool
	Keeps int // lanes of all tenants
	Bound int
}

// denial is a candidate that may not bind GPUs within its tenant's share.
type denial struct {
	queue     *queue
	candidate int
}

// openLanes counts the bound GPUs before the choice begins.
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

// bind counts the GPUs of a candidate's lease if it binds them.
func (c *chooser) bind(k *Candidate, pool int) {
	if k.Binds {
		c.bound[pool] += k.GPUs
		c.boundOf[k.Tenant][pool] += k.GPUs
	}
}

// beyondFor is the span for which the excess over a share is measured. The tenant, or the job within its
// tenant, must be owed that much before the job may bind the excess.
const beyondFor = cluster.Day

// mayBind reports whether a candidate may bind GPUs. It may within its tenant's share, less the lane. Beyond
// that, the tenant, or the job within its tenant, must be owed at least the excess for a day, so that no job
// starves.
func (c *chooser) mayBind(q *queue, k *Candidate) bool {
	if len(c.Lanes) == 0 {
		return true
	}
	sh := &c.Tenants[k.Tenant].Shares[q.pool]
	beyond := Beyond(q.entitled, c.boundOf[k.Tenant][q.pool]+sh.Lane+k.GPUs)
	return beyond == 0 || max(sh.Owed, k.Owed) >= Worth(beyond, beyondFor)
}

// Beyond returns the part of some GPUs that exceeds a share.
func Beyond(due cluster.MicroGPU, gpus int) cluster.MicroGPU {
	return max(cluster.MicroGPU(gpus)*cluster.WholeGPU-due, 0)
}

// Worth returns the GPU time of GPUs over a span.
func Worth(gpus cluster.MicroGPU, span cluster.Span) cluster.GPUTime {
	return cluster.GPUTime(cluster.MulDiv(int64(gpus), int64(span), int64(cluster.WholeGPU)))
}

// bindRest gives denied candidates the GPUs that no other candidate took, except all tenants' lanes. Without
// lanes, only barred candidates are denied.
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
