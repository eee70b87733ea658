package cells

import (
	"math/bits"
	"slices"
)

// allotment is the cells that are bound to VCs.
type allotment struct {
	layout
	trying bool // losses are not settled now
}

// bind binds a vacant cell to a VC.
func (s *allotment) bind(v int32, ci, k, i int) {
	c := s.chains[ci]
	c.bury(k, i, -1)
	l, a := &c.tree.levels[k], &s.vcs[v].accounts[ci][k]
	l.owner[i] = v + 1
	l.bound++
	a.bound++
	c.tree.take(k, i)
	c.fence(k, i, a)
}

// unbind returns a cell. Its dead GPUs stay out of the free lists.
func (s *allotment) unbind(v int32, ci, k, i int) {
	c := s.chains[ci]
	l, a := &c.tree.levels[k], &s.vcs[v].accounts[ci][k]
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
	c := s.chains[ci]
	d := &c.nodes[at]
	level := min(k, c.tree.nodeAt)
	slot := c.tree.cellOf(level, at, gpus)
	_, whole := c.tree.part(level, slot)
	was := d.slotKey(whole, slot)
	d.used, d.bad, d.stays = used, bad, stays
	s.vcs[v].accounts[ci][k].move(was, d.slotKey(whole, slot))
	c.touch(at)
}

// Cell is a physical cell.
type Cell struct{ Chain, Level, Index int }

// Allocate binds a cell of a type to a VC: AllocateCell of Algorithm 1, after the check that it
// is legal. An error is a Refusal. The cell stays bound until Free.
func (s *allotment) Allocate(name, chain, typ string) (Cell, error) {
	v := s.vcAt(name)
	if v < 0 {
		return Cell{}, Refusal{Code: UnknownVC, VC: name}
	}
	ci, k, wrong := s.levelOf(chain, typ)
	if wrong != "" {
		return Cell{}, Refusal{Code: UnknownLevel, VC: name, Chain: chain, Level: typ}
	}
	if s.vcs[v].accounts[ci][k].unbound() < 1 {
		return Cell{}, Refusal{Code: Lacking, VC: name, Chain: s.chains[ci].name, Level: typ, Needed: 1}
	}
	i, ok := s.chains[ci].tree.find(k)
	if !ok {
		return Cell{}, Refusal{Code: Unsafe, VC: name, Chain: s.chains[ci].name, Level: typ, Needed: 1}
	}
	s.bind(v, ci, k, i)
	return Cell{ci, k, i}, nil
}

// Free returns an allocated cell without leases: ReleaseCell of Algorithm 1. It tells whether it
// did.
func (s *allotment) Free(at Cell) bool {
	if at.Chain < 0 || at.Chain >= len(s.chains) || at.Level < 0 || at.Level > s.chains[at.Chain].tree.top() {
		return false
	}
	c := s.chains[at.Chain]
	l := &c.tree.levels[at.Level]
	if at.Index < 0 || at.Index >= l.n || l.owner[at.Index] < 1 || l.used[at.Index] > 0 || c.pinned[cell{at.Level, at.Index}] {
		return false
	}
	s.unbind(l.owner[at.Index]-1, at.Chain, at.Level, at.Index)
	return true
}
