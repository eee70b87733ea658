package cells

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// adopt makes a lease a guaranteed one of a VC on its present GPUs, and tells whether that was
// possible. Cells of the VC must be, or become, bound there, without more missing GPUs than
// before, or than allow says by chain.
func (s *State) adopt(l, v int32, parts []part, allow []int) bool {
	was := s.trying
	s.trying = true
	s.join(l, v)
	f := &s.leases[l]
	f.parts = f.parts[:0]
	ok := true
	for _, p := range parts {
		if ok = s.adoptPart(l, v, p, allow); !ok {
			break
		}
	}
	if !ok {
		s.quit(l)
		f.parts = f.parts[:0]
	}
	s.trying = was
	return ok
}

// adoptPart puts a lease on GPUs of a node: in the cell of the level that the part names, else in
// the smallest sufficient one, else half of them in one and half in another.
func (s *State) adoptPart(l, v int32, p part, allow []int) bool {
	c := s.chains[p.chain]
	if c.nodes[p.node].used&p.gpus != 0 {
		return false
	}
	if p.level >= 0 && s.adoptIn(l, v, p, allow) {
		return true
	}
	low := c.tree.around(p.gpus)
	for k := low; k <= c.tree.top(); k++ {
		if p.level = int16(k); s.adoptIn(l, v, p, allow) {
			return true
		}
	}
	if low == 0 {
		return false
	}
	half, rest := p.halves(c.tree.levels[low-1].size)
	return s.adoptPart(l, v, half, allow) && s.adoptPart(l, v, rest, allow)
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

// adoptIn puts a lease on GPUs of one cell.
func (s *State) adoptIn(l, v int32, p part, allow []int) bool {
	c, k := s.chains[p.chain], int(p.level)
	if !s.binds(v, p) {
		return false
	}
	if i := c.tree.cellOf(k, int(p.node), p.gpus); c.tree.levels[k].owner[i] != v+1 {
		_, before := c.tree.short()
		s.bind(v, int(p.chain), k, i)
		if _, after := c.tree.short(); after > max(before, allow[p.chain]) {
			s.unbind(v, int(p.chain), k, i)
			return false
		}
	}
	s.use(l, p)
	return true
}

// binds tells whether the cell with a part, of the level that the part names, is bound to a VC or may be, ignoring
// what other VCs are promised.
func (s *State) binds(v int32, p part) bool {
	c, k := s.chains[p.chain], int(p.level)
	i := c.tree.cellOf(k, int(p.node), p.gpus)
	if k <= c.tree.nodeAt {
		if _, gpus := c.tree.part(k, i); p.gpus&^gpus != 0 {
			return false
		}
	}
	return c.tree.levels[k].owner[i] == v+1 || s.vcs[v].accounts[p.chain][k].unbound() > 0 && c.vacant(k, i) &&
		(!s.snug || bits.OnesCount64(p.gpus)+int(c.tree.levels[k].dead[i]) >= c.tree.levels[k].size)
}

// adoptable tells whether adoptPart may succeed, and changes nothing. Most leases cannot be adopted, and to try costs
// ten times as much.
func (s *State) adoptable(v int32, p part) bool {
	c := s.chains[p.chain]
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
	return s.adoptable(v, half) && s.adoptable(v, rest)
}

// Promote makes an opportunistic lease a guaranteed one of a VC in place, if the VC's free cells
// can be bound there and no other guarantee suffers. With snug it uses only cells that are bound
// to the VC or that the lease fills, since a small job that binds a large cell blocks the VC's
// large jobs. It tells whether it did.
func (s *State) Promote(job int, name string, snug bool) bool {
	l, ok := s.find(job)
	v := s.vcAt(name)
	if !ok || v < 0 || s.leases[l].right != cluster.Opportunistic {
		return false
	}
	for _, p := range s.leases[l].parts {
		for _, g := range s.chains[p.chain].nodes[p.node].guests {
			if g.lease != l && g.gpus&p.gpus != 0 {
				return false
			}
		}
	}
	s.snug = snug
	promoted := s.restore(l, v, s.leases[l].parts, make([]int, len(s.chains)))
	if s.snug = false; !promoted {
		return false
	}
	s.leases[l].tenant = name
	for ci := range s.chains {
		s.settle(ci) // other VCs do not lose the bad hardware that it holds
	}
	return true
}

// restore makes an opportunistic lease guaranteed in place, or leaves it unchanged.
func (s *State) restore(l, v int32, parts []part, allow []int) bool {
	for _, p := range parts {
		if !s.adoptable(v, p) {
			return false
		}
	}
	leaving := s.leases[l].leaving
	parts = slices.Clone(parts)
	s.depart(l)
	if s.adopt(l, v, parts, allow) {
		return true
	}
	s.lendAt(l, parts, leaving)
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
	l, ok := s.find(job)
	if !ok || s.leases[l].right != cluster.Guaranteed {
		return false
	}
	s.demote(l)
	return true
}

// demote gives the parts that the lease had in cells.
func (s *roster) demote(l int32) []part {
	s.quit(l)
	parts := slices.Clone(s.leases[l].parts)
	s.leases[l].parts = s.leases[l].parts[:0]
	s.lendAt(l, parts, false)
	return parts
}

// preempt makes leases of a VC with lower priority opportunistic until a request can be met,
// lowest priority and youngest first; then it guarantees the unneeded ones again. It first
// returns their cells, so that idle ones may be bound. If that does not suffice, it keeps them,
// since the rest of a broken cell is better than none.
func (t *trial) preempt() bool {
	f := &t.state.leases[t.l]
	v := f.vc
	var below []int32
	for _, g := range t.state.vcs[v].leases {
		if o := &t.state.leases[g]; o.priority < f.priority && t.touches(o.parts) {
			below = append(below, g)
		}
	}
	slices.SortFunc(below, func(a, b int32) int {
		x, y := &t.state.leases[a], &t.state.leases[b]
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(y.job, x.job))
	})
	least := 1
	if a := &t.asks[0]; len(t.asks) == 1 && !t.q.Soft && a.within < 0 && !a.passed && !a.c.tree.dead() {
		below, least = t.state.vcs[v].useful(t.state, a, t.q.Nodes, below)
	}
	if len(below) < least {
		return false
	}
	t.state.trying = true
	ok := t.preemptOf(below, least, v)
	if !ok && slices.ContainsFunc(t.asks, func(a ask) bool { return a.c.tree.dead() }) {
		t.state.hold = true
		ok = t.preemptOf(below, least, v)
		t.state.letGo(v)
	}
	t.state.trying = false
	for i := range t.asks {
		t.state.settle(t.asks[i].ci)
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
func (v *vc) useful(s *State, a *ask, n int, below []int32) ([]int32, int) {
	c := a.c
	for len(s.rooms) < len(c.nodes) {
		s.rooms = append(s.rooms, room{})
	}
	var seen []int32
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
	}()
	parts := func(gpus int) int {
		if gpus /= a.gpus; a.apart {
			gpus = min(gpus, 1)
		}
		return gpus
	}
	for k := range c.tree.levels {
		account, size := &v.accounts[a.ci][k], c.tree.levels[k].size
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
		for _, p := range s.leases[l].parts {
			if int(p.chain) == a.ci {
				on(p.node).more += bits.OnesCount64(p.gpus)
			}
		}
	}
	below = slices.DeleteFunc(below, func(l int32) bool {
		return !slices.ContainsFunc(s.leases[l].parts, func(p part) bool {
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
		for _, p := range s.leases[l].parts {
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
	allow := make([]int, len(t.state.chains))
	for ci, c := range t.state.chains {
		_, allow[ci] = c.tree.short()
	}
	had := make([][]part, 0, len(below))
	ok := false
	for step, more := least, 1; len(had) < len(below) && !ok; step, more = more, more+more/2+1 {
		for _, g := range below[len(had):min(len(had)+step, len(below))] {
			parts := t.state.demote(g)
			t.state.shun(parts, 1)
			had = append(had, parts)
		}
		ok = t.try()
	}
	for _, parts := range had {
		t.state.shun(parts, -1)
	}
	for ci := range allow {
		if !ok {
			allow[ci] = ChainGPUs // unchanged
		}
	}
	for i := len(had) - 1; i >= 0; i-- {
		g := below[i]
		if t.state.leases[g].leaving || !t.state.restore(g, v, had[i], allow) {
			t.grant.Demoted = append(t.grant.Demoted, t.state.leases[g].job)
		}
	}
	return ok
}

// shun makes cells with these GPUs the last to be bound (sign 1), or undoes that (-1): GPUs lent
// to others go first, since they would be idle in a private cluster.
func (s *State) shun(parts []part, sign int) {
	for _, p := range parts {
		c := s.chains[p.chain]
		for k := range c.tree.levels {
			for left := p.gpus; left != 0; {
				i := c.tree.cellOf(k, int(p.node), left)
				c.tree.stay(k, i, sign*NodeGPUs)
				if k >= c.tree.nodeAt {
					break
				}
				_, in := c.tree.part(k, i)
				left &^= in
			}
		}
	}
}

// Stay gives a tenant an opportunistic lease on its present GPUs.
func (s *roster) Stay(job int, tenant string, on []Part) {
	if parts, ok := s.at(nil, on); ok && s.Right(job) == "" {
		s.lendAt(s.open(job, tenant, 0, cluster.Opportunistic), parts, false)
	}
}

// Shift moves an opportunistic lease from GPUs of a node that guaranteed leases use to unused
// ones there, and tells whether there were enough.
func (s *State) Shift(job int, name string) bool {
	l, ok := s.find(job)
	at, there := s.places[name]
	if !ok || !there || s.leases[l].right != cluster.Opportunistic {
		return false
	}
	parts := slices.Clone(s.leases[l].parts)
	c := s.chains[at.chain]
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
	s.depart(l)
	s.lendAt(l, parts, false)
	return true
}
