package cells

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// search finds the cells that a VC must bind for a gang that cannot run on every node.
//
// Buddy allocation takes any free cell of a level, since all are equivalent while all nodes suit.
// With constraints the answer depends on the choice of cells, their levels, and the larger free
// cells that are split for them. So the search considers them, exactly within its budget. It goes
// over the tree of cells from the leaves, and keeps for each cell the non-dominated options: the
// number of parts that fit, and the numbers of cells bound and of larger ones split, by level.
// Both are limited:
//
//	bound  at most what the VC has free of that level
//	split  at most the margin of invariant (2): f_k + F_k less the reserved cells
//
// Nothing else can break the invariant: a whole bound cell was reserved at its own level. Equal
// cells have equal options, which are computed once.
type search struct {
	*looks
	a      *ask
	c      *chain
	n      int // parts that are wanted; more count for nothing
	floor  int // the lowest level for bound cells
	limits cost
	lanes  [2 * Levels]int // where a cost has the count of what is bound, then split, of a level, or never
	whole  map[cell]bool   // of cells larger than a node that were asked for: all of it is free
	frees  map[shape]int
	groups map[string]int
	kinds  []kind
	work   int  // pairs that may still be weighed
	cut    bool // options were dropped: there may be better ones
}

// looks is what a search finds on each node.
type looks struct {
	most  []int // parts that may be there
	has   []int // parts that have room in cells bound already
	taken []int // of a guess: parts that are there
}

// A gang of hundreds of nodes in a VC with cells of several levels can have very many options.
// Then some are dropped, and the search is no longer exact: if it finds nothing, a guess is
// tried, and a refusal says that not all choices were considered. So a gang takes at most a tenth
// of a second, and all gangs of a round some seconds.
const (
	options   = 512     // most options that are kept for a cell
	few       = 16      // and once a search has done its work
	perSearch = 1 << 19 // pairs of options that a search compares
	perState  = 1 << 23 // and that all searches on a State do
)

// cost counts, by level, the cells that are bound and those that are split for smaller ones. Each count has a lane of 16 bits and
// leaves the highest bit clear, so that one addition, or one subtraction to compare, serves four lanes.
type cost [2 * Levels / 4]uint64

const (
	never = -1
	tops  = 0x8000_8000_8000_8000
	limit = 1<<14 - 1 // of a lane: two of them fit
)

func (c *cost) set(lane, n int) {
	at := 16 * (lane % 4)
	c[lane/4] = c[lane/4]&^(0xffff<<at) | uint64(min(n, limit))<<at
}

func (c *cost) get(lane int) int { return int(c[lane/4] >> (16 * (lane % 4)) & 0xffff) }

func (c *cost) within(limits *cost) bool {
	for i := range c {
		if ((limits[i]|tops)-c[i])&tops != tops {
			return false
		}
	}
	return true
}

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
	sum   int // of all counts in it
	parts int
	bind  bool // all of it
	kind  int  // of a single cell within: its kind, and the way to use that
	way   *option
	a, b  *option // or two ways together
}

// cells gives the cells to bind so that n parts fit, and the maximum number of parts that fit.
// Among several answers it takes one that binds the fewest GPUs.
func (s *State) cells(a *ask, n int) (bind []cell, best int) {
	f := &search{looks: &s.looks, a: a, c: a.c, n: n, floor: -1, whole: map[cell]bool{}, frees: map[shape]int{}, groups: map[string]int{}, work: min(perSearch, s.work)}
	rows := a.c.tree.gaps(nil)
	lanes := 0
	lane := func(k, n int) {
		if f.lanes[k] = never; n > 0 {
			f.lanes[k] = lanes
			f.limits.set(lanes, n)
			lanes++
		}
	}
	for k := range Levels {
		bound, split := 0, 0
		if k >= a.c.tree.fit(a.gpus) && k <= a.c.tree.top() {
			bound, split = s.Cells.vcs[a.v].accounts[a.ci][k].unbound(), rows[k].there-rows[k].needed
		}
		if f.floor < 0 && bound > 0 {
			f.floor = k
		}
		lane(k, bound)
		lane(Levels+k, split)
	}
	if f.floor < 0 {
		return nil, 0
	}
	f.look(s.Cells.vcs[a.v].accounts[a.ci])
	guess, best, most := f.guess()
	if most < n {
		return nil, best
	}
	defer func(work int) { s.work -= work - max(f.work, 0) }(f.work)
	top := a.c.tree.top()
	all := f.together(f.below(top+1, 0, len(a.c.tree.levels[top].owner)))
	weight := func(o *option) (gpus int) {
		for k := range a.c.tree.levels {
			if lane := f.lanes[k]; lane != never {
				gpus += o.cost.get(lane) * a.c.tree.levels[k].size
			}
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
	switch {
	case chosen != nil:
		return f.carryOut(chosen, top+1, 0, len(a.c.tree.levels[top].owner), nil), best
	case best == n:
		return guess, best
	}
	a.cut = a.cut || f.cut
	return nil, best
}

// look notes what each node takes, and what has room there in bound cells.
func (f *search) look(accounts []account) {
	c, a := f.c, f.a
	f.most, f.has = zeros(f.most, len(c.nodes)), zeros(f.has, len(c.nodes))
	for k := c.tree.fit(a.gpus); k < len(accounts); k++ {
		level := min(k, c.tree.nodeAt)
		for _, key := range accounts[k].open {
			at, whole := c.tree.part(level, int(uint32(key)))
			d := &c.nodes[at]
			f.has[at] += c.tree.parts(whole&^(d.used|d.bad), min(a.level, level), a.gpus)
		}
	}
	for at := range c.nodes {
		if d := &c.nodes[at]; f.has[at] > 0 || c.loose(at) != 0 {
			f.most[at] = a.most(d, min(f.n, c.tree.parts(ones(0, len(c.lend)), a.level, a.gpus)))
			f.has[at] = min(f.has[at], f.most[at])
		}
	}
}

// zeros gives n zeros, in the memory of old.
func zeros(old []int, n int) []int {
	out := slices.Grow(old[:0], n)[:n]
	clear(out)
	return out
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
func (c *tree) parts(free uint64, level, gpus int) int {
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
	if k > c.tree.nodeAt {
		split := c.tree.levels[k].split
		return f.group(k, f.below(k, i*split, (i+1)*split))
	}
	at, gpus := c.tree.part(k, i)
	if k == c.tree.nodeAt {
		return f.inNode(shape{k, c.loose(at), f.most[at], f.has[at]})
	}
	return f.inNode(shape{k, c.loose(at) & gpus >> bits.TrailingZeros64(gpus), f.n, 0})
}

// inNode gives the kind of a cell that is at most a node.
func (f *search) inNode(x shape) int {
	all := ones(0, f.c.tree.levels[x.level].size)
	if x.free != all && (x.level <= f.floor || x.most == 0) {
		x.free = 0
	}
	at, ok := f.frees[x]
	if ok {
		return at
	}
	y := kind{whole: x.free == all, full: min(x.most, f.c.tree.parts(all, min(f.a.level, x.level), f.a.gpus))}
	used := []*option{{parts: min(x.has, f.n)}}
	if x.level > f.floor && x.free != 0 && x.most > 0 {
		var kinds []int
		size := f.c.tree.levels[x.level-1].size
		for i := range f.c.tree.levels[x.level].split {
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
			if o.sum > 0 && !f.charge(&split, Levels+k) {
				continue
			}
			f.offer(of, &split)
		}
		if y.full > 0 {
			if whole := (&option{parts: min(y.full, f.n), bind: true}); f.charge(whole, k) {
				f.offer(of, whole)
			}
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
			single[i] = &option{cost: o.cost, sum: o.sum, parts: o.parts, kind: at, way: o}
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

// charge adds one cell to an option's cost, where that is allowed at all.
func (f *search) charge(o *option, what int) bool {
	lane := f.lanes[what]
	if lane == never || o.cost.get(lane) == limit {
		return false
	}
	o.cost.set(lane, o.cost.get(lane)+1)
	o.sum++
	return true
}

// add gives the options of two together, with at most so many parts.
func (f *search) add(x, y []*option, most int) []*option {
	if len(x) == 1 && x[0].parts == 0 && x[0].sum == 0 && most >= f.n {
		return y
	}
	if f.work < len(x)*len(y) {
		x, y = f.thin(x, few), f.thin(y, few)
	}
	f.work -= len(x) * len(y)
	of := make(map[cost]*option, len(x)+len(y))
	for _, a := range x {
		for _, b := range y {
			o := option{cost: a.cost, sum: a.sum + b.sum, parts: min(a.parts+b.parts, most, f.n), a: a, b: b}
			for i := range o.cost {
				o.cost[i] += b.cost[i]
			}
			f.offer(of, &o)
		}
	}
	return f.best(of)
}

// offer notes an option that is within the limits, and better than another of the same cost.
func (f *search) offer(of map[cost]*option, o *option) {
	if !o.cost.within(&f.limits) {
		return
	}
	if was := of[o.cost]; was == nil {
		kept := *o
		of[o.cost] = &kept
	} else if was.parts < o.parts {
		*was = *o
	}
}

// best gives the options that no other one beats, cheapest first.
func (f *search) best(of map[cost]*option) []*option {
	all := slices.SortedFunc(maps.Values(of), func(a, b *option) int {
		return cmp.Or(cmp.Compare(a.sum, b.sum), slices.Compare(a.cost[:], b.cost[:]))
	})
	all = f.thin(all, 4*options)
	if f.work < len(all)*len(all)/2 {
		all = f.thin(all, 4*few)
	}
	out := all[:0]
	for _, o := range all {
		f.work -= len(out)
		if !slices.ContainsFunc(out, func(p *option) bool { return p.parts >= o.parts && p.cost.within(&o.cost) }) {
			out = append(out, o)
		}
	}
	return f.thin(out, options)
}

// thin drops options so that at most so many are left, the cheapest and the dearest among them.
func (f *search) thin(all []*option, most int) []*option {
	if len(all) <= most {
		return all
	}
	f.cut = true
	out := make([]*option, most)
	for i := range out {
		out[i] = all[i*(len(all)-1)/(most-1)]
	}
	return out
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
	stays := f.c.tree.levels[k-1].stays
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
		split := f.c.tree.levels[k-1].split
		out = f.carryOut(way, k-1, i*split, (i+1)*split, out)
	}
	return out
}

// single gives the single cells in which an option binds something.
func (o *option) single(yield func(*option)) {
	switch {
	case o.sum == 0:
	case o.way != nil:
		yield(o)
	case o.a != nil:
		o.a.single(yield)
		o.b.single(yield)
	}
}
