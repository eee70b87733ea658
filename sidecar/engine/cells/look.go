package cells

import (
	"math/bits"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Place is where a node is, and what it has.
type Place struct {
	Chain, Model string
	GPUs         int
	In, Node     int // the numbers of its chain, and of the node there; of a chain the number of its nodes
}

// Place gives the place of a node, and whether it is in the description.
func (s *Layout) Place(node string) (Place, bool) {
	at, ok := s.places[node]
	if !ok {
		return Place{}, false
	}
	c := s.chains[at.chain]
	return Place{c.name, c.model, len(c.lend), int(at.chain), int(at.node)}, true
}

// Chains gives the chains, with the GPUs of a node of each.
func (s *Layout) Chains() []Place {
	out := make([]Place, len(s.chains))
	for i, c := range s.chains {
		out[i] = Place{c.name, c.model, len(c.lend), i, len(c.nodes)}
	}
	return out
}

// Has tells whether there is a VC of that name.
func (s *Layout) Has(name string) bool { return s.vcAt(name) >= 0 }

// GPUs gives the GPUs that a VC has reserved, by model, less what it has lost.
func (s *Layout) GPUs(name, model string) int {
	return s.sum(name, model, func(a *account) int { return a.reserved + a.pinned - a.lost })
}

// Chunks gives the GPUs that a VC has, by model, in the pieces in which it can use them: nodes of its cells, or smaller cells.
func (s *Layout) Chunks(name, model string) (out []int) {
	v := s.vcAt(name)
	if v < 0 {
		return nil
	}
	for ci, c := range s.chains {
		if c.model != model {
			continue
		}
		node := c.tree.levels[c.tree.nodeAt].size
		for k := range s.vcs[v].accounts[ci] {
			a, size := &s.vcs[v].accounts[ci][k], c.tree.levels[k].size
			for range a.reserved + a.pinned - a.lost {
				for left := size; left > 0; left -= node {
					out = append(out, min(left, node))
				}
			}
		}
	}
	return out
}

// Promised gives the GPUs that a VC has reserved, by model, with what it has lost.
func (s *Layout) Promised(name, model string) int {
	return s.sum(name, model, func(a *account) int { return a.reserved + a.pinned })
}

// sum gives the GPUs of a model in so many of a VC's cells.
func (s *Layout) sum(name, model string, of func(*account) int) (n int) {
	v := s.vcAt(name)
	if v < 0 {
		return 0
	}
	for ci, c := range s.chains {
		if c.model != model {
			continue
		}
		for k := range s.vcs[v].accounts[ci] {
			n += of(&s.vcs[v].accounts[ci][k]) * c.tree.levels[k].size
		}
	}
	return n
}

// Idle gives how many GPUs of a model nobody uses.
func (s *Layout) Idle(model string) int {
	n := 0
	for _, c := range s.chains {
		for i := range c.nodes {
			if c.model == model {
				n += bits.OnesCount64(c.nodes[i].idle(c))
			}
		}
	}
	return n
}

// Right gives by what right a lease stands; "" = there is none.
func (s *roster) Right(job int) cluster.LeaseClass {
	l, ok := s.find(job)
	if !ok {
		return ""
	}
	return s.leases[l].right
}

// Parts gives the GPUs of a lease.
func (s *roster) Parts(job int) []Part {
	l, ok := s.find(job)
	if !ok {
		return nil
	}
	return s.parts(&s.leases[l])
}

// StaleHolders gives the opportunistic leases on GPUs of guaranteed ones: they have to go.
func (s *roster) StaleHolders() []int {
	var out []int
	for ci, c := range s.cells.chains {
		for i := range c.nodes {
			d := &c.nodes[i]
			if d.used&d.lent == 0 {
				continue
			}
			for _, g := range s.guests[ci][i] {
				if g.gpus&d.used != 0 {
					out = append(out, s.leases[g.lease].job)
				}
			}
		}
	}
	return sorted(out)
}

// Prefer sets the priority of a lease within its VC.
func (s *roster) Prefer(job int, priority int) {
	if l, ok := s.find(job); ok {
		s.leases[l].priority = int32(priority)
	}
}

// Leave says that an opportunistic lease goes: who takes its GPUs disturbs nobody any more.
func (s *roster) Leave(job int) {
	if l, ok := s.find(job); ok && s.leases[l].right == cluster.Opportunistic && !s.leases[l].leaving {
		s.recall(l, true)
	}
}

// Size gives the GPUs of a cell of a type, 0 if it has none of a model.
func (s *Layout) Size(chain, typ, model string) int {
	ci, k, wrong := s.levelOf(chain, typ)
	if wrong != "" || s.chains[ci].model != model {
		return 0
	}
	return s.chains[ci].tree.levels[k].size
}

// Within gives the types of the cells that one of a type has in it, and its own.
func (s *Layout) Within(chain, typ string) []string {
	for _, c := range s.chains {
		if k := c.tree.levelOf(typ); c.name == chain && k >= 0 {
			out := make([]string, k+1)
			for i := range out {
				out[i] = c.tree.levels[i].name
			}
			return out
		}
	}
	return nil
}
