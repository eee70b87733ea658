package forecast

import (
	"math"
	"slices"
)

// Owners of leases that a job may displace, besides a tenant.
const (
	nobody  = -1
	anybody = -2
)

// place starts a waiting job in a pool, if it fits; displace says whose undecided leases may end for it.
func (r *run) place(q *queue, l *life, displace int32) bool {
	r.scratch.mover = l.tenant
	holds := r.find(q.pool, l, displace)
	if holds == nil {
		return false
	}
	for _, h := range holds {
		r.clear(h, displace)
	}
	r.start(l, holds)
	r.pay(q, l)
	return true
}

// spread gives on how many nodes of a size a shape goes, and how many GPUs it needs on each; false = it cannot.
func (x *shape) spread(size int32) (nodes, each int32, ok bool) {
	nodes = max(x.nodes, (x.gpus+size-1)/size)
	if x.perNode > 0 {
		nodes = (x.gpus + x.perNode - 1) / x.perNode
	}
	if x.most > 0 && nodes > x.most {
		return 0, 0, false
	}
	each = (x.gpus + nodes - 1) / nodes
	return nodes, each, each <= size
}

// find gives the nodes of a pool for a job: those with least idle GPUs that suffice, else those whose leases are displaced
// at least loss; nil = none.
func (r *run) find(pool int32, l *life, displace int32) []hold {
	x := &r.shapes[l.shape]
	size := int32(len(r.rooms[pool]) - 1)
	nodes, each, ok := x.spread(size)
	if !ok {
		return nil
	}
	if displace == nobody && !r.room(pool, nodes, each) {
		return nil
	}
	if nodes == 1 {
		n := r.best(pool, x.groups, each, displace)
		if n < 0 {
			return nil
		}
		r.scratch.holds = append(r.scratch.holds[:0], hold{n, each})
		return r.scratch.holds
	}
	type found struct {
		node  int32
		score float64
	}
	var all []found
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.pool != pool || x.groups>>n.group&1 == 0 || r.closed[i] {
			continue
		}
		if score, ok := r.score(int32(i), each, displace); ok {
			all = append(all, found{int32(i), score})
		}
	}
	if len(all) < int(nodes) {
		return nil
	}
	slices.SortStableFunc(all, func(a, b found) int {
		if a.score < b.score {
			return -1
		} else if a.score > b.score {
			return 1
		}
		return 0
	})
	out, left := r.scratch.holds[:0], x.gpus
	for _, f := range all[:nodes] {
		take := min(each, left)
		left -= take
		out = append(out, hold{f.node, take})
	}
	r.scratch.holds = out
	return out
}

// room tells whether enough nodes of a pool have idle GPUs.
func (r *run) room(pool, nodes, each int32) bool {
	for g := len(r.rooms[pool]) - 1; g >= int(each) && nodes > 0; g-- {
		nodes -= r.rooms[pool][g]
	}
	return nodes <= 0
}

// best gives the best node for GPUs on one node; -1 = none.
func (r *run) best(pool int32, groups uint64, gpus, displace int32) int32 {
	best, least := int32(-1), math.Inf(1)
	idle := r.room(pool, 1, gpus)
	for i := range r.nodes {
		n := &r.nodes[i]
		free := r.free[i]
		if n.pool != pool || groups>>n.group&1 == 0 || r.closed[i] || free < gpus && (displace == nobody || free+r.soft[i] < gpus) {
			continue
		}
		if free >= gpus {
			if score := float64(free-gpus) - 1e12; score < least {
				if best, least = int32(i), score; free == gpus {
					return best
				}
			}
			continue
		}
		if idle {
			continue // some node has idle GPUs
		}
		if score, ok := r.score(int32(i), gpus, displace); ok && score < least {
			best, least = int32(i), score
		}
	}
	return best
}

// score rates a node: idle GPUs first, the fewest that suffice; then by the place of the first lease that must end.
func (r *run) score(n, gpus, displace int32) (float64, bool) {
	if r.free[n] >= gpus {
		return float64(r.free[n]-gpus) - 1e12, true
	}
	if displace == nobody || r.free[n]+r.soft[n] < gpus {
		return 0, false
	}
	worst, free := int32(math.MaxInt32), r.free[n]
	for free < gpus {
		last := r.lastOn(n, displace, worst)
		if last == nil {
			return 0, false
		}
		worst = last.place
		for _, h := range last.holds {
			if h.node == n {
				free += h.gpus
			}
		}
	}
	return -float64(worst), true
}

// lastOn gives the candidate on a node that is displaced next: the last one before a place.
func (r *run) lastOn(n, displace, before int32) *life {
	var last *life
	for _, id := range r.on[n] {
		l := r.lives[id]
		yields := l.tenant == displace || displace == anybody && (!r.cells || l.lent || l.tenant == r.scratch.mover)
		if l.candidate && l.place < before && yields && (last == nil || l.place > last.place) {
			last = l
		}
	}
	return last
}

// clear displaces candidates until a hold is free.
func (r *run) clear(h hold, displace int32) {
	for r.free[h.node] < h.gpus {
		l := r.lastOn(h.node, displace, math.MaxInt32)
		r.keep(l)
		r.halt(l)
	}
}

// recalls gives waiting jobs that never had a lease the GPUs of running ones before their terms end, as package share does.
func (r *run) recalls() {
	if !r.set.RecallFirst {
		return
	}
	r.charge()
	served := 0
	for t := range r.clocks {
		c := &r.clocks[t]
		c.tick(r, int32(t))
		kept := c.fresh[:0]
		dead := shapeSet{}
		for _, id := range c.fresh {
			l := r.lives[id]
			if l.phase != waits || l.served {
				continue
			}
			if served < 32*3 && !dead.has(l.shape) && r.fits(l.quota) {
				if r.recall(l) {
					served++
					continue
				}
				dead.add(l.shape)
			}
			kept = append(kept, id)
		}
		c.fresh = kept
	}
}

// recall ends leases of a job's own tenant for it, within the share of new jobs, and of tenants that stay ahead without them.
func (r *run) recall(l *life) bool {
	x := &r.shapes[l.shape]
	for p := range r.pools {
		pool := int32(p)
		a, s := r.account(l.tenant, pool), &r.tenants[l.tenant].shares[pool]
		nodes, each, ok := x.spread(int32(len(r.rooms[p]) - 1))
		if !ok || !r.serves(x, pool) || s.entitled == 0 || nodes > 1 {
			continue
		}
		percent := float64(r.set.NewSharePercent)
		if a.firsts == 0 {
			percent = 100
		}
		own := float64(a.firsts+l.gpus)*100 <= percent*s.entitled
		if h, ok := r.victims(pool, l, x.groups, each, own); ok {
			r.start(l, []hold{h})
			return true
		}
	}
	return false
}

// behindNow gives how far a tenant is behind with all leases charged to the next boundary, in ms; it holds more GPUs than it does.
func (r *run) behindNow(t, pool int32, more float64) float64 {
	a, e := r.account(t, pool), r.tenants[t].shares[pool].entitled
	if e == 0 {
		return math.Inf(-1)
	}
	return (a.deficit - (a.holds+more)*float64(r.bound.Sub(r.now))) / e
}

// victims makes room for a job on one node.
func (r *run) victims(pool int32, l *life, groups uint64, gpus int32, own bool) (hold, bool) {
	rank := r.rank(l)
	mine := r.behindNow(l.tenant, pool, float64(l.gpus))
	var gives []bool // by tenant
	some := own
	for t := range r.tenants {
		give := !r.cells && int32(t) != l.tenant && r.behindNow(int32(t), pool, -float64(gpus))+float64(r.set.Threshold) <= mine
		gives = append(gives, give)
		some = some || give
	}
	if !some || r.set.StopTotalMilli > 0 && r.stops[pool] <= 0 {
		return hold{}, false
	}
	seen := map[int32]int32{} // GPUs that may be freed, by node
	best := int32(-1)
	for t := range r.tenants {
		if !gives[t] && (int32(t) != l.tenant || !own) {
			continue
		}
		for _, id := range r.clocks[t].running {
			v := r.lives[id]
			if !r.yields(v, l, pool, rank) {
				continue
			}
			for _, h := range v.holds {
				if groups>>r.nodes[h.node].group&1 == 0 || r.closed[h.node] {
					continue
				}
				seen[h.node] += h.gpus
				if r.free[h.node]+seen[h.node] >= gpus && (best < 0 || h.node == best) {
					best = h.node
				}
			}
			if best >= 0 {
				break
			}
		}
		if best >= 0 {
			break
		}
	}
	if best < 0 {
		return hold{}, false
	}
	for _, id := range slices.Clone(r.on[best]) {
		v := r.lives[id]
		if r.free[best] >= gpus {
			break
		}
		if v.tenant >= 0 && (gives[v.tenant] || v.tenant == l.tenant && own) && r.yields(v, l, pool, rank) {
			r.halt(v)
		}
	}
	return hold{best, gpus}, r.free[best] >= gpus
}

// yields tells whether a lease may be recalled for a job.
func (r *run) yields(v, l *life, pool int32, rank float64) bool {
	return r.nodes[v.holds[0].node].pool == pool && r.now.Sub(v.start) >= r.set.MinLease &&
		(v.tenant != l.tenant || l.order == nil || !r.aged(v) && r.rank(v) > rank) && r.mayStop(v, r.now.Add(r.set.RecallNotice))
}
