package cells

import "slices"

// Layout is the cells that there are, and the VCs that have some of them. Others read it; allotment alone changes what
// is in it.
type Layout struct {
	chains []*chain
	vcs    []*vc // by name
	byName map[string]int32
	places map[string]place
	named  map[string]*Type // all types, where they are faulty and make no chains
}

// place is where a node is.
type place struct {
	chain int16
	node  int32
}

// vc is a virtual cluster.
type vc struct {
	name     string
	accounts [][]account // by chain and level
}

// account is a VC's cells of one level.
type account struct {
	reserved int // r_tk, pinned ones not counted
	bound    int // a_tk
	lost     int
	pinned   int
	// Of bound cells, the nodes (or smaller cells) with GPUs to use, as slotKey writes
	// them: fullest first, those with fewest opportunistic leases first among these.
	open []uint64
}

// unbound gives the cells that may be bound: legal is a_tk < r_tk - lost_tk.
func (a *account) unbound() int { return a.reserved - a.bound - a.lost }

// move notes that a slot has another key.
func (a *account) move(was, is uint64) {
	if was == is {
		return
	}
	if was != 0 {
		i, _ := slices.BinarySearch(a.open, was)
		a.open = slices.Delete(a.open, i, i+1)
	}
	if is != 0 {
		i, _ := slices.BinarySearch(a.open, is)
		a.open = slices.Insert(a.open, i, is)
	}
}

// vcAt gives the number of a VC, or -1.
func (s *Layout) vcAt(name string) int32 {
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// Short gives the levels at which more cells are reserved than can be had of healthy
// hardware, with the numbers: nil on a new cluster, if its assignment is feasible.
func (s *Layout) Short() Faults {
	var faults Faults
	for _, c := range s.chains {
		cells, _ := c.tree.short()
		for k := c.tree.top(); k >= 0; k-- {
			if n := c.tree.levels[k].reserved - c.tree.levels[k].bound; cells[k] > 0 {
				faults = append(faults, Fault{Kind: Infeasible, Chain: c.name, Type: c.tree.levels[k].name, Needed: n, There: n - cells[k]})
			}
		}
	}
	return faults
}
