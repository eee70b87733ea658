package cells

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Views gives what every VC has at each level where it has something.
func (s *Layout) Views() []View {
	var out []View
	clean := make([][]int, len(s.chains))
	for ci, c := range s.chains {
		for k := range c.tree.levels {
			clean[ci] = append(clean[ci], c.clean(k))
		}
	}
	for _, v := range s.vcs {
		for ci, accounts := range v.accounts {
			c := s.chains[ci]
			for k := c.tree.top(); k >= 0; k-- {
				if a := &accounts[k]; a.reserved+a.pinned > 0 {
					out = append(out, View{VC: v.name, Chain: c.name, Type: c.tree.levels[k].name, Reserved: a.reserved, Pinned: a.pinned,
						Bound: a.bound, Lost: a.lost, Free: a.unbound(), Lent: max(a.unbound()-clean[ci][k], 0)})
				}
			}
		}
	}
	return out
}

// Supply is the cells of a level: those that VCs may still bind, and those available for them
// once all of higher levels are bound. The rest is split for lower levels.
type Supply struct {
	Chain  string `json:"chain"`
	Type   string `json:"type"`
	GPUs   int    `json:"gpus"`   // of one
	Cells  int    `json:"cells"`  // that exist
	Pinned int    `json:"pinned"` // of these
	Needed int    `json:"needed"`
	There  int    `json:"there"`
}

// Supply gives it for each level, by chain, from the largest down.
func (s *Layout) Supply() []Supply {
	var out []Supply
	for ci, c := range s.chains {
		rows := c.tree.gaps(nil)
		for k := c.tree.top(); k >= 0; k-- {
			l := &c.tree.levels[k]
			x := Supply{Chain: c.name, Type: l.name, GPUs: l.size, Needed: rows[k].needed, There: rows[k].there}
			for i := range l.n {
				x.Cells += btoi(c.exists(k, i))
			}
			for _, v := range s.vcs {
				x.Pinned += v.accounts[ci][k].pinned
			}
			out = append(out, x)
		}
	}
	return out
}

// exists tells whether all nodes of a cell are there.
func (c *chain) exists(k, i int) bool {
	for n, last := c.tree.span(k, i); n < last; n++ {
		if c.nodes[n].name == "" {
			return false
		}
	}
	return true
}

// clean counts the cells of level k that are free, split or not, without an opportunistic lease
// in them.
func (c *chain) clean(k int) int {
	n := 0
	for i, taken := range c.tree.levels[k].taken {
		// Inside a bound cell nothing is counted as taken.
		if taken == 0 && c.tree.levels[k].stays[i] == 0 && c.vacant(k, i) {
			n++
		}
	}
	return n
}

// Bound gives all bound cells, by chain, from the largest level down, by name. key gives the key of a job; nil = the
// jobs are left out.
func (s *roster) Bound(key func(job int) cluster.JobKey) []Binding {
	type holder struct {
		chain, level, index int
		job                 cluster.JobKey
	}
	holders := make([]holder, 0, len(s.leases)) // in the order of the cells below
	for i := range s.leases {
		f := &s.leases[i]
		for _, p := range f.parts {
			if f.right == cluster.Guaranteed && key != nil {
				at := s.cells.chains[p.chain].tree.cellOf(int(p.level), int(p.node), p.gpus)
				holders = append(holders, holder{int(p.chain), int(p.level), at, key(f.job)})
			}
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), cmp.Compare(b.level, a.level), cmp.Compare(a.index, b.index), cmp.Compare(a.job, b.job))
	})
	var keys []cluster.JobKey // of the holders
	for i := range holders {
		keys = append(keys, holders[i].job)
	}
	bound, nodes := 0, 0
	for _, c := range s.cells.chains {
		for k := range c.tree.levels {
			_, _, n := c.tree.slots(k, 0)
			for _, owner := range c.tree.levels[k].owner {
				if owner > 0 {
					bound, nodes = bound+1, nodes+n
				}
			}
		}
	}
	out, parts := slices.Grow([]Binding(nil), bound), make([]Part, 0, nodes)
	for ci, c := range s.cells.chains {
		for k := c.tree.top(); k >= 0; k-- {
			for i, owner := range c.tree.levels[k].owner {
				if owner < 1 {
					continue
				}
				h := Binding{VC: s.cells.vcs[owner-1].name, Chain: c.name, Type: c.tree.levels[k].name, Pinned: c.pinned[cell{k, i}]}
				its := 0
				for its < len(holders) && holders[its].chain == ci && holders[its].level == k && holders[its].index == i {
					its++
				}
				if its > 0 {
					h.Holders, keys, holders = slices.Compact(keys[:its:its]), keys[its:], holders[its:]
				}
				level, first, n := c.tree.slots(k, i)
				from := len(parts)
				for slot := first; slot < first+n; slot++ {
					at, gpus := c.tree.part(level, slot)
					d := &c.nodes[at]
					parts = append(parts, Part{Node: d.name, GPUs: gpus, Type: c.tree.levels[k].name})
					h.Used += bits.OnesCount64(d.used & gpus)
					h.Bad += bits.OnesCount64(d.bad & gpus)
					for _, g := range s.guests[ci][at] {
						if g.gpus&gpus != 0 && key != nil {
							h.Guests = append(h.Guests, key(s.leases[g.lease].job))
						}
					}
				}
				h.Parts, h.Guests = parts[from:len(parts):len(parts)], sorted(h.Guests)
				out = append(out, h)
			}
		}
	}
	return out
}

func sorted[K cmp.Ordered](keys []K) []K {
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Fragmentation gives it for each level.
func (s *Layout) Fragmentation() []Fragmentation {
	var out []Fragmentation
	for _, c := range s.chains {
		for k := range c.tree.levels {
			l := &c.tree.levels[k]
			f := Fragmentation{Chain: c.name, Type: l.name}
			for i := range l.n {
				level, first, n := c.tree.slots(k, i)
				there, broken := true, false
				for slot := first; slot < first+n; slot++ {
					at, gpus := c.tree.part(level, slot)
					d := &c.nodes[at]
					there = there && d.name != ""
					broken = broken || (d.used|d.bad)&gpus != 0
				}
				if there {
					f.Cells++
					f.Broken += btoi(broken)
				}
			}
			out = append(out, f)
		}
	}
	return out
}
