package cells

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// adoption puts leases that run into cells of their VCs.
type adoption struct {
	leases *roster
	allot  *allotment
	snug   bool  // no cell is bound that is not filled
	allow  []int // GPUs that may be missing in free cells, by chain; nil = none
}

// adopt makes a lease a guaranteed one of a VC on its present GPUs, and tells whether that was
// possible. Cells of the VC must be, or become, bound there, without more missing GPUs than
// before, or than are allowed.
func (s *adoption) adopt(l, v int32, parts []part) bool {
	was := s.allot.try(true)
	s.leases.join(l, v)
	ok := true
	for _, p := range parts {
		if ok = s.part(l, v, p); !ok {
			s.leases.quit(l)
			break
		}
	}
	s.allot.try(was)
	return ok
}

// part puts a lease on GPUs of a node: in the cell of the level that the part names, else in
// the smallest sufficient one, else half of them in one and half in another.
func (s *adoption) part(l, v int32, p part) bool {
	c := s.allot.cells.chains[p.chain]
	if c.nodes[p.node].used&p.gpus != 0 {
		return false
	}
	if p.level >= 0 && s.in(l, v, p) {
		return true
	}
	low := c.tree.around(p.gpus)
	for k := low; k <= c.tree.top(); k++ {
		if p.level = int16(k); s.in(l, v, p) {
			return true
		}
	}
	if low == 0 {
		return false
	}
	half, rest := p.halves(c.tree.levels[low-1].size)
	return s.part(l, v, half) && s.part(l, v, rest)
}

// around gives the lowest level with a cell that has all of these GPUs of a node.
func (c *tree) around(gpus uint64) int {
	low := 0
	for first := bits.TrailingZeros64(gpus); c.levels[low].size < NodeGPUs && gpus&^ones(first/c.levels[low].size*c.levels[low].size, c.levels[low].size) != 0; {
		low++
	}
	return low
}

// halves divides a part that spans two cells of size GPUs.
func (p part) halves(size int) (half, rest part) {
	half, rest = p, p
	half.level, half.gpus = -1, p.gpus&ones(bits.TrailingZeros64(p.gpus)/size*size, size)
	rest.level, rest.gpus = -1, p.gpus&^half.gpus
	return half, rest
}

// in puts a lease on GPUs of one cell.
func (s *adoption) in(l, v int32, p part) bool {
	c, k := s.allot.cells.chains[p.chain], int(p.level)
	if !s.binds(v, p) {
		return false
	}
	if i := c.tree.cellOf(k, int(p.node), p.gpus); c.tree.levels[k].owner[i] != v+1 && !s.binding(v, int(p.chain), k, i) {
		return false
	}
	s.leases.use(l, p)
	return true
}

// binding binds a cell, if not too many GPUs are missing then.
func (s *adoption) binding(v int32, ci, k, i int) bool {
	c, allowed := s.allot.cells.chains[ci], 0
	if s.allow != nil {
		allowed = s.allow[ci]
	}
	if allowed < ChainGPUs { // else any number is allowed
		_, before := c.tree.short()
		allowed = max(allowed, before)
	}
	s.allot.bind(v, ci, k, i)
	if allowed < ChainGPUs {
		if _, after := c.tree.short(); after > allowed {
			s.allot.unbind(v, ci, k, i)
			return false
		}
	}
	return true
}

// binds tells whether the cell with a part, of the level that the part names, is bound to a VC or may be, ignoring
// what other VCs are promised.
func (s *adoption) binds(v int32, p part) bool {
	c, k := s.allot.cells.chains[p.chain], int(p.level)
	i := c.tree.cellOf(k, int(p.node), p.gpus)
	if k <= c.tree.nodeAt {
		if _, gpus := c.tree.part(k, i); p.gpus&^gpus != 0 {
			return false
		}
	}
	return c.tree.levels[k].owner[i] == v+1 || s.allot.cells.vcs[v].accounts[p.chain][k].unbound() > 0 && c.vacant(k, i) &&
		(!s.snug || bits.OnesCount64(p.gpus)+int(c.tree.levels[k].dead[i]) >= c.tree.levels[k].size)
}

// may tells whether part may succeed, and changes nothing. Most leases cannot be adopted, and to try costs
// ten times as much.
func (s *adoption) may(v int32, p part) bool {
	c := s.allot.cells.chains[p.chain]
	if c.nodes[p.node].used&p.gpus != 0 {
		return false
	}
	if p.level >= 0 && s.binds(v, p) {
		return true
	}
	low := c.tree.around(p.gpus)
	for k := low; k <= c.tree.top(); k++ {
		if p.level = int16(k); s.binds(v, p) {
			return true
		}
	}
	if low == 0 {
		return false
	}
	half, rest := p.halves(c.tree.levels[low-1].size)
	return s.may(v, half) && s.may(v, rest)
}

// Promote makes an opportunistic lease a guaranteed one of a VC in place, if the VC's free cells
// can be bound there and no other guarantee suffers. With snug it uses only cells that are bound
// to the VC or that the lease fills, since a small job that binds a large cell blocks the VC's
// large jobs. It tells whether it did.
func (s *State) Promote(job int, name string, snug bool) bool {
	l, ok := s.Leases.find(job)
	v := s.Cells.vcAt(name)
	if !ok || v < 0 || s.Leases.leases[l].right != cluster.Opportunistic {
		return false
	}
	parts := s.Leases.leases[l].parts
	for _, p := range parts {
		for _, g := range s.Leases.guests[p.chain][p.node] {
			if g.lease != l && g.gpus&p.gpus != 0 {
				return false
			}
		}
	}
	in := adoption{leases: s.Leases, allot: s.allot, snug: snug}
	if !in.restore(l, v, parts) {
		return false
	}
	s.Leases.leases[l].tenant = name
	for ci := range s.Cells.chains {
		s.allot.settle(ci) // other VCs do not lose the bad hardware that it holds
	}
	return true
}

// restore makes an opportunistic lease guaranteed in place, or leaves it unchanged.
func (s *adoption) restore(l, v int32, parts []part) bool {
	for _, p := range parts {
		if !s.may(v, p) {
			return false
		}
	}
	leaving := s.leases.leases[l].leaving
	parts = slices.Clone(parts)
	s.leases.depart(l)
	if s.adopt(l, v, parts) {
		return true
	}
	s.leases.lendAt(l, parts, leaving)
	return false
}

// lendAt makes a lease an opportunistic one on these GPUs.
func (s *roster) lendAt(l int32, parts []part, leaving bool) {
	s.leases[l].right, s.leases[l].leaving = cluster.Opportunistic, leaving
	for _, p := range parts {
		p.level = -1
		s.visit(l, p)
	}
}

// Demote makes a guaranteed lease an opportunistic one in place.
func (s *State) Demote(job int) bool {
	l, ok := s.Leases.find(job)
	if !ok || s.Leases.leases[l].right != cluster.Guaranteed {
		return false
	}
	s.Leases.demote(l)
	return true
}

// demote gives the parts that the lease had in cells.
func (s *roster) demote(l int32) []part {
	parts := slices.Clone(s.leases[l].parts)
	s.quit(l)
	s.lendAt(l, parts, false)
	return parts
}

// preempt makes leases of a VC with lower priority opportunistic until a request can be met,
// lowest priority and youngest first; then it guarantees the unneeded ones again. It first
// returns their cells, so that idle ones may be bound. If that does not suffice, it keeps them,
// since the rest of a broken cell is better than none.
func (t *trial) preempt() bool {
	f := &t.state.Leases.leases[t.l]
	v := f.vc
	var below []int32
	for _, g := range t.state.Leases.ofVC[v] {
		if o := &t.state.Leases.leases[g]; o.priority < f.priority && t.touches(o.parts) {
			below = append(below, g)
		}
	}
	slices.SortFunc(below, func(a, b int32) int {
		x, y := &t.state.Leases.leases[a], &t.state.Leases.leases[b]
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(y.job, x.job))
	})
	least := 1
	if a := &t.asks[0]; len(t.asks) == 1 && !t.q.Soft && a.within < 0 && !a.passed && !a.c.tree.dead() {
		below, least = t.useful(a, t.q.Nodes, below)
	}
	if len(below) < least {
		return false
	}
	t.state.allot.try(true)
	ok := t.preemptOf(below, least, v)
	if !ok && slices.ContainsFunc(t.asks, func(a ask) bool { return a.c.tree.dead() }) {
		ok = t.state.Leases.keeping(v, func() bool { return t.preemptOf(below, least, v) })
	}
	t.state.allot.try(false)
	for i := range t.asks {
		t.state.allot.settle(t.asks[i].ci)
	}
	return ok
}

// touches tells whether any of these parts is in a chain that the request may go to.
func (t *trial) touches(parts []part) bool {
	for i := range parts {
		for k := range t.asks {
			if int(parts[i].chain) == t.asks[k].ci {
				return true
			}
		}
	}
	return false
}

// useful gives those of these leases whose removal may help n parts, in the same order, and the
// minimum number of removals: below it there are too few nodes on which the VC could use enough
// GPUs. A number above the length = not even all suffice. Hardware must be healthy.
func (t *trial) useful(a *ask, n int, below []int32) ([]int32, int) {
	s, c, accounts := t.state, a.c, t.state.Cells.vcs[a.v].accounts[a.ci]
	for len(s.rooms) < len(c.nodes) {
		s.rooms = append(s.rooms, room{})
	}
	seen := s.seen[:0]
	on := func(node int32) *room {
		r := &s.rooms[node]
		if *r == (room{}) {
			seen = append(seen, node)
		}
		return r
	}
	defer func() {
		for _, node := range seen {
			s.rooms[node] = room{}
		}
		s.seen = seen
	}()
	parts := func(gpus int) int {
		if gpus /= a.gpus; a.apart {
			gpus = min(gpus, 1)
		}
		return gpus
	}
	for k := range c.tree.levels {
		account, size := &accounts[k], c.tree.levels[k].size
		if size >= a.gpus {
			n -= max(account.unbound(), 0) * max(parts(size), min(size/a.gpus, c.tree.nodesIn(k)))
		}
		for _, key := range account.open {
			at, _ := c.tree.part(min(k, c.tree.nodeAt), int(uint32(key)))
			on(int32(at)).now += int(key >> freeBits)
		}
	}
	for _, node := range seen {
		n -= parts(s.rooms[node].now)
	}
	for _, l := range below {
		for _, p := range s.Leases.leases[l].parts {
			if int(p.chain) == a.ci {
				on(p.node).more += bits.OnesCount64(p.gpus)
			}
		}
	}
	below = slices.DeleteFunc(below, func(l int32) bool {
		return !slices.ContainsFunc(s.Leases.leases[l].parts, func(p part) bool {
			if int(p.chain) != a.ci {
				return false
			}
			r := s.rooms[p.node]
			return parts(r.now+r.more) > parts(r.now)
		})
	})
	for i, l := range below {
		if n <= 0 {
			return below, max(i, 1)
		}
		for _, p := range s.Leases.leases[l].parts {
			if int(p.chain) == a.ci {
				r := &s.rooms[p.node]
				n += parts(r.now)
				r.now += bits.OnesCount64(p.gpus)
				n -= parts(r.now)
			}
		}
	}
	if n > 0 {
		return below, len(below) + 1
	}
	return below, max(len(below), 1)
}

// room is how many GPUs of a node a VC could use: now, and after some of its leases are gone.
type room struct{ now, more int }

// preemptOf is preempt among these leases of VC v. At least least of them must go.
func (t *trial) preemptOf(below []int32, least int, v int32) bool {
	allow := make([]int, len(t.state.Cells.chains))
	for ci, c := range t.state.Cells.chains {
		_, allow[ci] = c.tree.short()
	}
	had := make([][]part, 0, len(below))
	ok := false
	for step, more := least, 1; len(had) < len(below) && !ok; step, more = more, more+more/2+1 {
		for _, g := range below[len(had):min(len(had)+step, len(below))] {
			parts := t.state.Leases.demote(g)
			t.state.allot.shun(parts, 1)
			had = append(had, parts)
		}
		ok = t.try()
	}
	for _, parts := range had {
		t.state.allot.shun(parts, -1)
	}
	for ci := range allow {
		if !ok {
			allow[ci] = ChainGPUs // unchanged
		}
	}
	in := adoption{leases: t.state.Leases, allot: t.state.allot, allow: allow}
	for i := len(had) - 1; i >= 0; i-- {
		g := below[i]
		if t.state.Leases.leases[g].leaving || !in.restore(g, v, had[i]) {
			t.grant.Demoted = append(t.grant.Demoted, t.state.Leases.leases[g].job)
		}
	}
	return ok
}

// Stay gives a tenant an opportunistic lease on its present GPUs.
func (s *roster) Stay(job int, tenant string, on []Part) {
	if parts, ok := s.cells.at(nil, on); ok && s.Right(job) == "" {
		s.lendAt(s.open(job, tenant, 0, cluster.Opportunistic), parts, false)
	}
}

// Shift moves an opportunistic lease from GPUs of a node that guaranteed leases use to unused
// ones there, and tells whether there were enough.
func (s *State) Shift(job int, name string) bool {
	l, ok := s.Leases.find(job)
	at, there := s.Cells.places[name]
	if !ok || !there || s.Leases.leases[l].right != cluster.Opportunistic {
		return false
	}
	parts := slices.Clone(s.Leases.leases[l].parts)
	c := s.Cells.chains[at.chain]
	d := &c.nodes[at.node]
	for i := range parts {
		if p := &parts[i]; p.chain == at.chain && p.node == at.node {
			n := bits.OnesCount64(p.gpus & d.used)
			if n > bits.OnesCount64(d.idle(c)) {
				return false
			}
			p.gpus = p.gpus&^d.used | some(d.idle(c), n, false)
		}
	}
	s.Leases.depart(l)
	s.Leases.lendAt(l, parts, false)
	return true
}
