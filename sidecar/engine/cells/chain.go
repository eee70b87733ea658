package cells

import (
	"math/bits"
	"slices"
)

// chain is all cells of one GPU model and one node shape: a forest in which every cell of a
// level is split into the same number of cells (hierarchical uniform composability, §3.2).
// Cell i of level k has the cells i*split and on of level k-1, and the GPUs i*size and on.
type chain struct {
	tree        tree
	name, model string
	nodes       []node
	pinned      map[cell]bool
	lend        []ranking // [g-1]: nodes with g GPUs that can be lent
	dirty       []int32   // nodes that changed since lend was looked at
}

// tree is the cells of a chain by level, which of them are free, and which of those is best.
type tree struct {
	levels []level // [0]: GPUs
	nodeAt int     // the level of nodes
}

// level is the cells of one level.
type level struct {
	name  string
	split int // cells of the level below in one; h_k
	size  int // GPUs in one
	n     int // how many

	reserved int // r_k, pinned ones not counted
	bound    int // a_k
	lost     int // of those reserved: cannot be had until hardware is repaired
	free     int // f_k: cells that are free and in no larger free one

	taken []int32 // GPUs that are bound, dead or not there; not counted inside a bound cell
	dead  []int32 // GPUs that are bad
	stays []int32 // GPUs under opportunistic leases that have not been recalled
	owner []int32 // 1 + the VC that it is bound to; 0 = none; absent = not there
	used  []int32 // of a bound cell: GPUs under guaranteed leases

	order ranking // of its free cells
}

// absent is the owner of cells that are not there.
const absent = -1

// ranking finds the best of many cells: first the best of each group of buddies, then
// the best group.
type ranking struct {
	kids  heap // one group per group of buddies
	best  heap // one group
	width int  // cells in a group of buddies
}

func newRanking(groups, members int) ranking {
	return ranking{newHeap(groups, members), newHeap(1, groups), members}
}

// cell is a cell of a chain.
type cell struct{ level, index int }

// node is the GPUs of one node, a bit each.
type node struct {
	name   string
	bad    uint64
	fenced uint64 // in bound cells
	used   uint64 // under guaranteed leases
	lent   uint64 // under opportunistic leases
	stays  uint64 // of these: of leases that have not been recalled
	mark   uint32 // of the gang that was placed here last
	marked int    // GPUs of it
	dirty  bool
}

func (c *tree) top() int { return len(c.levels) - 1 }

// nodesIn gives the number of nodes of a cell of level k.
func (c *tree) nodesIn(k int) int { return c.levels[k].size / c.levels[c.nodeAt].size }

// levelOf gives the level of a type, or -1.
func (c *tree) levelOf(name string) int {
	for k := range c.levels {
		if c.levels[k].name == name {
			return k
		}
	}
	return -1
}

// fit gives the lowest level whose cells have g GPUs; g is at most that of a node.
func (c *tree) fit(g int) int {
	k := 0
	for c.levels[k].size < g {
		k++
	}
	return k
}

// cellOf gives the cell of level k that contains the first of some GPUs of a node.
func (c *tree) cellOf(k, node int, gpus uint64) int {
	return (node*c.levels[c.nodeAt].size + bits.TrailingZeros64(gpus)) / c.levels[k].size
}

// ones gives n bits from bit at.
func ones(at, n int) uint64 { return ^uint64(0) >> (64 - n) << at }

// part gives the node and the GPUs of a cell of level k, at most a node.
func (c *tree) part(k, i int) (node int, gpus uint64) {
	first, whole := i*c.levels[k].size, c.levels[c.nodeAt].size
	return first / whole, ones(first%whole, c.levels[k].size)
}

// span gives the nodes of a cell: from first, below last.
func (c *tree) span(k, i int) (first, last int) {
	whole := c.levels[c.nodeAt].size
	first = i * c.levels[k].size / whole
	return first, max((i+1)*c.levels[k].size/whole, first+1)
}

// build makes the cells, all free except those of nodes that are not there.
func (c *chain) build(nodes []string) {
	whole := c.tree.levels[c.tree.nodeAt].size
	c.nodes = make([]node, len(nodes))
	c.pinned = map[cell]bool{}
	top := c.tree.top()
	c.tree.levels[top].free = len(nodes) * whole / c.tree.levels[top].size
	for k := range c.tree.levels {
		l := &c.tree.levels[k]
		l.n = len(nodes) * whole / l.size
		counts := make([]int32, 5*l.n)
		l.taken, l.dead, l.stays, l.owner, l.used = counts[:l.n], counts[l.n:2*l.n], counts[2*l.n:3*l.n], counts[3*l.n:4*l.n], counts[4*l.n:]
		if k < top {
			l.order = newRanking(l.n/c.tree.levels[k+1].split, c.tree.levels[k+1].split)
		} else {
			l.order = newRanking(1, l.n)
		}
		for i := range l.n {
			c.tree.rank(k, i)
		}
	}
	if c.tree.levels[top].n > 0 {
		c.tree.regroup(top, 0)
	}
	above := 1
	if c.tree.nodeAt < top {
		above = c.tree.levels[c.tree.nodeAt+1].n
	}
	c.lend = make([]ranking, whole)
	for g := range c.lend {
		if above > 0 {
			c.lend[g] = newRanking(above, len(nodes)/above)
		}
	}
	for i, name := range nodes {
		c.nodes[i].name = name
		if name == "" {
			c.tree.levels[c.tree.nodeAt].owner[i] = absent
			c.tree.take(c.tree.nodeAt, i)
		} else {
			c.touch(i)
		}
	}
}

// buddies gives a cell's group of buddies, and its number there.
func (c *tree) buddies(k, i int) (group, at int) {
	w := c.levels[k].order.width
	return i / w, i % w
}

// rank updates cell i in the order of level k: fewest GPUs under opportunistic leases first, then
// by name.
func (c *tree) rank(k, i int) bool {
	l := &c.levels[k]
	group, at := c.buddies(k, i)
	key := none
	if l.taken[i] == 0 {
		key = uint64(l.stays[i])<<32 | uint64(at)
	}
	return l.order.kids.set(group, at, key)
}

// regroup updates a group of buddies in the order of level k; it becomes available once the cell
// above is split. Its best cell represents it. Cells of broken nodes come last; then the number
// of GPUs under opportunistic leases, the fullness of the cell above, the fullness of the node,
// and the name decide.
func (c *tree) regroup(k, group int) {
	const width, most = 21, ChainGPUs - 1
	l := &c.levels[k]
	key := l.order.kids.least(group)
	if key != none {
		full, broken := 0, uint64(0)
		if k < c.top() {
			up := &c.levels[k+1]
			if up.taken[group] == 0 || up.owner[group] != 0 {
				l.order.best.set(0, group, none)
				return
			}
			full = int(up.taken[group])
		}
		if k < c.nodeAt {
			node := group * l.order.width * l.size / c.levels[c.nodeAt].size
			full = full*2*NodeGPUs + int(c.levels[c.nodeAt].taken[node])
			if c.levels[c.nodeAt].dead[node] > 0 {
				broken = 1
			}
		}
		key = broken<<(3*width) | min(key>>32, most)<<(2*width) | uint64(most-min(full, most))<<width | uint64(group)
	}
	l.order.best.set(0, group, key)
}

// find gives the best free cell of level k (AllocateCell of Algorithm 1): from the lowest level
// with a free one, by splitting that.
func (c *tree) find(k int) (int, bool) {
	for l := k; l <= c.top(); l++ {
		o := &c.levels[l].order
		best := o.best.least(0)
		if best == none {
			continue
		}
		group := int(best & (ChainGPUs - 1))
		i := group*o.width + int(uint32(o.kids.least(group)))
		for l > k {
			l--
			o = &c.levels[l].order
			i = i*o.width + int(uint32(o.kids.least(i)))
		}
		return i, true
	}
	return 0, false
}

// take removes a free cell from the free lists, and splits the larger ones around it.
func (c *tree) take(k, i int) {
	top, size := c.top(), int32(c.levels[k].size)
	for l, x := k, i; ; l++ {
		if l == top || c.levels[l+1].taken[x/c.levels[l+1].split] > 0 {
			c.levels[l].free--
			break
		}
		c.levels[l].free += c.levels[l+1].split - 1
		x /= c.levels[l+1].split
	}
	c.count(k, i, size)
}

// give returns a cell and merges buddies (ReleaseCell of Algorithm 1).
func (c *tree) give(k, i int) {
	top, size := c.top(), int32(c.levels[k].size)
	for l, x := k, i; ; l++ {
		if l == top || c.levels[l+1].taken[x/c.levels[l+1].split] > size {
			c.levels[l].free++
			break
		}
		c.levels[l].free -= c.levels[l+1].split - 1
		x /= c.levels[l+1].split
	}
	c.count(k, i, -size)
}

// count adds n to the taken GPUs of a cell and of all cells that contain it.
func (c *tree) count(k, i int, n int32) {
	for l, x := k, i; l <= c.top(); l++ {
		at := &c.levels[l].taken[x]
		was := *at
		*at += n
		if was == 0 || *at == 0 {
			c.rank(l, x)
		}
		if l < c.top() {
			x /= c.levels[l+1].split
		}
	}
	l, x := k, i
	if k < c.nodeAt { // all others in the node have a fuller one now
		l, x = c.nodeAt, i*c.levels[k].size/c.levels[c.nodeAt].size
		c.regroupNode(x)
	}
	for ; l <= c.top(); l++ {
		x /= c.levels[l].order.width
		c.regroup(l, x)
	}
}

// regroupNode updates all cells in a node.
func (c *tree) regroupNode(at int) {
	size := c.levels[c.nodeAt].size
	for k := range c.nodeAt {
		w := c.levels[k].order.width * c.levels[k].size
		for group := at * size / w; group*w < (at+1)*size; group++ {
			c.regroup(k, group)
		}
	}
}

// vacant tells whether a cell could be bound: all of it exists, and neither a part of it nor a
// cell that contains it is bound. Dead GPUs do not count.
func (c *chain) vacant(k, i int) bool {
	if c.tree.levels[k].taken[i] != c.tree.levels[k].dead[i] {
		return false
	}
	gpus := ones(0, len(c.lend))
	if k < c.tree.nodeAt {
		_, gpus = c.tree.part(k, i)
	}
	for n, last := c.tree.span(k, i); n < last; n++ {
		if c.nodes[n].fenced&gpus != 0 {
			return false
		}
	}
	return true
}

// isFree tells whether all of a cell is there, healthy and not bound.
func (c *chain) isFree(k, i int) bool { return c.tree.levels[k].taken[i] == 0 && c.vacant(k, i) }

// gap is one row of invariant (2).
type gap struct{ needed, there int }

// gaps gives invariant (2) for each level: cells that may still be allocated, and available
// cells, f_k + F_k, with F_k by equation (1).
func (c *tree) gaps(row []gap) []gap {
	row = append(row[:0], make([]gap, len(c.levels))...)
	split := 0
	for k := c.top(); k >= 0; k-- {
		l := &c.levels[k]
		row[k] = gap{l.reserved - l.bound - l.lost, l.free + split}
		split = (row[k].there - row[k].needed) * l.split
	}
	return row
}

// short gives, by level, the reserved cells that are not available, from the highest level down,
// and the number of GPUs; losses are not included.
func (c *tree) short() (cells [Levels]int, gpus int) {
	split := 0
	for k := c.top(); k >= 0; k-- {
		l := &c.levels[k]
		needed, there := l.reserved-l.bound, l.free+split
		cells[k] = max(needed-there, 0)
		gpus += cells[k] * l.size
		split = max(there-needed, 0) * l.split
	}
	return cells, gpus
}

// dead tells whether any GPU is bad.
func (c *tree) dead() bool {
	return slices.ContainsFunc(c.levels[c.top()].dead, func(n int32) bool { return n > 0 })
}

// touch records that a node changed.
func (c *chain) touch(i int) {
	if n := &c.nodes[i]; !n.dirty {
		n.dirty = true
		c.dirty = append(c.dirty, int32(i))
	}
}
