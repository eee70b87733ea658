package cells

import "slices"

// clone copies an unused state made by New. Data that no use of a state changes is shared.
func (s *State) clone() *State {
	cells := s.Cells.clone()
	allot := &allotment{cells: cells}
	return &State{Cells: cells, Leases: newRoster(cells, allot), allot: allot, work: perState, aside: perState}
}

func (s *Layout) clone() *Layout {
	out := *s
	out.chains, out.vcs = make([]*chain, len(s.chains)), make([]*vc, len(s.vcs))
	for i, c := range s.chains {
		out.chains[i] = c.clone()
	}
	for i, v := range s.vcs {
		w := *v
		w.accounts = slices.Clone(v.accounts)
		for ci := range w.accounts {
			w.accounts[ci] = slices.Clone(w.accounts[ci])
			for k := range w.accounts[ci] {
				w.accounts[ci][k].open = slices.Clone(w.accounts[ci][k].open)
			}
		}
		out.vcs[i] = &w
	}
	return &out
}

func (c *chain) clone() *chain {
	out := *c
	out.nodes, out.dirty = slices.Clone(c.nodes), slices.Clone(c.dirty)
	out.tree.levels, out.lend = slices.Clone(c.tree.levels), slices.Clone(c.lend)
	for k := range out.tree.levels {
		l := &out.tree.levels[k]
		for _, counts := range []*[]int32{&l.taken, &l.dead, &l.stays, &l.owner, &l.used} {
			*counts = slices.Clone(*counts)
		}
		l.order = l.order.clone()
	}
	for g := range out.lend {
		out.lend[g] = out.lend[g].clone()
	}
	return &out
}

func (r ranking) clone() ranking {
	r.kids.keys, r.best.keys = slices.Clone(r.kids.keys), slices.Clone(r.best.keys)
	return r
}
