package lease

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// try looks for GPUs and takes them if they fit.
func (c *chooser) try(i, shape, pool, displace, spares int) (Grant, bool) {
	most := -1
	if c.in.Settings.MaxReclaims > 0 && c.reclaims > 0 {
		// The first gang of a round may displace as many leases as it needs. Otherwise a large one would
		// never get GPUs.
		if most = c.in.Settings.MaxReclaims - c.reclaims; most <= 0 {
			displace = ofNobody
		}
	}
	if c.in.Stops != nil && c.in.Stops.Shut() {
		displace = ofNobody
	}
	k := &c.in.Candidates[i]
	when := room(c, i)
	if when == Never {
		return Grant{}, false
	}
	p, ok := fit(c, i, Ask{Shape: shape, Pool: pool, Now: c.in.Now, End: max(k.Ends.By, Next(c.in.Now, c.in.Settings)),
		Displace: displace, Spares: spares, Stops: k.Binds == Unbound, Max: most, Sharer: sharer(c, k)})
	if !ok {
		return Grant{}, false
	}
	if c.in.Stops != nil && !c.in.Stops.May(k.Case, p.Displaced) {
		c.memory.waits[i] = true
		return Grant{}, false
	}
	if when == Later && !k.Running && p.At <= c.in.Now {
		keep(c, i) // a lease that ends now makes room for it, and is not renewed
		return Grant{}, false
	}
	if c.in.Limits != nil && !c.settled[i] && c.kept[i] == Never {
		c.in.Limits.Take(k.Case, !k.Running && p.At <= c.in.Now)
	}
	c.board.Take(p)
	if c.in.Stops != nil {
		c.in.Stops.Count(k.Case, p.Displaced)
	}
	c.reclaims += len(p.Displaced)
	g := Grant{Candidate: i, Pool: pool, Placement: p, End: Next(p.At, c.in.Settings)}
	c.settled[i] = true
	c.bound.take(k, pool)
	c.choice.Passed[i] = round.Passed{}
	c.choice.Grants = append(c.choice.Grants, g)
	return g, true
}

// fit finds GPUs for a candidate. One for which a move within its pool would pay moves to its fewest nodes. One that waits for its fewest nodes,
// or for few switches, takes no others, and it is noted if it could have these: it is then passed over by its own choice. A claim names its nodes.
func fit(c *chooser, i int, a Ask) (Placement, bool) {
	k := &c.in.Candidates[i]
	if a.Shape == k.Shape && k.stays(a.Pool) {
		at := slices.IndexFunc(k.Better, func(b Better) bool { return b.Pool == a.Pool })
		a.Together = at >= 0
		a.Near = a.Together && k.Better[at].Near
	}
	if c.in.Together == nil || k.Running || a.Shape != k.Shape {
		return c.board.Fit(a)
	}
	nodes, switches := c.in.Together(k.Case, a.Pool)
	a.Near = switches > c.in.Now
	a.Together = a.Near || nodes > c.in.Now
	p, ok := c.board.Fit(a)
	if ok || !a.Together {
		return p, ok
	}
	if a.Near {
		a.Near, a.Together = false, nodes > c.in.Now
		if _, could := c.board.Fit(a); could {
			c.memory.together[i] = switches
			return p, false
		}
	}
	if a.Together {
		a.Together = false
		if _, could := c.board.Fit(a); could {
			c.memory.together[i] = nodes
		}
	}
	return p, false
}

// chooses reports whether a candidate is without a lease because it waits for its fewest nodes.
func chooses(c *chooser, i int) bool { return c.in.Together != nil && c.memory.together[i] > 0 }

// sharer returns with whom a candidate may be on one GPU.
func sharer(c *chooser, k *Candidate) int {
	if c.in.Sharer == nil {
		return 0
	}
	return c.in.Sharer(k.Case)
}

// room tells when the limits have room for a candidate's new lease.
func room(c *chooser, i int) Room {
	switch {
	case c.in.Limits == nil || c.settled[i]: // a job that moves counts already
		return Now
	case c.kept[i] != Never:
		return c.kept[i]
	}
	return c.in.Limits.Room(c.in.Candidates[i].Case)
}

// keep keeps the limits' room for a waiting candidate without a lease.
func keep(c *chooser, i int) {
	if k := &c.in.Candidates[i]; c.in.Limits != nil && !k.Running && c.kept[i] == Never {
		if c.kept[i] = c.in.Limits.Room(k.Case); c.kept[i] != Never {
			c.in.Limits.Take(k.Case, c.kept[i] == Now)
		}
	}
}

// renewable renews a running candidate's lease on the board, if the limits leave it its part.
func renewable(c *chooser, k *Candidate) bool {
	return (c.in.Limits == nil || c.in.Limits.Room(k.Case) != Never) && c.board.Renew(k.Case)
}

// counts counts a renewed lease.
func counts(c *chooser, k *Candidate) {
	if c.in.Limits != nil {
		c.in.Limits.Take(k.Case, false)
	}
}
