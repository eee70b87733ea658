package cells

import "github.com/fairlease/fairlease/sidecar/cluster"

// State is the cells of a cluster with their owners and leases. It meets requests: it finds cells and GPUs for gangs,
// makes way, adopts what runs. Each of its parts is written by its own methods only:
//
//	Cells   the cells that there are, and the VCs with what they have of them
//	allot   binds cells to VCs, and decides what VCs lose to bad hardware: it writes Cells
//	Leases  the leases, and the GPUs on which each stands
type State struct {
	Cells  *Layout
	Leases *roster
	allot  *allotment
	gang   uint32  // counts gangs: to tell whose mark a node bears
	rooms  []room  // of useful, by node: all zero between its calls
	seen   []int32 // of useful: nodes, whose memory is reused
	work   int     // remaining comparisons of searches for cells
	aside  int     // the same for searches without slow nodes
	looks  looks   // of the last search, whose memory is reused
}

// New makes the cells of a description, all of them free. An error is Faults, as complete as
// possible. They include an infeasible assignment, with the level and the numbers.
func New(d Description) (*State, error) {
	cells := &Layout{byName: map[string]int32{}, places: map[string]place{}}
	allot := &allotment{cells: cells}
	faults := append(cells.types(d.Types), cells.tops(d.Tops)...)
	built := faults == nil
	faults = append(faults, allot.assign(d.VCs, built)...)
	if built {
		faults = append(faults, cells.Short()...)
	}
	if faults != nil {
		return nil, faults
	}
	for _, c := range cells.chains {
		c.lendings()
	}
	return &State{Cells: cells, Leases: newRoster(cells, allot), allot: allot, work: perState, aside: perState}, nil
}

// Release ends a lease, and tells whether there was one.
func (s *State) Release(job int) bool {
	l, ok := s.Leases.find(job)
	if !ok {
		return false
	}
	if s.Leases.leases[l].right == cluster.Guaranteed {
		s.Leases.quit(l)
	} else {
		s.Leases.depart(l)
	}
	s.Leases.close(l)
	return true
}

// Cell is a physical cell.
type Cell struct{ Chain, Level, Index int }

// Allocate binds a cell of a type to a VC: AllocateCell of Algorithm 1, after the check that it
// is legal. An error is a Refusal. The cell stays bound until Free.
func (s *State) Allocate(name, chain, typ string) (Cell, error) {
	v := s.Cells.vcAt(name)
	if v < 0 {
		return Cell{}, Refusal{Code: UnknownVC, VC: name}
	}
	ci, k, wrong := s.Cells.levelOf(chain, typ)
	if wrong != "" {
		return Cell{}, Refusal{Code: UnknownLevel, VC: name, Chain: chain, Level: typ}
	}
	if s.Cells.vcs[v].accounts[ci][k].unbound() < 1 {
		return Cell{}, Refusal{Code: Lacking, VC: name, Chain: s.Cells.chains[ci].name, Level: typ, Needed: 1}
	}
	i, ok := s.Cells.chains[ci].tree.find(k)
	if !ok {
		return Cell{}, Refusal{Code: Unsafe, VC: name, Chain: s.Cells.chains[ci].name, Level: typ, Needed: 1}
	}
	s.allot.bind(v, ci, k, i)
	return Cell{ci, k, i}, nil
}

// Free returns an allocated cell without leases: ReleaseCell of Algorithm 1. It tells whether it
// did.
func (s *State) Free(at Cell) bool {
	if at.Chain < 0 || at.Chain >= len(s.Cells.chains) || at.Level < 0 || at.Level > s.Cells.chains[at.Chain].tree.top() {
		return false
	}
	c := s.Cells.chains[at.Chain]
	l := &c.tree.levels[at.Level]
	if at.Index < 0 || at.Index >= l.n || l.owner[at.Index] < 1 || l.used[at.Index] > 0 || c.pinned[cell{at.Level, at.Index}] {
		return false
	}
	s.allot.unbind(l.owner[at.Index]-1, at.Chain, at.Level, at.Index)
	return true
}
