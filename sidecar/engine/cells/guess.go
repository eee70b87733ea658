package cells

import (
	"cmp"
	"slices"
)

// loose is a free cell that may be bound, and how many parts have room in it.
type loose struct {
	cell
	parts int
}

// stock lists the free cells of each level that may be bound and have room, those with most room first, then where fewest GPUs are
// under opportunistic leases that stay. Nodes that take no part are not looked into: there may be very many of them.
func (f *search) stock() (by [Levels][]loose) {
	c := f.c
	for k := min(f.floor, c.tree.nodeAt); k <= c.tree.top(); k++ {
		if f.lanes[k] == never {
			continue
		}
		l := &c.tree.levels[k]
		offer := func(i, parts int) {
			if parts > 0 && f.free(k, i) {
				by[k] = append(by[k], loose{cell{k, i}, parts})
			}
		}
		if k > c.tree.nodeAt {
			for i := range l.n {
				parts := 0
				for at := i * c.tree.nodesIn(k); at < (i+1)*c.tree.nodesIn(k); at++ {
					parts += f.room(c.tree.nodeAt, at)
				}
				offer(i, parts)
			}
		} else {
			each := c.tree.levels[c.tree.nodeAt].size / l.size
			for at, most := range f.most {
				for i := at * each; most > 0 && i < (at+1)*each; i++ {
					offer(i, f.room(k, at))
				}
			}
		}
		slices.SortStableFunc(by[k], func(a, b loose) int {
			return cmp.Or(cmp.Compare(b.parts, a.parts), cmp.Compare(l.stays[a.index], l.stays[b.index]))
		})
	}
	return by
}

// room gives how many parts have room in a cell of level k, at most a node, if all of it is bound.
func (f *search) room(k, at int) int {
	return min(f.most[at], f.c.tree.parts(ones(0, f.c.tree.levels[k].size), min(f.a.level, k), f.a.gpus))
}

// free tells whether all of a cell is.
func (f *search) free(k, i int) bool {
	c := f.c
	if k <= c.tree.nodeAt {
		at, gpus := c.tree.part(k, i)
		return c.loose(at)&gpus == gpus
	}
	is, known := f.whole[cell{k, i}]
	if !known {
		is = true
		for at := i * c.tree.nodesIn(k); is && at < (i+1)*c.tree.nodesIn(k); at++ {
			is = f.free(c.tree.nodeAt, at)
		}
		f.whole[cell{k, i}] = is
	}
	return is
}

// guess binds large cells before small ones, and of a level those with most room; then it gives back what is not needed. It says for how
// many parts that is, and how many have room at most, whichever cells are bound. A guess that finds too little proves nothing, but
// where no node has room for two parts and no cell has to be split the two numbers are the same.
func (f *search) guess() (bind []cell, parts, most int) {
	c := f.c
	by := f.stock()
	f.taken = append(f.taken[:0], f.has...)
	taken, all := f.taken, 0
	for at := range taken {
		parts += taken[at]
		all += f.most[at]
	}
	most = parts
	left := f.limits
	spend := func(lane int) bool {
		if lane == never || left.get(lane) == 0 {
			return false
		}
		left.set(lane, left.get(lane)-1)
		return true
	}
	var bound, split [Levels]map[int]bool
	for k := range bound {
		bound[k], split[k] = map[int]bool{}, map[int]bool{}
	}
	// opens tells whether a cell is in none that is bound, and splits the larger ones that are free.
	opens := func(x cell) bool {
		was, opened := left, []cell(nil)
		for k, i := x.level+1, x.index; k <= c.tree.top(); k++ {
			i /= c.tree.levels[k].split
			if bound[k][i] || !split[k][i] && f.free(k, i) && !spend(f.lanes[Levels+k]) {
				left = was
				return false
			}
			opened = append(opened, cell{k, i})
		}
		for _, o := range opened {
			split[o.level][o.index] = true
		}
		return true
	}
	var chosen []loose
	for k := c.tree.top(); k >= f.floor; k-- {
		for n, x := range by[k] {
			if n < f.limits.get(f.lanes[k]) {
				most += x.parts
			}
			at, _ := c.tree.span(k, x.index)
			if k <= c.tree.nodeAt {
				x.parts = min(x.parts, f.most[at]-taken[at])
			}
			if parts >= f.n || left.get(f.lanes[k]) == 0 || x.parts == 0 || !opens(x.cell) {
				continue
			}
			spend(f.lanes[k])
			bound[k][x.index] = true
			chosen = append(chosen, x)
			parts += x.parts
			if k <= c.tree.nodeAt {
				taken[at] += x.parts
			}
		}
	}
	for _, x := range chosen {
		if parts-x.parts >= f.n {
			parts -= x.parts
			continue
		}
		bind = append(bind, x.cell)
	}
	return bind, min(parts, f.n), min(most, all)
}
