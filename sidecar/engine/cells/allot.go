package cells

import (
	"math/bits"
	"slices"
)

// allotment binds cells to VCs, and counts what is used of them. It knows of no leases.
type allotment struct {
	cells  *Layout
	trying bool // losses are not settled now
}

// try says whether losses are settled only later, and gives what was said before.
func (s *allotment) try(later bool) (before bool) {
	before, s.trying = s.trying, later
	return before
}

// bind binds a vacant cell to a VC.
func (s *allotment) bind(v int32, ci, k, i int) {
	c := s.cells.chains[ci]
	c.bury(k, i, -1)
	l, a := &c.tree.levels[k], &s.cells.vcs[v].accounts[ci][k]
	l.owner[i] = v + 1
	l.bound++
	a.bound++
	c.tree.take(k, i)
	c.fence(k, i, a)
}

// unbind returns a cell. Its dead GPUs stay out of the free lists.
func (s *allotment) unbind(v int32, ci, k, i int) {
	c := s.cells.chains[ci]
	l, a := &c.tree.levels[k], &s.cells.vcs[v].accounts[ci][k]
	c.unfence(k, i, a)
	l.owner[i] = 0
	l.bound--
	a.bound--
	c.tree.give(k, i)
	c.bury(k, i, +1)
	if l.dead[i] > 0 || c.tree.lossy() {
		s.settle(ci)
	}
}

// bury removes the dead GPUs of a cell from the free lists, or restores them.
func (c *chain) bury(k, i int, sign int) {
	if c.tree.levels[k].dead[i] == 0 {
		return
	}
	size := c.tree.levels[c.tree.nodeAt].size
	_, gpus := c.tree.part(min(k, c.tree.nodeAt), i)
	if k > c.tree.nodeAt {
		gpus = ones(0, size)
	}
	for n, last := c.tree.span(k, i); n < last; n++ {
		for m := c.nodes[n].bad & gpus; m != 0; m &= m - 1 {
			if g := n*size + bits.TrailingZeros64(m); sign > 0 {
				c.tree.take(0, g)
			} else {
				c.tree.give(0, g)
			}
		}
	}
}

// lossy tells whether any VC has lost a cell.
func (c *tree) lossy() bool {
	for k := range c.levels {
		if c.levels[k].lost > 0 {
			return true
		}
	}
	return false
}

// slots gives the nodes of a cell of level k, or the cell itself where it is smaller:
// their level, the first, and how many.
func (c *tree) slots(k, i int) (level, first, n int) {
	if k <= c.nodeAt {
		return k, i, 1
	}
	n = c.nodesIn(k)
	return c.nodeAt, i * n, n
}

// fence opens a cell that was bound to leases of its VC.
func (c *chain) fence(k, i int, a *account) {
	level, first, n := c.tree.slots(k, i)
	for slot := first; slot < first+n; slot++ {
		at, gpus := c.tree.part(level, slot)
		d := &c.nodes[at]
		d.fenced |= gpus
		if key := d.slotKey(gpus, slot); n == 1 {
			a.move(0, key)
		} else if key != 0 {
			a.open = append(a.open, key)
		}
		c.touch(at)
	}
	if n > 1 {
		slices.Sort(a.open)
	}
}

// unfence closes a cell.
func (c *chain) unfence(k, i int, a *account) {
	level, first, n := c.tree.slots(k, i)
	for slot := first; slot < first+n; slot++ {
		at, gpus := c.tree.part(level, slot)
		d := &c.nodes[at]
		d.fenced &^= gpus
		if n == 1 {
			a.move(d.slotKey(gpus, slot), 0)
		}
		c.touch(at)
	}
	if n > 1 {
		a.open = slices.DeleteFunc(a.open, func(key uint64) bool {
			slot := int(uint32(key))
			return first <= slot && slot < first+n
		})
	}
}

// Of a slot's key: bits below its GPUs to use, and below those of them that are lent.
const freeBits, lentBits = 40, 32

// slotKey gives the key of a node, or of some of its GPUs, among the usable ones; 0 = none.
func (d *node) slotKey(gpus uint64, slot int) uint64 {
	free := gpus &^ (d.used | d.bad)
	if free == 0 {
		return 0
	}
	return uint64(bits.OnesCount64(free))<<freeBits | uint64(bits.OnesCount64(free&d.stays))<<lentBits | uint64(slot)
}

// change sets which GPUs of a node are used, bad and lent to leases that stay: some GPUs
// in one bound cell of level k, whose slot it moves.
func (s *allotment) change(v int32, ci, k, at int, gpus, used, bad, stays uint64) {
	c := s.cells.chains[ci]
	d := &c.nodes[at]
	level := min(k, c.tree.nodeAt)
	slot := c.tree.cellOf(level, at, gpus)
	_, whole := c.tree.part(level, slot)
	was := d.slotKey(whole, slot)
	d.used, d.bad, d.stays = used, bad, stays
	s.cells.vcs[v].accounts[ci][k].move(was, d.slotKey(whole, slot))
	c.touch(at)
}

// use counts GPUs of a cell that is bound to a VC as those of a guaranteed lease.
func (s *allotment) use(v int32, p part) {
	c, k := s.cells.chains[p.chain], int(p.level)
	d := &c.nodes[p.node]
	s.change(v, int(p.chain), k, int(p.node), p.gpus, d.used|p.gpus, d.bad, d.stays)
	c.tree.levels[k].used[c.tree.cellOf(k, int(p.node), p.gpus)] += int32(bits.OnesCount64(p.gpus))
}

// leave counts them as free again, and gives their cell, if nothing keeps it bound now.
func (s *allotment) leave(v int32, p part) (i int, idle bool) {
	c, k := s.cells.chains[p.chain], int(p.level)
	d := &c.nodes[p.node]
	s.change(v, int(p.chain), k, int(p.node), p.gpus, d.used&^p.gpus, d.bad, d.stays)
	i = c.tree.cellOf(k, int(p.node), p.gpus)
	used := &c.tree.levels[k].used[i]
	*used -= int32(bits.OnesCount64(p.gpus))
	return i, *used == 0 && !c.pinned[cell{k, i}]
}

// host sets which GPUs of a node are lent, and which of these to leases that stay.
func (s *allotment) host(ci, at int, lent, stays uint64) {
	c := s.cells.chains[ci]
	d := &c.nodes[at]
	d.lent = lent
	more, less := stays&^d.stays, d.stays&^stays
	for left := d.fenced & (more | less); left != 0; {
		k, i := c.tree.holder(at*len(c.lend) + bits.TrailingZeros64(left))
		_, gpus := c.tree.part(min(k, c.tree.nodeAt), c.tree.cellOf(min(k, c.tree.nodeAt), at, left))
		s.change(c.tree.levels[k].owner[i]-1, ci, k, at, left, d.used, d.bad, d.stays&^gpus|stays&gpus)
		left &^= gpus
	}
	d.stays = stays
	c.touch(at)
	for k := range c.tree.levels {
		size := c.tree.levels[k].size
		if k >= c.tree.nodeAt {
			c.tree.stay(k, at*len(c.lend)/size, bits.OnesCount64(more)-bits.OnesCount64(less))
			continue
		}
		for left := more | less; left != 0; {
			i := bits.TrailingZeros64(left) / size
			in := ones(i*size, size)
			left &^= in
			c.tree.stay(k, at*len(c.lend)/size+i, bits.OnesCount64(more&in)-bits.OnesCount64(less&in))
		}
	}
}

// shun makes cells with these GPUs the last to be bound (sign 1), or undoes that (-1): GPUs lent
// to others go first, since they would be idle in a private cluster.
func (s *allotment) shun(parts []part, sign int) {
	for _, p := range parts {
		c := s.cells.chains[p.chain]
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
