package lease

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// without drops the gangs that have a lease.
func (c *chooser) without(gangs []Due) []Due {
	return slices.DeleteFunc(gangs, func(d Due) bool { return c.settled[d.Candidate] })
}

// serveClaims gives leases to candidates with claims, and returns the charges to their tenants. A claim that
// is not served yet keeps longer leases off its nodes. A claim made when the displaced jobs got their notice
// is a promise for this boundary. A claim for a job's first lease is served even if its tenant is far ahead. None is
// served beyond the limit of bound GPUs. Claims of tenants that lack GPUs of their floors go first: one may find its GPUs taken.
func (c *chooser) serveClaims(claims []Claimed) (paid []payment) {
	if !slices.ContainsFunc(claims, func(cl Claimed) bool { return lacking(c, c.in.Candidates[cl.Candidate].Tenant, cl.InPool, nil) }) {
		return serveClaimsOf(c, claims, nil)
	}
	var later []Claimed
	for _, cl := range claims {
		if !lacking(c, c.in.Candidates[cl.Candidate].Tenant, cl.InPool, paid) {
			later = append(later, cl)
			continue
		}
		paid = serveClaimsOf(c, []Claimed{cl}, paid)
	}
	return serveClaimsOf(c, later, paid)
}

// serveClaimsOf serves claims in their order, and adds the charges to paid.
func serveClaimsOf(c *chooser, claims []Claimed, paid []payment) []payment {
	for at := range claims {
		cl := &claims[at]
		k := &c.in.Candidates[cl.Candidate]
		if !Promises(&cl.Claim, c.in.Settings) && !k.Priority.Unserved && !lacking(c, k.Tenant, cl.InPool, paid) && c.unfair(k, cl.InPool) {
			continue
		}
		if c.limitOf(k, cl.InPool) != nil {
			continue
		}
		g, ok := Grant{}, false
		if !k.Running {
			g, ok = c.try(cl.Candidate, k.Shape, cl.InPool, ofNobody, 0)
		}
		if !ok {
			g, ok = c.try(cl.Candidate, cl.Shape, cl.InPool, ofAnybody, 0)
		}
		if ok {
			paid = append(paid, payment{k.Tenant, cl.InPool, k.In(cl.InPool), g.End.Sub(g.At)})
			continue
		}
		keep(c, cl.Candidate) // from other jobs, as the nodes
		c.board.Claim(cl.Nodes, cl.At)
		c.claimed[k.Tenant][cl.InPool] += k.In(cl.InPool)
		c.choice.Passed[cl.Candidate] = round.Passed{Code: cluster.ReasonClaim, Pool: cl.InPool}
	}
	return paid
}

// Promises reports whether a claim was made when the jobs that make room for it got their notice, or later.
func Promises(cl *cluster.Claim, s *cluster.Settings) bool {
	return cl.Made.Add(max(s.Notice, s.NoticeMax)) >= cl.At
}

// serveTrials gives trials their leases, and returns the charges to their tenants, as for any lease.
func (c *chooser) serveTrials(trials []Trial) (paid []payment) {
	for _, t := range trials {
		k := &c.in.Candidates[t.Candidate]
		if c.settled[t.Candidate] || k.IdleOnly || !t.Even && c.unfair(k, t.Pool) || c.limitOf(k, t.Pool) != nil {
			continue
		}
		displace := ofAnybody
		if t.Idle {
			displace = ofNobody
		}
		if g, ok := c.try(t.Candidate, k.Shape, t.Pool, displace, 0); ok {
			paid = append(paid, payment{k.Tenant, t.Pool, k.In(t.Pool), g.End.Sub(g.At)})
		}
	}
	return paid
}

// unfair reports whether another tenant is further behind than the candidate's tenant by more than the cost
// of the lease. The candidate then waits for its tenant's turn.
func (c *chooser) unfair(k *Candidate, pool int) bool {
	own := &c.in.Tenants[k.Tenant].Shares[pool]
	for t := range c.in.Tenants {
		other := &c.in.Tenants[t]
		if t != k.Tenant && len(other.Jobs) > 0 && other.Shares[pool].Behind-own.Behind > Cost(own.Entitlement, k.In(pool), c.in.Settings.Term) {
			return true
		}
	}
	return false
}
