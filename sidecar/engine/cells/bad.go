package cells

import "math/bits"

// SetBad sets the bad GPUs of a node (all bits = the node), and tells whether the node exists.
// Leases on them stay until they are released.
func (s *State) SetBad(name string, gpus uint64) bool {
	at, ok := s.Cells.places[name]
	if ok {
		s.allot.spoil(at, gpus)
	}
	return ok
}

// Spoil makes further GPUs of a node bad.
func (s *State) Spoil(node string, gpus uint64) {
	if at, ok := s.Cells.places[node]; ok {
		s.allot.spoil(at, s.Cells.chains[at.chain].nodes[at.node].bad|gpus)
	}
}

// spoil sets the bad GPUs of a node.
func (s *allotment) spoil(at place, gpus uint64) {
	ci, i := int(at.chain), int(at.node)
	c := s.cells.chains[ci]
	d := &c.nodes[i]
	gpus &= ones(0, c.tree.levels[c.tree.nodeAt].size)
	for m := d.bad ^ gpus; m != 0; m &= m - 1 {
		s.flip(ci, i, m&-m)
	}
	c.touch(i)
	s.settle(ci)
}

// flip makes a good GPU of a node bad, or a bad one good.
func (s *allotment) flip(ci, at int, gpu uint64) {
	c := s.cells.chains[ci]
	d := &c.nodes[at]
	size := c.tree.levels[c.tree.nodeAt].size
	g := at*size + bits.TrailingZeros64(gpu)
	n := int32(1)
	if d.bad&gpu != 0 {
		n = -1
	}
	for k := range c.tree.levels {
		c.tree.levels[k].dead[g/c.tree.levels[k].size] += n
	}
	if d.fenced&gpu != 0 {
		k, i := c.tree.holder(g)
		s.change(c.tree.levels[k].owner[i]-1, ci, k, at, gpu, d.used, d.bad^gpu, d.stays)
	} else if d.bad ^= gpu; n > 0 {
		c.tree.take(0, g)
	} else {
		c.tree.give(0, g)
	}
	c.tree.regroupNode(at) // it may be broken now, or whole
}

// holder gives the bound cell that contains a GPU.
func (c *tree) holder(g int) (k, i int) {
	for k = range c.levels {
		if i = g / c.levels[k].size; c.levels[k].owner[i] > 0 {
			break
		}
	}
	return k, i
}

// settle restores invariant (2) after hardware failed or came back. From the highest level down,
// the VC with the most unallocated cells there, by name, loses missing cells one at a time;
// available cells return to the VC with the largest loss.
func (s *allotment) settle(ci int) {
	if s.trying {
		return
	}
	c := s.cells.chains[ci]
	row := c.tree.gaps(nil)
	for k := c.tree.top(); k >= 0; k-- {
		for row[k].needed > row[k].there {
			a := s.most(ci, k, (*account).unbound)
			a.lost++
			c.tree.levels[k].lost++
			row = c.tree.gaps(row)
		}
	}
	for k := c.tree.top(); k >= 0; k-- {
		for c.tree.levels[k].lost > 0 {
			c.tree.levels[k].lost--
			row = c.tree.gaps(row)
			if !holds(row) {
				c.tree.levels[k].lost++
				break
			}
			s.most(ci, k, func(a *account) int { return a.lost }).lost--
		}
	}
}

// holds tells whether invariant (2) holds.
func holds(row []gap) bool {
	for _, g := range row {
		if g.needed > g.there {
			return false
		}
	}
	return true
}

// most gives the account of a level with the maximum of of, the first by name.
func (s *allotment) most(ci, k int, of func(*account) int) *account {
	var best *account
	for _, v := range s.cells.vcs {
		if a := &v.accounts[ci][k]; best == nil || of(a) > of(best) {
			best = a
		}
	}
	return best
}
