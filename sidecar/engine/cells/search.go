package cells

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// search finds the cells that a VC has to bind for a gang that may not run on every node.
//
// Buddy allocation takes any free cell of a level, which is as good as another while all nodes
// will do. With constraints the answer depends on the choice of cells, their levels, and the larger
// free cells that are split for them. So the search weighs them (exactly, but for options). It goes over the tree of cells
// from the leaves, and keeps for each cell the options that no other one beats: how many parts
// have room, for how many cells bound and how many larger ones split, by level. Both are limited:
//
//	bound  at most what the VC has free of that level
//	split  at most what invariant (2) leaves over: f_k + F_k less the cells that are promised
//
// Nothing else can break the invariant: a cell that is bound whole was promised at its own
// level. Cells that look alike have the same options, which are worked out once for all of them.
type search struct {
	a      *ask
	c      *chain
	n      int   // parts that are wanted; more count for nothing
	most   []int // by node: parts that may be there
	has    []int // by node: parts that have room in cells bound already
	floor  int   // the lowest level of which cells may be bound
	limits cost
	frees  map[shape]int
	groups map[string]int
	kinds  []kind
}

// cost is how many cells of each level are bound, and how many are split for smaller ones.
type cost [2 * Levels]int32

// options is the most options that are kept for a cell. Gangs of hundreds of nodes in a VC with
// cells of several levels can have more: then some in between are dropped, and the search is no longer exact.
const options = 512

// shape is what matters of a cell, at most a node, to what can be bound in it.
type shape struct {
	level     int
	free      uint64
	most, has int
}

// kind is cells that look alike.
type kind struct {
	whole   bool // all of it is free
	full    int  // then: parts that have room if all of it is bound
	options []*option
}

// option is one way to use a cell, or several together.
type option struct {
	cost  cost
	parts int
	bind  bool // all of it
	kind  int  // of a single cell within: its kind, and the way to use that
	way   *option
	a, b  *option // or two ways together
}

// cells gives the cells to bind so that n parts have room, and how many parts have room at
// best. Among several answers it takes one that binds fewest GPUs.
func (s *State) cells(a *ask, n int) (bind []cell, best int) {
	f := &search{a: a, c: a.c, n: n, floor: -1, frees: map[shape]int{}, groups: map[string]int{}}
	rows := a.c.gaps(nil)
	for k := a.c.fit(a.gpus); k <= a.c.top(); k++ {
		f.limits[k] = int32(max(s.vcs[a.v].accounts[a.ci][k].unbound(), 0))
		f.limits[Levels+k] = int32(max(rows[k].there-rows[k].needed, 0))
		if f.floor < 0 && f.limits[k] > 0 {
			f.floor = k
		}
	}
	if f.floor < 0 {
		return nil, 0
	}
	f.look(s.vcs[a.v].accounts[a.ci])
	top := a.c.top()
	all := f.together(f.below(top+1, 0, len(a.c.levels[top].owner)))
	weight := func(o *option) (gpus int) {
		for k := range a.c.levels {
			gpus += int(o.cost[k]) * a.c.levels[k].size
		}
		return gpus
	}
	var chosen *option
	for _, o := range all {
		best = max(best, o.parts)
		if o.parts == n && (chosen == nil || weight(o) < weight(chosen)) {
			chosen = o
		}
	}
	if chosen == nil {
		return nil, best
	}
	return f.carryOut(chosen, top+1, 0, len(a.c.levels[top].owner), nil), best
}

// look notes what each node takes, and what has room there in bound cells.
func (f *search) look(accounts []account) {
	c, a := f.c, f.a
	f.most, f.has = make([]int, len(c.nodes)), make([]int, len(c.nodes))
	for k := c.fit(a.gpus); k < len(accounts); k++ {
		level := min(k, c.nodeAt)
		for _, key := range accounts[k].open {
			at, whole := c.part(level, int(uint32(key)))
			d := &c.nodes[at]
			f.has[at] += c.parts(whole&^(d.used|d.bad), min(a.level, level), a.gpus)
		}
	}
	for at := range c.nodes {
		if d := &c.nodes[at]; f.has[at] > 0 || c.loose(at) != 0 {
			f.most[at] = a.most(d, min(f.n, c.parts(ones(0, len(c.lend)), a.level, a.gpus)))
			f.has[at] = min(f.has[at], f.most[at])
		}
	}
}

// most gives how many of n parts a node takes.
func (a *ask) most(d *node, n int) int {
	if a.apart {
		n = min(n, 1)
	}
	for a.admits != nil && n > 0 && !a.admits(d.name, n*a.gpus) {
		n--
	}
	return n
}

// parts gives how many parts have room on free GPUs, each in one cell of a level.
func (c *chain) parts(free uint64, level, gpus int) int {
	n, size := 0, c.levels[level].size
	for ; free != 0; free &^= ones(bits.TrailingZeros64(free)/size*size, size) {
		n += bits.OnesCount64(free&ones(bits.TrailingZeros64(free)/size*size, size)) / gpus
	}
	return n
}

// loose gives the GPUs of a node that are healthy and in no bound cell.
func (c *chain) loose(at int) uint64 {
	d := &c.nodes[at]
	if d.name == "" {
		return 0
	}
	return ones(0, len(c.lend)) &^ (d.fenced | d.bad)
}

// below gives the kinds of the cells of level k-1, from first, below last.
func (f *search) below(k, first, last int) []int {
	out := make([]int, 0, last-first)
	for i := first; i < last; i++ {
		out = append(out, f.kindOf(k-1, i))
	}
	return out
}

// kindOf gives the kind of a cell.
func (f *search) kindOf(k, i int) int {
	c := f.c
	if k > c.nodeAt {
		split := c.levels[k].split
		return f.group(k, f.below(k, i*split, (i+1)*split))
	}
	at, gpus := c.part(k, i)
	if k == c.nodeAt {
		return f.inNode(shape{k, c.loose(at), f.most[at], f.has[at]})
	}
	return f.inNode(shape{k, c.loose(at) & gpus >> bits.TrailingZeros64(gpus), f.n, 0})
}

// inNode gives the kind of a cell that is at most a node.
func (f *search) inNode(x shape) int {
	all := ones(0, f.c.levels[x.level].size)
	if x.free != all && (x.level <= f.floor || x.most == 0) {
		x.free = 0
	}
	at, ok := f.frees[x]
	if ok {
		return at
	}
	y := kind{whole: x.free == all, full: min(x.most, f.c.parts(all, min(f.a.level, x.level), f.a.gpus))}
	used := []*option{{parts: min(x.has, f.n)}}
	if x.level > f.floor && x.free != 0 && x.most > 0 {
		var kinds []int
		size := f.c.levels[x.level-1].size
		for i := range f.c.levels[x.level].split {
			kinds = append(kinds, f.inNode(shape{x.level - 1, x.free >> (i * size) & ones(0, size), f.n, 0}))
		}
		used = f.add(used, f.together(kinds), x.most)
	}
	return f.know(&y, x.level, used, func(at int) { f.frees[x] = at })
}

// group gives the kind of a cell larger than a node, with cells of these kinds in it.
func (f *search) group(k int, kinds []int) int {
	slices.Sort(kinds)
	name := make([]byte, 0, 4*len(kinds)+1)
	for _, at := range kinds {
		name = append(name, byte(at), byte(at>>8), byte(at>>16))
	}
	key := string(append(name, byte(k)))
	if at, ok := f.groups[key]; ok {
		return at
	}
	y := kind{whole: true}
	for _, at := range kinds {
		y.whole = y.whole && f.kinds[at].whole
		y.full += f.kinds[at].full
	}
	used := []*option{{}}
	if k > f.floor {
		used = f.together(kinds)
	} else {
		for _, at := range kinds {
			used[0].parts += f.kinds[at].options[0].parts
		}
		used[0].parts = min(used[0].parts, f.n)
	}
	return f.know(&y, k, used, func(at int) { f.groups[key] = at })
}

// know finishes a kind, given how its parts can be used, and gives its number: where it is
// free it is split for smaller cells, or bound whole.
func (f *search) know(y *kind, k int, used []*option, note func(int)) int {
	if y.whole {
		of := map[cost]*option{}
		for _, o := range used {
			split := *o
			if o.cost != (cost{}) {
				split.cost[Levels+k]++
			}
			f.offer(of, &split)
		}
		if y.full > 0 {
			whole := &option{parts: min(y.full, f.n), bind: true}
			whole.cost[k] = 1
			f.offer(of, whole)
		}
		used = f.best(of)
	}
	y.options = used
	f.kinds = append(f.kinds, *y)
	note(len(f.kinds) - 1)
	return len(f.kinds) - 1
}

// together gives the options of cells of these kinds together.
func (f *search) together(kinds []int) []*option {
	count := make([]int, len(f.kinds))
	for _, at := range kinds {
		count[at]++
	}
	out := []*option{{}}
	for at, n := range count {
		if n == 0 {
			continue
		}
		single := make([]*option, len(f.kinds[at].options))
		for i, o := range f.kinds[at].options {
			single[i] = &option{cost: o.cost, parts: o.parts, kind: at, way: o}
		}
		for ; n > 0; n >>= 1 { // 1, 2, 4, … of them
			if n&1 > 0 {
				out = f.add(out, single, f.n)
			}
			if n > 1 {
				single = f.add(single, single, f.n)
			}
		}
	}
	return out
}

// add gives the options of two together, with at most so many parts.
func (f *search) add(x, y []*option, most int) []*option {
	if len(x) == 1 && x[0].parts == 0 && x[0].cost == (cost{}) && most >= f.n {
		return y
	}
	of := make(map[cost]*option, len(x)+len(y))
	for _, a := range x {
		for _, b := range y {
			o := option{cost: a.cost, parts: min(a.parts+b.parts, most, f.n), a: a, b: b}
			for k := range o.cost {
				o.cost[k] += b.cost[k]
			}
			f.offer(of, &o)
		}
	}
	return f.best(of)
}

// offer notes an option that is within the limits, and better than another of the same cost.
func (f *search) offer(of map[cost]*option, o *option) {
	for k, limit := range f.limits {
		if o.cost[k] > limit {
			return
		}
	}
	if was := of[o.cost]; was == nil || was.parts < o.parts {
		of[o.cost] = o
	}
}

// best gives the options that no other one beats, cheapest first.
func (f *search) best(of map[cost]*option) []*option {
	all := slices.SortedFunc(maps.Values(of), func(a, b *option) int {
		return cmp.Or(cmp.Compare(a.cost.sum(), b.cost.sum()), slices.Compare(a.cost[:], b.cost[:]))
	})
	out := all[:0]
	for _, o := range all {
		if !slices.ContainsFunc(out, func(p *option) bool { return p.parts >= o.parts && p.cost.within(&o.cost) }) {
			out = append(out, o)
		}
	}
	if len(out) > options {
		step := (len(out) + options - 1) / options
		last := out[len(out)-1]
		for i := 0; i*step < len(out); i++ {
			out[i] = out[i*step]
		}
		out = append(out[:(len(out)+step-1)/step], last)
	}
	return out
}

func (c *cost) sum() (n int32) {
	for _, x := range c {
		n += x
	}
	return n
}

func (c *cost) within(limits *cost) bool {
	for k := range c {
		if c[k] > limits[k] {
			return false
		}
	}
	return true
}

// carryOut adds the cells that an option binds, of those of level k-1 from first, below last:
// where fewest GPUs are under opportunistic leases that stay, then by name.
func (f *search) carryOut(o *option, k, first, last int, out []cell) []cell {
	ways := map[int][]*option{}
	o.single(func(of *option) { ways[of.kind] = append(ways[of.kind], of.way) })
	if len(ways) == 0 {
		return out
	}
	var order []int
	kinds := f.below(k, first, last)
	for i := first; i < last; i++ {
		if ways[kinds[i-first]] != nil {
			order = append(order, i)
		}
	}
	stays := f.c.levels[k-1].stays
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(stays[a], stays[b]) })
	for _, i := range order {
		at := kinds[i-first]
		if len(ways[at]) == 0 {
			continue
		}
		way := ways[at][0]
		ways[at] = ways[at][1:]
		if way.bind {
			out = append(out, cell{k - 1, i})
			continue
		}
		split := f.c.levels[k-1].split
		out = f.carryOut(way, k-1, i*split, (i+1)*split, out)
	}
	return out
}

// single gives the single cells in which an option binds something.
func (o *option) single(yield func(*option)) {
	switch {
	case o.cost == (cost{}):
	case o.way != nil:
		yield(o)
	case o.a != nil:
		o.a.single(yield)
		o.b.single(yield)
	}
}
