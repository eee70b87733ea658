package lease

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// fillsARound limits the grants that fill looks at in a round.
const fillsARound = 64

// fill takes new leases back from small jobs where a larger job of the same party can use the GPUs beside them, too. No
// waiting job of a tenant with an entitlement there fits into such a gap, so that it would go to a tenant without one,
// term after term. A job gives way while it has received half of what it is due. first is the first grant that may be
// taken back.
func (c *chooser) fill(queues []*queue, first int) {
	if c.Settings.Divide == "" {
		return
	}
	left, gaps := fillsARound, c.gaps()
	for at := len(c.choice.Grants) - 1; at >= first && left > 0; at-- {
		g := &c.choice.Grants[at]
		k := &c.Candidates[g.Candidate]
		if c.Tenants[k.Tenant].Turns == nil || gaps[g.Pool] == 0 || k.Running || k.Binds || k.Urgent || k.Short {
			continue
		}
		left--
		q := queues[slices.IndexFunc(queues, func(q *queue) bool { return q.tenant == k.Tenant && q.pool == g.Pool })]
		for _, i := range c.larger(q, g, k.GPUs+gaps[g.Pool]) {
			p, ok := c.replace(q, g, i)
			if !ok {
				continue
			}
			gaps[g.Pool] -= c.Candidates[i].GPUs - k.GPUs
			if c.Candidates[i].Running {
				c.choice.Grants, c.choice.Renewed = slices.Delete(c.choice.Grants, at, at+1), append(c.choice.Renewed, i)
			} else {
				p.Displaced = append(p.Displaced, g.Displaced...)
				*g = Grant{Candidate: i, Pool: q.pool, Placement: p, End: Next(p.At, c.Settings)}
			}
			break
		}
	}
}

// gaps returns, by pool, the GPUs that no lease keeps so far.
func (c *chooser) gaps() []int {
	out := make([]int, len(c.served))
	for p := range out {
		out[p] = c.board.Idle(p)
	}
	for i := range c.Candidates {
		if k := &c.Candidates[i]; k.Running && !c.settled[i] && len(k.Pools) > 0 {
			out[k.Pools[0]] += k.GPUs
		}
	}
	return out
}

// larger returns the candidates of a grant's party that could use its GPUs and others, at most so many: the first of each
// size, the largest size first. They wait, or their leases were displaced for the grant.
func (c *chooser) larger(q *queue, g *Grant, most int) (out []int) {
	old := &c.Candidates[g.Candidate]
	for _, i := range c.Tenants[q.tenant].Turns[q.pool] {
		k := &c.Candidates[i]
		switch {
		case c.settled[i] || k.GPUs <= old.GPUs || k.GPUs > most || k.Party != old.Party || k.Binds || k.IdleOnly || k.idles(q.pool):
		case k.Running && !slices.Contains(g.Displaced, k.Case):
		case !slices.ContainsFunc(out, func(o int) bool { return c.Candidates[o].GPUs == k.GPUs }):
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(i, j int) int { return cmp.Compare(c.Candidates[j].GPUs, c.Candidates[i].GPUs) })
	return out
}

// replace gives the GPUs of a grant, and others beside them that no lease keeps, to another candidate if it fits there. A
// candidate whose lease was displaced stays where it was.
func (c *chooser) replace(q *queue, g *Grant, i int) (p Placement, ok bool) {
	k, less := &c.Candidates[i], c.Candidates[g.Candidate].GPUs
	if q.holds -= less; c.overBurst(q, i) {
		q.holds += less
		return p, false
	}
	c.board.GiveBack(g.Placement)
	if k.Running {
		p, ok = c.board.Stay(k.Case)
	} else {
		p, ok = c.board.Fit(c.ask(k, k.Shape, q.pool, ofAnybody))
	}
	if !ok {
		q.holds += less
		c.board.Take(Placement{Nodes: g.Nodes, At: g.At})
		return p, false
	}
	q.holds += k.GPUs
	c.board.Take(p)
	c.reclaims += len(p.Displaced)
	c.settled[g.Candidate], c.settled[i] = false, true
	c.passOver(q, g.Candidate, cluster.ReasonBehind)
	c.choice.Passed[i] = round.Passed{}
	return p, true
}
