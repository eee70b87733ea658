package cells

import "github.com/fairlease/fairlease/sidecar/cluster"

// State is the cells of a cluster with their owners and leases. Each of its parts below depends
// only on later ones:
//
//	State      meets requests: finds cells and GPUs for gangs, makes way, adopts what runs
//	roster     the leases, and the GPUs on which each stands
//	allotment  the cells that are bound to VCs, and what VCs lose to bad hardware
//	layout     the cells that there are, and the VCs with what they have of them
type State struct {
	roster
	gang  uint32 // counts gangs: to tell whose mark a node bears
	snug  bool   // no cell is bound that is not filled
	rooms []room // of useful, by node: all zero between its calls
	work  int    // remaining comparisons of searches for cells
	looks looks  // of the last search, whose memory is reused
}

// New makes the cells of a description, all of them free. An error is Faults, as complete as
// possible. They include an infeasible assignment, with the level and the numbers.
func New(d Description) (*State, error) {
	s := &State{work: perState}
	s.byName, s.places = map[string]int32{}, map[string]place{}
	faults := append(s.types(d.Types), s.tops(d.Tops)...)
	built := faults == nil
	faults = append(faults, s.assign(d.VCs, built)...)
	if built {
		faults = append(faults, s.Short()...)
	}
	if faults != nil {
		return nil, faults
	}
	for _, c := range s.chains {
		c.lendings()
	}
	return s, nil
}

// Release ends a lease, and tells whether there was one.
func (s *State) Release(job int) bool {
	l, ok := s.find(job)
	if !ok {
		return false
	}
	if s.leases[l].right == cluster.Guaranteed {
		s.quit(l)
	} else {
		s.depart(l)
	}
	s.close(l)
	return true
}
