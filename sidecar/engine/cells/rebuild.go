package cells

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Record is all that has to be kept of a state besides its description.
type Record struct {
	Leases []Lease
	Bad    []Bad
	Lost   []Loss
}

// Lease is who holds which GPUs by what right.
type Lease struct {
	Key      cluster.JobKey
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

// Loss is the cells that a VC cannot have until hardware is repaired.
type Loss struct {
	VC, Chain, Type string
	Cells           int
}

// Changes is what a rebuild could not keep.
type Changes struct {
	Demoted []cluster.JobKey // leases that no longer fit their VC: opportunistic now
	Outside []cluster.JobKey // leases on nodes that are not in the description: not in the state
}

// Export gives what has to be kept of a state, in an order that depends on nothing else.
func (s *State) Export() Record {
	var r Record
	for i := range s.leases {
		if f := &s.leases[i]; f.right != "" {
			r.Leases = append(r.Leases, Lease{f.key, f.tenant, f.right, int(f.priority), f.leaving, s.parts(f)})
		}
	}
	slices.SortFunc(r.Leases, func(a, b Lease) int { return cmp.Compare(a.Key, b.Key) })
	for _, c := range s.chains {
		for i := range c.nodes {
			if d := &c.nodes[i]; d.bad != 0 {
				r.Bad = append(r.Bad, Bad{d.name, d.bad})
			}
		}
	}
	for _, v := range s.vcs {
		for ci, accounts := range v.accounts {
			for k := range accounts {
				if n := accounts[k].lost; n > 0 {
					r.Lost = append(r.Lost, Loss{v.name, s.chains[ci].name, s.chains[ci].levels[k].name, n})
				}
			}
		}
	}
	return r
}

// parts gives the parts of a lease by name.
func (s *State) parts(f *lease) []Part {
	out := make([]Part, len(f.parts))
	for i, p := range f.parts {
		c := s.chains[p.chain]
		out[i] = Part{Node: c.nodes[p.node].name, GPUs: p.gpus}
		if p.level >= 0 {
			out[i].Type = c.levels[p.level].name
		}
	}
	return out
}

// Rebuild makes the state that a record is of: after a restart, or for another
// description. A guaranteed lease keeps its GPUs and its right if cells of its VC can
// be bound there and nobody else's guarantee suffers; else it becomes opportunistic where
// it is. Leases with higher priority come first, then older ones. An error is Faults: the
// description, whose assignment may not be feasible, is refused.
func Rebuild(d Description, r Record) (*State, Changes, error) {
	s, changes, err := rebuild(d, r, false)
	if err != nil {
		return nil, Changes{}, err
	}
	// What was safe is safe again. Where all bindings together leave more cells short than
	// were lost, each has to show that it does no harm.
	for ci, lost := range s.lostGPUs(r.Lost) {
		if _, gpus := s.chains[ci].short(); gpus > lost {
			return rebuild(d, r, true)
		}
	}
	return s, changes, nil
}

// rebuild makes the state; careful: a lease that leaves more cells short is not bound.
func rebuild(d Description, r Record, careful bool) (*State, Changes, error) {
	s, err := New(d)
	if err != nil {
		return nil, Changes{}, err
	}
	s.trying = true
	for _, b := range r.Bad {
		s.SetBad(b.Node, b.GPUs)
	}
	allow := s.lostGPUs(r.Lost)
	for ci := range allow {
		if !careful {
			allow[ci] = ChainGPUs
		}
	}
	var changes Changes
	for _, f := range s.byRank(r.Leases) {
		parts, ok := s.at(f.Parts)
		if _, twice := s.byKey[f.Key]; !ok || twice {
			changes.Outside = append(changes.Outside, f.Key)
			continue
		}
		l := s.open(f.Key, f.VC, f.Priority, f.Right)
		if f.Right == cluster.Guaranteed {
			if v := s.vcAt(f.VC); v >= 0 && s.adopt(l, v, parts, allow) {
				continue
			}
			changes.Demoted = append(changes.Demoted, f.Key)
		}
		s.lendAt(l, parts, f.Leaving && f.Right != cluster.Guaranteed)
	}
	s.lose(r.Lost)
	s.trying = false
	for ci := range s.chains {
		s.settle(ci)
	}
	slices.Sort(changes.Demoted)
	slices.Sort(changes.Outside)
	return s, changes, nil
}

// byRank gives leases in the order in which they are put back: those on bad GPUs first, since
// nobody else can use these, then by priority.
func (s *State) byRank(leases []Lease) []*Lease {
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
		return cmp.Or(cmp.Compare(b.f.Priority, a.f.Priority), cmp.Compare(a.f.Key, b.f.Key))
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

// at gives parts by number, and whether all nodes are there.
func (s *State) at(parts []Part) ([]part, bool) {
	out := make([]part, len(parts))
	for i, p := range parts {
		at, ok := s.places[p.Node]
		if !ok {
			return nil, false
		}
		c := s.chains[at.chain]
		out[i] = part{at.chain, int16(c.levelOf(p.Type)), at.node, p.GPUs & ones(0, len(c.lend))}
		if out[i].gpus == 0 || out[i].gpus != p.GPUs {
			return nil, false
		}
	}
	return out, true
}

// lostGPUs gives how many GPUs VCs had lost, by chain.
func (s *State) lostGPUs(lost []Loss) []int {
	allow := make([]int, len(s.chains))
	for _, f := range lost {
		if ci, k, wrong := s.levelOf(f.Chain, f.Type); wrong == "" {
			allow[ci] += f.Cells * s.chains[ci].levels[k].size
		}
	}
	return allow
}

// lose lets VCs lose what they had lost, as far as they have it free.
func (s *State) lose(lost []Loss) {
	for _, f := range lost {
		ci, k, wrong := s.levelOf(f.Chain, f.Type)
		v := s.vcAt(f.VC)
		if wrong != "" || v < 0 {
			continue
		}
		a := &s.vcs[v].accounts[ci][k]
		n := min(f.Cells, a.unbound())
		a.lost += n
		s.chains[ci].levels[k].lost += n
	}
}

// adopt makes a lease a guaranteed one of a VC on the very GPUs that it is on, and tells
// whether it could: cells of the VC must be bound there or have to be, without more
// GPUs short than before, or than allow says by chain.
func (s *State) adopt(l, v int32, parts []part, allow []int) bool {
	was := s.trying
	s.trying = true
	s.join(l, v)
	f := &s.leases[l]
	f.parts = f.parts[:0]
	ok := true
	for _, p := range parts {
		if ok = s.adoptPart(l, v, p, allow); !ok {
			break
		}
	}
	if !ok {
		s.quit(l)
		f.parts = f.parts[:0]
	}
	s.trying = was
	return ok
}

// adoptPart puts a lease on GPUs of a node: in the cell of the level that the part names,
// else in the smallest that will do, else half of them in one and half in another.
func (s *State) adoptPart(l, v int32, p part, allow []int) bool {
	c := s.chains[p.chain]
	if c.nodes[p.node].used&p.gpus != 0 {
		return false
	}
	if p.level >= 0 && s.adoptIn(l, v, p, allow) {
		return true
	}
	low := 0
	for first := bits.TrailingZeros64(p.gpus); c.levels[low].size < NodeGPUs && p.gpus&^ones(first/c.levels[low].size*c.levels[low].size, c.levels[low].size) != 0; {
		low++
	}
	for k := low; k <= c.top(); k++ {
		if p.level = int16(k); s.adoptIn(l, v, p, allow) {
			return true
		}
	}
	if low == 0 {
		return false
	}
	size := c.levels[low-1].size
	half := p
	half.level, half.gpus = -1, p.gpus&ones(bits.TrailingZeros64(p.gpus)/size*size, size)
	rest := p
	rest.level, rest.gpus = -1, p.gpus&^half.gpus
	return s.adoptPart(l, v, half, allow) && s.adoptPart(l, v, rest, allow)
}

// adoptIn puts a lease on GPUs of one cell.
func (s *State) adoptIn(l, v int32, p part, allow []int) bool {
	c, k := s.chains[p.chain], int(p.level)
	i := c.cellOf(k, int(p.node), p.gpus)
	if k <= c.nodeAt {
		if _, gpus := c.part(k, i); p.gpus&^gpus != 0 {
			return false
		}
	}
	if owner := c.levels[k].owner[i]; owner != v+1 {
		if s.vcs[v].accounts[p.chain][k].unbound() < 1 || !c.vacant(k, i) {
			return false
		}
		_, before := c.short()
		s.bind(v, int(p.chain), k, i)
		if _, after := c.short(); after > max(before, allow[p.chain]) {
			s.unbind(v, int(p.chain), k, i)
			return false
		}
	}
	s.use(l, p)
	return true
}

// Promote makes an opportunistic lease a guaranteed one of a VC where it is, if the VC's
// free cells can be bound there and nobody's guarantee suffers. It tells whether it did.
func (s *State) Promote(key cluster.JobKey, name string) bool {
	l, ok := s.byKey[key]
	v := s.vcAt(name)
	if !ok || v < 0 || s.leases[l].right != cluster.Opportunistic {
		return false
	}
	parts := slices.Clone(s.leases[l].parts)
	for _, p := range parts {
		for _, g := range s.chains[p.chain].nodes[p.node].guests {
			if g.lease != l && g.gpus&p.gpus != 0 {
				return false
			}
		}
	}
	if !s.restore(l, v, parts, make([]int, len(s.chains))) {
		return false
	}
	s.leases[l].tenant = name
	for ci := range s.chains {
		s.settle(ci) // what it holds of bad hardware, nobody else loses
	}
	return true
}

// restore makes an opportunistic lease guaranteed where it is, or leaves it as it was.
func (s *State) restore(l, v int32, parts []part, allow []int) bool {
	leaving := s.leases[l].leaving
	s.depart(l)
	if s.adopt(l, v, parts, allow) {
		return true
	}
	s.lendAt(l, parts, leaving)
	return false
}

// lendAt makes a lease an opportunistic one on these GPUs.
func (s *State) lendAt(l int32, parts []part, leaving bool) {
	s.leases[l].right, s.leases[l].leaving = cluster.Opportunistic, leaving
	for _, p := range parts {
		p.level = -1
		s.visit(l, p)
	}
}

// Demote makes a guaranteed lease an opportunistic one where it is.
func (s *State) Demote(key cluster.JobKey) bool {
	l, ok := s.byKey[key]
	if !ok || s.leases[l].right != cluster.Guaranteed {
		return false
	}
	s.demote(l)
	return true
}

// demote gives the parts that the lease had in cells.
func (s *State) demote(l int32) []part {
	s.quit(l)
	parts := slices.Clone(s.leases[l].parts)
	s.leases[l].parts = s.leases[l].parts[:0]
	s.lendAt(l, parts, false)
	return parts
}

// preempt makes leases of a VC with lower priority opportunistic until a request can be
// met, lowest priority and youngest first; then those that need not have been are
// guaranteed again. Their cells are given back first, so that idle ones may be bound; if that
// will not do, they are kept, since what is left of a broken one is better than none.
func (s *State) preempt(l int32, asks []ask, grant *Grant, try func() bool) bool {
	f := &s.leases[l]
	v := f.vc
	var below []int32
	for _, g := range s.vcs[v].leases {
		if o := &s.leases[g]; o.priority < f.priority && slices.ContainsFunc(o.parts, func(p part) bool {
			return slices.ContainsFunc(asks, func(a ask) bool { return int(p.chain) == a.ci })
		}) {
			below = append(below, g)
		}
	}
	slices.SortFunc(below, func(a, b int32) int {
		x, y := &s.leases[a], &s.leases[b]
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(y.key, x.key))
	})
	if len(below) == 0 {
		return false
	}
	s.trying = true
	ok := s.preemptOf(below, v, grant, try)
	if !ok {
		s.hold = true
		ok = s.preemptOf(below, v, grant, try)
		s.letGo(v)
	}
	s.trying = false
	for i := range asks {
		s.settle(asks[i].ci)
	}
	return ok
}

// preemptOf is preempt among these leases of VC v.
func (s *State) preemptOf(below []int32, v int32, grant *Grant, try func() bool) bool {
	allow := make([]int, len(s.chains))
	for ci, c := range s.chains {
		_, allow[ci] = c.short()
	}
	had := make([][]part, 0, len(below))
	ok := false
	for i := 0; i < len(below) && !ok; i++ {
		had = append(had, s.demote(below[i]))
		ok = try()
	}
	for ci := range allow {
		if !ok {
			allow[ci] = ChainGPUs // all as it was
		}
	}
	for i := len(had) - 1; i >= 0; i-- {
		g := below[i]
		if s.leases[g].leaving || !s.restore(g, v, had[i], allow) {
			grant.Demoted = append(grant.Demoted, s.leases[g].key)
		}
	}
	return ok
}
