package cells

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Record is the persistent part of a state, without its description.
type Record struct {
	Leases []Lease
	Bad    []Bad
	Lost   []Loss
}

// Lease is a lease with its GPUs and its right.
type Lease struct {
	Job      int
	VC       string // or tenant
	Right    cluster.LeaseClass
	Priority int
	Leaving  bool // recalled
	Parts    []Part
}

// Bad is the bad GPUs of a node.
type Bad struct {
	Node string
	GPUs uint64
}

// Changes lists what a rebuild could not keep.
type Changes struct {
	Demoted []int // leases that no longer fit their VC: opportunistic now
	Outside []int // leases on nodes that are not in the description: not in the state
}

// Export gives the persistent part of a state, in an order that depends on nothing else.
func (s *roster) Export() Record {
	var r Record
	for i := range s.leases {
		if f := &s.leases[i]; f.right != "" {
			r.Leases = append(r.Leases, Lease{f.job, f.tenant, f.right, int(f.priority), f.leaving, s.parts(f)})
		}
	}
	slices.SortFunc(r.Leases, func(a, b Lease) int { return cmp.Compare(a.Job, b.Job) })
	for _, c := range s.cells.chains {
		for i := range c.nodes {
			if d := &c.nodes[i]; d.bad != 0 {
				r.Bad = append(r.Bad, Bad{d.name, d.bad})
			}
		}
	}
	r.Lost = s.cells.Losses()
	return r
}

// Losses gives the VCs' losses by bad hardware.
func (s *Layout) Losses() []Loss {
	var out []Loss
	for _, v := range s.vcs {
		for ci, accounts := range v.accounts {
			for k := range accounts {
				if n := accounts[k].lost; n > 0 {
					out = append(out, Loss{VC: v.name, Chain: s.chains[ci].name, Type: s.chains[ci].tree.levels[k].name, Cells: n})
				}
			}
		}
	}
	return out
}

// parts gives the parts of a lease by name.
func (s *roster) parts(f *lease) []Part {
	out := make([]Part, len(f.parts))
	for i, p := range f.parts {
		c := s.cells.chains[p.chain]
		out[i] = Part{Node: c.nodes[p.node].name, GPUs: p.gpus}
		if p.level >= 0 {
			out[i].Type = c.tree.levels[p.level].name
		}
	}
	return out
}

// Rebuild makes the state of a record, after a restart or for another description. New must have
// made s from that description; s must be unused, and stays unchanged. A guaranteed lease keeps
// its GPUs and its right if cells of its VC can be bound there and no other guarantee suffers;
// otherwise it becomes opportunistic in place. Leases with higher priority come first, then older
// ones.
func (s *State) Rebuild(r Record) (*State, Changes) {
	out, changes := s.rebuild(r, false)
	// A safe state must be safe again. If all bindings together leave more cells missing than
	// were lost, each must be checked separately.
	for ci, lost := range out.Cells.lostGPUs(r.Lost) {
		if _, gpus := out.Cells.chains[ci].tree.short(); gpus > lost {
			return s.rebuild(r, true)
		}
	}
	return out, changes
}

// rebuild makes the state; careful: a lease that leaves more cells short is not bound.
func (s *State) rebuild(r Record, careful bool) (*State, Changes) {
	s = s.clone()
	s.allot.try(true)
	for _, b := range r.Bad {
		s.SetBad(b.Node, b.GPUs)
	}
	in := adoption{leases: s.Leases, allot: s.allot, allow: s.Cells.lostGPUs(r.Lost)}
	for ci := range in.allow {
		if !careful {
			in.allow[ci] = ChainGPUs
		}
	}
	s.Leases.expect(r.Leases)
	var changes Changes
	var at []part
	for _, f := range s.Cells.byRank(r.Leases) {
		parts, ok := s.Cells.at(at[:0], f.Parts)
		at = parts
		if _, twice := s.Leases.find(f.Job); !ok || twice {
			changes.Outside = append(changes.Outside, f.Job)
			continue
		}
		l := s.Leases.open(f.Job, f.VC, f.Priority, f.Right)
		if f.Right == cluster.Guaranteed {
			if v := s.Cells.vcAt(f.VC); v >= 0 && in.adopt(l, v, parts) {
				continue
			}
			changes.Demoted = append(changes.Demoted, f.Job)
		}
		s.Leases.lendAt(l, parts, f.Leaving && f.Right != cluster.Guaranteed)
	}
	s.allot.lose(r.Lost)
	s.allot.try(false)
	for ci := range s.Cells.chains {
		s.allot.settle(ci)
	}
	slices.Sort(changes.Demoted)
	slices.Sort(changes.Outside)
	return s, changes
}

// byRank gives leases in the order of their restoration: those on bad GPUs first, since other
// leases cannot use these, then by priority.
func (s *Layout) byRank(leases []Lease) []*Lease {
	type ranked struct {
		f   *Lease
		bad bool
	}
	all := make([]ranked, len(leases))
	for i := range leases {
		f := &leases[i]
		all[i] = ranked{f, slices.ContainsFunc(f.Parts, func(p Part) bool {
			at, ok := s.places[p.Node]
			return ok && s.chains[at.chain].nodes[at.node].bad != 0
		})}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		if a.bad != b.bad {
			return cmp.Compare(btoi(b.bad), btoi(a.bad))
		}
		return cmp.Or(cmp.Compare(b.f.Priority, a.f.Priority), cmp.Compare(a.f.Job, b.f.Job))
	})
	out := make([]*Lease, len(all))
	for i := range all {
		out[i] = all[i].f
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// at appends parts by number to out, and tells whether all nodes are there.
func (s *Layout) at(out []part, parts []Part) ([]part, bool) {
	for _, p := range parts {
		at, ok := s.places[p.Node]
		if !ok {
			return out, false
		}
		c := s.chains[at.chain]
		if p.GPUs == 0 || p.GPUs&^ones(0, len(c.lend)) != 0 {
			return out, false
		}
		out = append(out, part{at.chain, int16(c.tree.levelOf(p.Type)), at.node, p.GPUs})
	}
	return out, true
}

// lostGPUs gives how many GPUs VCs had lost, by chain.
func (s *Layout) lostGPUs(lost []Loss) []int {
	allow := make([]int, len(s.chains))
	for _, f := range lost {
		if ci, k, wrong := s.levelOf(f.Chain, f.Type); wrong == "" {
			allow[ci] += f.Cells * s.chains[ci].tree.levels[k].size
		}
	}
	return allow
}

// lose applies the VCs' recorded losses to cells that they have free.
func (s *allotment) lose(lost []Loss) {
	for _, f := range lost {
		ci, k, wrong := s.cells.levelOf(f.Chain, f.Type)
		v := s.cells.vcAt(f.VC)
		if wrong != "" || v < 0 {
			continue
		}
		a := &s.cells.vcs[v].accounts[ci][k]
		n := min(f.Cells, a.unbound())
		a.lost += n
		s.cells.chains[ci].tree.levels[k].lost += n
	}
}
