package forecast

import (
	"cmp"
	"iter"
	"math"
	"math/bits"
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
	each = (x.gpus + nodes*x.step - 1) / (nodes * x.step) * x.step
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
	have := r.rooms[pool]
	if displace != nobody {
		have = r.taken[pool]
	}
	if !enough(have, nodes, each) {
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
	all := r.scratch.found[:0]
	for i := range from(have, each) {
		if r.usable(i, x.groups) {
			if score, ok := r.score(i, each, displace); ok {
				all = append(all, found{i, score})
			}
		}
	}
	r.scratch.found = all
	if len(all) < int(nodes) {
		return nil
	}
	slices.SortFunc(all, found.compare)
	out, left := r.scratch.holds[:0], x.gpus
	for _, f := range all[:nodes] {
		take := min(each, left)
		left -= take
		out = append(out, hold{f.node, take})
	}
	r.scratch.holds = out
	return out
}

// found is a node that would do for a part of a gang; the least score is the best.
type found struct {
	node  int32
	score int64
}

func (a found) compare(b found) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.node, b.node))
}

// level is the nodes of a pool that have so many GPUs.
type level struct {
	nodes int32
	set   []uint64 // by node
}

func (x *level) add(n int32)  { x.nodes, x.set[n>>6] = x.nodes+1, x.set[n>>6]|1<<(n&63) }
func (x *level) drop(n int32) { x.nodes, x.set[n>>6] = x.nodes-1, x.set[n>>6]&^(1<<(n&63)) }

// levelsOf gives empty levels for each pool.
func levelsOf(s *site) [][]level {
	out := make([][]level, len(s.pools))
	for p := range out {
		out[p] = make([]level, s.largest[p]+1)
		for g := range out[p] {
			out[p][g].set = make([]uint64, (len(s.nodes)+63)/64)
		}
	}
	return out
}

// move changes the GPUs of a node. A closed one may have less than none.
func move(levels []level, n, had, by int32) {
	levels[max(had, 0)].drop(n)
	levels[max(had+by, 0)].add(n)
}

// enough tells whether so many nodes have at least so many GPUs each.
func enough(levels []level, nodes, each int32) bool {
	for g := len(levels) - 1; g >= int(each) && nodes > 0; g-- {
		nodes -= levels[g].nodes
	}
	return nodes <= 0
}

// from gives the nodes with at least so many GPUs, those with the fewest first.
func from(levels []level, gpus int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for g := gpus; g < int32(len(levels)); g++ {
			for at, word := range levels[g].set {
				for ; word != 0; word &= word - 1 {
					if !yield(int32(at<<6 + bits.TrailingZeros64(word))) {
						return
					}
				}
			}
		}
	}
}

// usable tells whether a node is open, and in one of some groups.
func (r *run) usable(n int32, groups uint64) bool {
	return groups>>r.nodes[n].group&1 != 0 && !r.closed[n]
}

// best gives the best node for GPUs on one node; -1 = none. Where some node has them idle, nobody is displaced.
func (r *run) best(pool int32, groups uint64, gpus, displace int32) int32 {
	if enough(r.rooms[pool], 1, gpus) {
		for n := range from(r.rooms[pool], gpus) {
			if r.usable(n, groups) {
				return n
			}
		}
		return -1
	}
	best := found{-1, math.MaxInt64}
	for n := range from(r.taken[pool], gpus) {
		if r.usable(n, groups) {
			if score, ok := r.score(n, gpus, displace); ok && (found{n, score}).compare(best) < 0 {
				best = found{n, score}
			}
		}
	}
	return best.node
}

// score rates a node: idle GPUs first, the fewest that suffice; then by the place of the first lease that must end.
func (r *run) score(n, gpus, displace int32) (int64, bool) {
	free := r.free[n]
	if free >= gpus {
		return int64(free-gpus) - math.MaxInt32*2, true
	}
	if displace == nobody || free+r.soft[n] < gpus {
		return 0, false
	}
	for i := range r.undecided[n] {
		if c := &r.undecided[n][i]; r.displaces(displace, c) {
			if free += c.gpus; free >= gpus {
				return -int64(c.place), true
			}
		}
	}
	return 0, false
}

// undecided is a candidate's GPUs on a node. Those that are displaced first come first.
type undecided struct {
	place, gpus, tenant, id int32
	lent                    bool
}

// displaces tells whether a candidate may be displaced.
func (r *run) displaces(displace int32, c *undecided) bool {
	return c.tenant == displace || displace == anybody && (!r.sharing.cells || c.lent || c.tenant == r.scratch.mover)
}

// decide takes a candidate off the lists of its nodes.
func (r *run) decide(l *life) {
	l.candidate = false
	for _, h := range l.holds {
		r.soften(h.node, -h.gpus)
		r.undecided[h.node] = slices.DeleteFunc(r.undecided[h.node], func(c undecided) bool { return c.id == l.id })
	}
}

// clear displaces candidates until a hold is free.
func (r *run) clear(h hold, displace int32) {
	for r.free[h.node] < h.gpus {
		at := slices.IndexFunc(r.undecided[h.node], func(c undecided) bool { return r.displaces(displace, &c) })
		l := r.lives[r.undecided[h.node][at].id]
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
	gives := r.scratch.gives[:0] // by tenant
	some := own
	for t := range r.tenants {
		give := !r.sharing.cells && int32(t) != l.tenant && r.behindNow(int32(t), pool, -float64(gpus))+float64(r.set.Threshold) <= mine
		gives = append(gives, give)
		some = some || give
	}
	r.scratch.gives = gives
	if !some || r.set.StopTotalMilli > 0 && r.stops[pool] <= 0 {
		return hold{}, false
	}
	seen := r.scratch.seen // GPUs that may be freed, by node
	clear(seen)
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
