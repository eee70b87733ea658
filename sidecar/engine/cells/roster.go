package cells

import "github.com/fairlease/fairlease/sidecar/cluster"

// roster is the leases, and where they stand. Cells are bound for them by the allotment.
type roster struct {
	cells  *Layout
	allot  *allotment
	leases []lease
	spare  []int32     // of leases: not in use
	byJob  []int32     // 1 + the lease of a job; 0 = none
	ofVC   [][]int32   // by VC: its guaranteed leases
	guests [][][]guest // by chain and node: the opportunistic leases there
	hold   bool        // cells are not to be given back now, but are noted
	held   []part      // in such cells
}

// newRoster makes the list of no leases.
func newRoster(cells *Layout, allot *allotment) *roster {
	s := &roster{cells: cells, allot: allot, ofVC: make([][]int32, len(cells.vcs)), guests: make([][][]guest, len(cells.chains))}
	for ci, c := range cells.chains {
		s.guests[ci] = make([][]guest, len(c.nodes))
	}
	return s
}

// guest is an opportunistic lease on a node.
type guest struct {
	lease int32
	gpus  uint64
}

// lease is who holds what.
type lease struct {
	job      int
	tenant   string
	vc       int32 // of a guaranteed one
	at       int32 // its place among those of the VC
	priority int32
	right    cluster.LeaseClass // guaranteed or opportunistic; "" = not in use
	leaving  bool               // recalled
	parts    []part
}

// part is the GPUs of a lease on one node; of a guaranteed one: in one cell.
type part struct {
	chain, level int16
	node         int32
	gpus         uint64
}

// expect makes room for these leases, and for some more.
func (s *roster) expect(leases []Lease) {
	most := -1
	for i := range leases {
		most = max(most, leases[i].Job)
	}
	s.leases, s.byJob = make([]lease, 0, len(leases)+len(leases)/4+16), make([]int32, most+1)
}

// find gives the lease of a job, and whether it has one.
func (s *roster) find(job int) (int32, bool) {
	if job < len(s.byJob) && s.byJob[job] > 0 {
		return s.byJob[job] - 1, true
	}
	return 0, false
}

// open makes a lease.
func (s *roster) open(job int, tenant string, priority int, right cluster.LeaseClass) int32 {
	if len(s.spare) == 0 {
		s.leases = append(s.leases, lease{})
		s.spare = append(s.spare, int32(len(s.leases)-1))
	}
	l := s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	s.leases[l] = lease{job: job, tenant: tenant, priority: int32(priority), right: right, vc: -1, parts: s.leases[l].parts[:0]}
	for job >= len(s.byJob) {
		s.byJob = append(s.byJob, 0)
	}
	s.byJob[job] = l + 1
	return l
}

// close forgets a lease that holds nothing.
func (s *roster) close(l int32) {
	s.byJob[s.leases[l].job] = 0
	s.leases[l].right = ""
	s.spare = append(s.spare, l)
}

// join makes a lease one of its VC's.
func (s *roster) join(l, v int32) {
	f := &s.leases[l]
	f.vc, f.at, f.right, f.leaving = v, int32(len(s.ofVC[v])), cluster.Guaranteed, false
	s.ofVC[v] = append(s.ofVC[v], l)
}

// quit makes a lease none of its VC's any more, which holds nothing then.
func (s *roster) quit(l int32) {
	f := &s.leases[l]
	s.empty(l)
	its := s.ofVC[f.vc]
	last := its[len(its)-1]
	its[f.at] = last
	s.leases[last].at = f.at
	s.ofVC[f.vc] = its[:len(its)-1]
	f.vc = -1
}

// empty takes a lease off all its cells, and unbinds each cell with its last GPU.
func (s *roster) empty(l int32) {
	f := &s.leases[l]
	for _, p := range f.parts {
		i, idle := s.allot.leave(f.vc, p)
		switch {
		case !idle:
		case s.hold:
			s.held = append(s.held, p)
		default:
			s.allot.unbind(f.vc, int(p.chain), int(p.level), i)
		}
	}
	f.parts = f.parts[:0]
}

// use puts a lease on GPUs of a cell that is bound to its VC.
func (s *roster) use(l int32, p part) {
	f := &s.leases[l]
	s.allot.use(f.vc, p)
	f.parts = append(f.parts, p)
}

// keeping does something while cells of a VC stay bound though their last lease leaves, and then returns those that nobody uses.
func (s *roster) keeping(v int32, do func() bool) bool {
	s.hold = true
	done := do()
	for _, p := range s.held {
		c, k := s.cells.chains[p.chain], int(p.level)
		if i := c.tree.cellOf(k, int(p.node), p.gpus); c.tree.levels[k].owner[i] == v+1 && c.tree.levels[k].used[i] == 0 {
			s.allot.unbind(v, int(p.chain), k, i)
		}
	}
	s.hold, s.held = false, s.held[:0]
	return done
}
