package cells

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Lend gives a tenant's gang an opportunistic lease on unused GPUs, farthest from guaranteed
// leases: on nodes with the fewest GPUs in bound cells, under the emptiest larger cell, on the
// fullest node, the last by name. An error is a Refusal, and then nothing has changed.
func (s *State) Lend(q Request) (Grant, error) {
	asks, refusal := s.asks(&q)
	if len(asks) == 0 {
		return Grant{}, refusal
	}
	l := s.Leases.open(q.Job, q.VC, q.Priority, cluster.Opportunistic)
	grant, refusal, ok := s.lend(l, &q, asks)
	if ok {
		grant, ok = avoid(s, q, l, grant, func(q *Request) (Grant, bool) {
			asks, _ := s.asksOf(q)
			grant, _, ok := s.lend(l, q, asks)
			return grant, ok
		}, func(Grant) { s.Leases.depart(l) })
	}
	if !ok {
		s.Leases.close(l)
		return Grant{}, refusal
	}
	grant.Parts = s.Leases.parts(&s.Leases.leases[l])
	return grant, nil
}

// lend puts an opportunistic lease on unused GPUs.
func (s *State) lend(l int32, q *Request, asks []ask) (Grant, Refusal, bool) {
	var refusal Refusal
	for i := range asks {
		a := &asks[i]
		placed := s.lendGang(l, a, q.Nodes)
		if placed == q.Nodes {
			return Grant{}, refusal, true
		}
		s.Leases.depart(l)
		if refusal.Code == "" {
			refusal = Refusal{NoneToLend, q.VC, a.c.name, a.c.tree.levels[max(a.level, a.within)].name, q.Nodes, placed, false}
		}
	}
	for i := range asks {
		if q.Soft && len(q.Must) == 0 && s.lendSpread(l, &asks[i], q.Nodes*q.GPUs) {
			return Grant{Relaxed: true}, refusal, true
		}
		s.Leases.depart(l)
	}
	return Grant{}, refusal, false
}

// lendGang places parts, and gives the number of placed ones.
func (s *State) lendGang(l int32, a *ask, n int) int {
	a.gang = s.nextGang()
	if a.within >= 0 {
		return s.lendWithin(l, a, n)
	}
	var passed []int
	placed := 0
	for placed < n {
		one := a
		if placed < len(a.must) {
			on := a.on(a.must[placed])
			one = &on
		}
		at, gpus := a.c.lendable(one, &passed)
		if one != a { // others of them may do for other parts
			for _, at := range passed {
				a.c.touch(at)
			}
			passed = passed[:0]
		}
		if gpus == 0 {
			break
		}
		s.Leases.visit(l, part{int16(a.ci), -1, int32(at), gpus})
		a.note(&a.c.nodes[at])
		placed++
	}
	for _, at := range passed {
		a.c.touch(at)
	}
	return placed
}

// lendSpread places GPUs wherever some are idle, on few nodes.
func (s *State) lendSpread(l int32, a *ask, left int) bool {
	spread := ask{ci: a.ci, c: a.c, level: a.c.tree.nodeAt, admits: a.admits, within: -1, gpus: a.c.tree.levels[a.c.tree.nodeAt].size}
	for left > 0 && spread.gpus > 0 {
		spread.gpus = min(spread.gpus, left)
		if s.lendGang(l, &spread, 1) == 1 {
			left -= spread.gpus
		} else {
			spread.gpus--
		}
	}
	return left == 0
}

// lendWithin places all parts in one cell larger than a node, the farthest that will do.
func (s *State) lendWithin(l int32, a *ask, n int) int {
	c := a.c
	up, best, most := &c.tree.levels[a.within], -1, 0
	for i := up.n - 1; i >= 0; i-- {
		parts := 0
		for at, last := c.tree.span(a.within, i); at < last; at++ {
			parts += a.fits(&c.nodes[at])
		}
		most = max(most, parts)
		if parts >= n && (best < 0 || up.taken[i] < up.taken[best]) {
			best = i
		}
	}
	if best < 0 {
		return most
	}
	first, last := c.tree.span(a.within, best)
	order := make([]int, 0, last-first)
	for at := last - 1; at >= first; at-- {
		order = append(order, at)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(c.remote(x), c.remote(y)) })
	placed := 0
	for _, at := range order {
		for range min(a.fits(&c.nodes[at]), n-placed) {
			d := &c.nodes[at]
			gpus, _ := c.tree.pick(ones(0, len(c.lend)), d.idle(c), d.fenced, a.gpus, a.level, true)
			s.Leases.visit(l, part{int16(a.ci), -1, int32(at), gpus})
			placed++
		}
	}
	return placed
}

// fits gives the number of a gang's parts that fit on the idle GPUs of a node.
func (a *ask) fits(d *node) int {
	if !a.takes(d) {
		return 0
	}
	n := bits.OnesCount64(d.idle(a.c)) / a.gpus
	if a.apart {
		return min(n, 1)
	}
	return n
}

// idle gives the unused GPUs of a node.
func (d *node) idle(c *chain) uint64 {
	if d.name == "" {
		return 0
	}
	return ones(0, len(c.lend)) &^ (d.used | d.lent | d.bad)
}

// remote is lower for nodes that are better for lending.
func (c *chain) remote(at int) uint64 {
	d := &c.nodes[at]
	return uint64(bits.OnesCount64(d.fenced))<<8 | uint64(bits.OnesCount64(d.idle(c)))
}

// lendable finds GPUs for a part. Unsuitable nodes are skipped, recorded in passed, and not
// chosen again until they are touched.
func (c *chain) lendable(a *ask, passed *[]int) (at int, gpus uint64) {
	r := &c.lendings()[a.gpus-1]
	for {
		best := r.best.least(0)
		if best == none {
			return 0, 0
		}
		group := r.best.width - 1 - int(best&(ChainGPUs-1))
		at = group*r.width + r.kids.width - 1 - int(uint32(r.kids.least(group)))
		d := &c.nodes[at]
		if a.takes(d) {
			if gpus, _ = c.tree.pick(ones(0, len(c.lend)), d.idle(c), d.fenced, a.gpus, a.level, true); gpus != 0 {
				return at, gpus
			}
		}
		c.rankLend(a.gpus-1, at, none)
		*passed = append(*passed, at)
	}
}

// lendings updates the rankings for lending, and gives them.
func (c *chain) lendings() []ranking {
	for _, i := range c.dirty {
		d := &c.nodes[i]
		d.dirty = false
		idle, key := bits.OnesCount64(d.idle(c)), c.remote(int(i))
		for g := range c.lend {
			if g < idle {
				c.rankLend(g, int(i), key)
			} else {
				c.rankLend(g, int(i), none)
			}
		}
	}
	c.dirty = c.dirty[:0]
	return c.lend
}

// rankLend updates a node in a ranking for lending.
func (c *chain) rankLend(g, at int, key uint64) {
	r := &c.lend[g]
	group := at / r.width
	if key != none {
		key = key<<32 | uint64(r.kids.width-1-at%r.width)
	}
	r.kids.set(group, at%r.width, key)
	if key = r.kids.least(group); key != none {
		full := uint64(0)
		if c.tree.nodeAt < c.tree.top() {
			full = uint64(c.tree.levels[c.tree.nodeAt+1].taken[group])
		}
		key >>= 32
		key = key>>8<<50 | min(full, ChainGPUs-1)<<29 | key&0xff<<21 | uint64(r.best.width-1-group)
	}
	r.best.set(0, group, key)
}

// visit puts an opportunistic lease on GPUs of a node.
func (s *roster) visit(l int32, p part) {
	s.leases[l].parts = append(s.leases[l].parts, p)
	on := &s.guests[p.chain][p.node]
	*on = append(*on, guest{l, p.gpus})
	s.host(p)
}

// depart takes an opportunistic lease off all its nodes.
func (s *roster) depart(l int32) {
	f := &s.leases[l]
	for _, p := range f.parts {
		on := &s.guests[p.chain][p.node]
		*on = slices.DeleteFunc(*on, func(g guest) bool { return g.lease == l })
		s.host(p)
	}
	f.parts = f.parts[:0]
}

// recall marks an opportunistic lease as leaving, or as staying after all. Taking the GPUs of a
// leaving lease causes no further disturbance.
func (s *roster) recall(l int32, leaving bool) {
	s.leases[l].leaving = leaving
	for _, p := range s.leases[l].parts {
		s.host(p)
	}
}

// host recounts the opportunistic leases on the node of a part.
func (s *roster) host(p part) {
	var lent, stays uint64
	for _, g := range s.guests[p.chain][p.node] {
		lent |= g.gpus
		if !s.leases[g.lease].leaving {
			stays |= g.gpus
		}
	}
	s.allot.host(int(p.chain), int(p.node), lent, stays)
}

// stay adds n to the GPUs of a cell under opportunistic leases that stay.
func (c *tree) stay(k, i, n int) {
	if n == 0 {
		return
	}
	l := &c.levels[k]
	l.stays[i] += int32(n)
	if l.taken[i] == 0 && c.rank(k, i) {
		c.regroup(k, i/l.order.width)
	}
}

// MaxMin divides n GPUs among tenants with these demands: weighted max-min (§3.3). The rest goes
// by largest remainder, then by order. Tenants of weight 0 get what the others leave. Weights are
// at most 2^40.
func MaxMin(n int, demands []int, weights []int64) []int {
	shares := make([]int, len(demands))
	n = fill(n, demands, weights, shares)
	rest, equal := make([]int, len(demands)), make([]int64, len(demands))
	for i := range demands {
		if weights[i] == 0 {
			rest[i], equal[i] = demands[i], 1
		}
	}
	fill(n, rest, equal, shares)
	return shares
}

// fill adds to the shares of tenants with a weight, and gives the rest.
func fill(n int, demands []int, weights []int64, shares []int) int {
	var open []int
	var sum int64
	for i := range demands {
		if weights[i] > 0 && demands[i] > 0 {
			open = append(open, i)
			sum += weights[i]
		}
	}
	for again := true; again; {
		again = false
		room, of := int64(n), sum
		open = slices.DeleteFunc(open, func(i int) bool {
			if cluster.MulDiv(room, weights[i], of) < int64(demands[i]) {
				return false
			}
			shares[i] += demands[i]
			n -= demands[i]
			sum -= weights[i]
			again = true
			return true
		})
	}
	if len(open) == 0 {
		return n
	}
	all := int64(n)
	slices.SortStableFunc(open, func(a, b int) int {
		return cmp.Compare(all*weights[b]%sum, all*weights[a]%sum)
	})
	for _, i := range open {
		share := int(cluster.MulDiv(all, weights[i], sum))
		shares[i] += share
		n -= share
	}
	for _, i := range open[:n] {
		shares[i]++
	}
	return 0
}
