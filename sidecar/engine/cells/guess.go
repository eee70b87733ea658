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
// under opportunistic leases that stay. whole tells of all cells from a node on, and from the floor on, whether they are free.
func (f *search) stock() (by [Levels][]loose, whole [Levels][]bool) {
	c := f.c
	var room []int // of the level before
	for k := min(f.floor, c.nodeAt); k <= c.top(); k++ {
		l := &c.levels[k]
		parts := make([]int, l.n)
		whole[k] = make([]bool, l.n)
		for i := range parts {
			if k > c.nodeAt {
				whole[k][i] = !slices.Contains(whole[k-1][i*l.split:(i+1)*l.split], false)
				for _, n := range room[i*l.split : (i+1)*l.split] {
					parts[i] += n
				}
			} else {
				at, gpus := c.part(k, i)
				whole[k][i] = c.loose(at)&gpus == gpus
				parts[i] = min(f.most[at], c.parts(ones(0, l.size), min(f.a.level, k), f.a.gpus))
			}
			if f.lanes[k] != never && whole[k][i] && parts[i] > 0 {
				by[k] = append(by[k], loose{cell{k, i}, parts[i]})
			}
		}
		slices.SortStableFunc(by[k], func(a, b loose) int {
			return cmp.Or(cmp.Compare(b.parts, a.parts), cmp.Compare(l.stays[a.index], l.stays[b.index]))
		})
		room = parts
	}
	return by, whole
}

// guess binds large cells before small ones, and of a level those with most room; then it gives back what is not needed. It says for how
// many parts that is, and how many have room at most, whichever cells are bound. A guess that finds too little proves nothing, but
// where no node has room for two parts and no cell has to be split the two numbers are the same.
func (f *search) guess() (bind []cell, parts, most int) {
	c := f.c
	by, whole := f.stock()
	taken, all := slices.Clone(f.has), 0
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
		for k, i := x.level+1, x.index; k <= c.top(); k++ {
			i /= c.levels[k].split
			if bound[k][i] || whole[k][i] && !split[k][i] && !spend(f.lanes[Levels+k]) {
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
	for k := c.top(); k >= f.floor; k-- {
		for n, x := range by[k] {
			if n < f.limits.get(f.lanes[k]) {
				most += x.parts
			}
			at, _ := c.span(k, x.index)
			if k <= c.nodeAt {
				x.parts = min(x.parts, f.most[at]-taken[at])
			}
			if parts >= f.n || left.get(f.lanes[k]) == 0 || x.parts == 0 || !opens(x.cell) {
				continue
			}
			spend(f.lanes[k])
			bound[k][x.index] = true
			chosen = append(chosen, x)
			parts += x.parts
			if k <= c.nodeAt {
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
