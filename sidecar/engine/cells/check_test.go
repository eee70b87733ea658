package cells

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// check evaluates all invariants, recounted from the leases and the bound cells: besides the
// safety condition, free, bound and dead cells partition the cluster, guaranteed leases are in
// cells of their own VC and share no GPU, and free cells are at the highest level.
func (s *State) check() []Violation {
	out := s.Cells.Unsafe()
	for ci := range s.Cells.chains {
		out = append(out, s.checkChain(ci)...)
	}
	return append(out, s.checkLeases()...)
}

// checkChain counts a chain anew.
func (s *State) checkChain(ci int) []Violation {
	c := s.Cells.chains[ci]
	var out []Violation
	wrong := func(what string, k int, cell string, needed, there int) {
		if needed != there {
			out = append(out, Violation{what, c.name, c.tree.levels[k].name, cell, needed, there})
		}
	}
	size := len(c.lend)
	taken := make([]int, len(c.nodes)*size) // by GPU
	fenced := make([]uint64, len(c.nodes))
	for k := range c.tree.levels {
		l := &c.tree.levels[k]
		bound := make([]int, len(s.Cells.vcs))
		open := make([][]uint64, len(s.Cells.vcs))
		for i, owner := range l.owner {
			if owner == 0 {
				continue
			}
			level, first, n := c.tree.slots(k, i)
			for slot := first; slot < first+n && owner > 0; slot++ {
				at, gpus := c.tree.part(level, slot)
				if key := c.nodes[at].slotKey(gpus, slot); key != 0 {
					open[owner-1] = append(open[owner-1], key)
				}
			}
			for g := i * l.size; g < (i+1)*l.size; g++ {
				taken[g]++
				if owner > 0 {
					fenced[g/size] |= 1 << (g % size)
				}
			}
			if owner > 0 && !c.pinned[cell{k, i}] {
				bound[owner-1]++
			}
		}
		sum, reserved, lost := 0, 0, 0
		for v, n := range bound {
			a := &s.Cells.vcs[v].accounts[ci][k]
			wrong("cells bound are miscounted", k, s.Cells.vcs[v].name, n, a.bound)
			slices.Sort(open[v])
			wrong("GPUs to use in bound cells are miscounted", k, s.Cells.vcs[v].name, 0, slices.Compare(open[v], a.open))
			sum, reserved, lost = sum+n, reserved+a.reserved, lost+a.lost
		}
		wrong("cells bound are miscounted", k, "all", sum, l.bound)
		wrong("cells reserved are miscounted", k, "all", reserved, l.reserved)
		wrong("cells lost are miscounted", k, "all", lost, l.lost)
	}
	for i := range c.nodes {
		d := &c.nodes[i]
		wrong("a cell's GPUs are not those of its VC", c.tree.nodeAt, d.name, int(fenced[i]), int(d.fenced))
		for m := d.bad &^ fenced[i]; m != 0; m &= m - 1 {
			taken[i*size+bits.TrailingZeros64(m)]++
		}
	}
	for g, n := range taken {
		if n > 1 {
			wrong("a GPU is in two cells", 0, c.nodes[g/size].name, 1, n)
		}
	}
	return append(out, c.checkFree(taken)...)
}

// checkFree counts free cells anew from the GPUs that are taken.
func (c *chain) checkFree(taken []int) []Violation {
	var out []Violation
	for k := range c.tree.levels {
		l := &c.tree.levels[k]
		free := 0
		whole := make([]bool, l.n)
		for i := range whole {
			n := 0
			for g := i * l.size; g < (i+1)*l.size; g++ {
				n += taken[g]
			}
			whole[i] = n == 0
		}
		for i := range whole {
			if !whole[i] {
				continue
			}
			in := false // a larger cell that is free
			if k < c.tree.top() {
				up := c.tree.levels[k+1]
				n := 0
				for g := i / up.split * up.size; g < (i/up.split+1)*up.size; g++ {
					n += taken[g]
				}
				in = n == 0
			}
			if !in {
				free++
			}
			if group, at := c.tree.buddies(k, i); l.order.kids.keys[2*group*l.order.kids.width+l.order.kids.width+at] == none {
				out = append(out, Violation{"a free cell cannot be found", c.name, l.name, fmt.Sprint(i), 1, 0})
			}
		}
		if free != l.free {
			out = append(out, Violation{"free cells are miscounted", c.name, l.name, "all", free, l.free})
		}
	}
	return out
}

// checkLeases counts leases anew.
func (s *State) checkLeases() []Violation {
	var out []Violation
	type key struct{ chain, level, index int }
	type masks struct{ used, lent, stays uint64 }
	used := map[key]int32{}
	on := map[place]masks{}
	for i := range s.Leases.leases {
		f := &s.Leases.leases[i]
		for _, p := range f.parts {
			if f.right == "" {
				break
			}
			c := s.Cells.chains[p.chain]
			at := place{p.chain, p.node}
			m := on[at]
			if f.right != cluster.Guaranteed {
				m.lent |= p.gpus
				if !f.leaving {
					m.stays |= p.gpus
				}
				on[at] = m
				continue
			}
			k := int(p.level)
			j := c.tree.cellOf(k, int(p.node), p.gpus)
			if c.tree.levels[k].owner[j] != f.vc+1 {
				out = append(out, Violation{"a guaranteed lease stands outside its VC", c.name, c.tree.levels[k].name, fmt.Sprint(f.job), int(f.vc + 1), int(c.tree.levels[k].owner[j])})
			}
			if m.used&p.gpus != 0 {
				out = append(out, Violation{"a GPU has two guaranteed leases", c.name, c.tree.levels[k].name, c.nodes[p.node].name, 1, 2})
			}
			m.used |= p.gpus
			on[at] = m
			used[key{int(p.chain), k, j}] += int32(bits.OnesCount64(p.gpus))
		}
	}
	for ci, c := range s.Cells.chains {
		for i := range c.nodes {
			d := &c.nodes[i]
			if m := on[place{int16(ci), int32(i)}]; m != (masks{d.used, d.lent, d.stays}) {
				out = append(out, Violation{"a node's GPUs in use are miscounted", c.name, c.tree.levels[c.tree.nodeAt].name, d.name, bits.OnesCount64(m.used | m.lent), bits.OnesCount64(d.used | d.lent)})
			}
		}
		for k := range c.tree.levels {
			stays := make([]int32, c.tree.levels[k].n)
			for g := range c.tree.levels[0].n {
				if c.nodes[g/len(c.lend)].stays&(1<<(g%len(c.lend))) != 0 {
					stays[g/c.tree.levels[k].size]++
				}
			}
			for i, n := range c.tree.levels[k].used {
				if n != used[key{ci, k, i}] || stays[i] != c.tree.levels[k].stays[i] {
					out = append(out, Violation{"a cell's GPUs in use are miscounted", c.name, c.tree.levels[k].name, fmt.Sprint(i), int(used[key{ci, k, i}]), int(n)})
				}
				if owner := c.tree.levels[k].owner[i]; owner > 0 && n == 0 && !c.pinned[cell{k, i}] {
					out = append(out, Violation{"a cell is bound that nobody uses", c.name, c.tree.levels[k].name, fmt.Sprint(i), 0, 1})
				}
			}
		}
	}
	return out
}
