package cells

import (
	"math/bits"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// roster is the leases, and where they stand.
type roster struct {
	allotment
	leases []lease
	spare  []int32 // of leases: not in use
	byJob  []int32 // 1 + the lease of a job; 0 = none
	hold   bool    // cells are not to be given back now, but are noted
	held   []part  // in such cells
}

// lease is who holds what.
type lease struct {
	job      int
	tenant   string
	vc       int32 // of a guaranteed one
	at       int32 // its place in vc.leases
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
	f.vc, f.at, f.right, f.leaving = v, int32(len(s.vcs[v].leases)), cluster.Guaranteed, false
	s.vcs[v].leases = append(s.vcs[v].leases, l)
}

// quit makes a lease none of its VC's any more, which holds nothing then.
func (s *roster) quit(l int32) {
	f := &s.leases[l]
	v := s.vcs[f.vc]
	for _, p := range f.parts {
		s.leave(f.vc, p)
	}
	last := v.leases[len(v.leases)-1]
	v.leases[f.at] = last
	s.leases[last].at = f.at
	v.leases = v.leases[:len(v.leases)-1]
	f.vc = -1
}

// use puts a lease on GPUs of a cell that is bound to its VC.
func (s *roster) use(l int32, p part) {
	f, c := &s.leases[l], s.chains[p.chain]
	k, d := int(p.level), &c.nodes[p.node]
	s.change(f.vc, int(p.chain), k, int(p.node), p.gpus, d.used|p.gpus, d.bad, d.stays)
	c.tree.levels[k].used[c.tree.cellOf(k, int(p.node), p.gpus)] += int32(bits.OnesCount64(p.gpus))
	f.parts = append(f.parts, p)
}

// leave takes a lease off a cell, and unbinds the cell with its last GPU.
func (s *roster) leave(v int32, p part) {
	c := s.chains[p.chain]
	k, d := int(p.level), &c.nodes[p.node]
	s.change(v, int(p.chain), k, int(p.node), p.gpus, d.used&^p.gpus, d.bad, d.stays)
	i := c.tree.cellOf(k, int(p.node), p.gpus)
	used := &c.tree.levels[k].used[i]
	*used -= int32(bits.OnesCount64(p.gpus))
	switch {
	case *used > 0 || c.pinned[cell{k, i}]:
	case s.hold:
		s.held = append(s.held, p)
	default:
		s.unbind(v, int(p.chain), k, i)
	}
}

// letGo gives the cells back that were held and that nobody uses.
func (s *roster) letGo(v int32) {
	for _, p := range s.held {
		c, k := s.chains[p.chain], int(p.level)
		if i := c.tree.cellOf(k, int(p.node), p.gpus); c.tree.levels[k].owner[i] == v+1 && c.tree.levels[k].used[i] == 0 {
			s.unbind(v, int(p.chain), k, i)
		}
	}
	s.hold, s.held = false, s.held[:0]
}
