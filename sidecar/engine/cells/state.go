package cells

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// State is the cells of a cluster: whose they are, and which leases stand in them. What it is made of knows nothing of
// what comes before it here:
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
	work  int    // what searches for cells may still compare
}

// roster is the leases, and where they stand.
type roster struct {
	allotment
	leases []lease
	spare  []int32 // of leases: not in use
	byKey  map[cluster.JobKey]int32
	hold   bool   // cells are not to be given back now, but are noted
	held   []part // in such cells
}

// allotment is the cells that are bound to VCs.
type allotment struct {
	layout
	trying bool // losses are not to be settled now
}

// layout is the cells that there are, and the VCs that have some of them.
type layout struct {
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
	leases   []int32     // guaranteed ones
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

// lease is who holds what.
type lease struct {
	key      cluster.JobKey
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

// New makes the cells of a description, all of them free. An error is Faults, all that
// can be told at once; among them is an assignment that is not feasible, with the level
// and the numbers.
func New(d Description) (*State, error) {
	s := &State{work: perState}
	s.byName, s.places, s.byKey = map[string]int32{}, map[string]place{}, map[cluster.JobKey]int32{}
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

// Short gives the levels at which more cells are reserved than can be had of healthy
// hardware, with the numbers: nil on a new cluster, if its assignment is feasible.
func (s *layout) Short() Faults {
	var faults Faults
	for _, c := range s.chains {
		cells, _ := c.short()
		for k := c.top(); k >= 0; k-- {
			if n := c.levels[k].reserved - c.levels[k].bound; cells[k] > 0 {
				faults = append(faults, Fault{Kind: Infeasible, Chain: c.name, Type: c.levels[k].name, Needed: n, There: n - cells[k]})
			}
		}
	}
	return faults
}

// vcAt gives the number of a VC, or -1.
func (s *layout) vcAt(name string) int32 {
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// bind binds a vacant cell to a VC.
func (s *allotment) bind(v int32, ci, k, i int) {
	c := s.chains[ci]
	c.bury(k, i, -1)
	l, a := &c.levels[k], &s.vcs[v].accounts[ci][k]
	l.owner[i] = v + 1
	l.bound++
	a.bound++
	c.take(k, i)
	c.fence(k, i, a)
}

// unbind gives a cell back. Its dead GPUs stay out of the free lists.
func (s *allotment) unbind(v int32, ci, k, i int) {
	c := s.chains[ci]
	l, a := &c.levels[k], &s.vcs[v].accounts[ci][k]
	c.unfence(k, i, a)
	l.owner[i] = 0
	l.bound--
	a.bound--
	c.give(k, i)
	c.bury(k, i, +1)
	if l.dead[i] > 0 || c.lossy() {
		s.settle(ci)
	}
}

// bury takes the dead GPUs of a cell out of the free lists, or puts them back.
func (c *chain) bury(k, i int, sign int) {
	if c.levels[k].dead[i] == 0 {
		return
	}
	size := c.levels[c.nodeAt].size
	_, gpus := c.part(min(k, c.nodeAt), i)
	if k > c.nodeAt {
		gpus = ones(0, size)
	}
	for n, last := c.span(k, i); n < last; n++ {
		for m := c.nodes[n].bad & gpus; m != 0; m &= m - 1 {
			if g := n*size + bits.TrailingZeros64(m); sign > 0 {
				c.take(0, g)
			} else {
				c.give(0, g)
			}
		}
	}
}

// lossy tells whether some VC has lost a cell.
func (c *tree) lossy() bool {
	for k := range c.levels {
		if c.levels[k].lost > 0 {
			return true
		}
	}
	return false
}

// slots gives the nodes of a cell of level k, or the cell itself where it is smaller:
// their level, the first, and how many.
func (c *tree) slots(k, i int) (level, first, n int) {
	if k <= c.nodeAt {
		return k, i, 1
	}
	n = c.nodesIn(k)
	return c.nodeAt, i * n, n
}

// fence opens a cell that was bound to leases of its VC.
func (c *chain) fence(k, i int, a *account) {
	level, first, n := c.slots(k, i)
	for slot := first; slot < first+n; slot++ {
		at, gpus := c.part(level, slot)
		d := &c.nodes[at]
		d.fenced |= gpus
		if key := d.slotKey(gpus, slot); n == 1 {
			a.move(0, key)
		} else if key != 0 {
			a.open = append(a.open, key)
		}
		c.touch(at)
	}
	if n > 1 {
		slices.Sort(a.open)
	}
}

// unfence closes a cell.
func (c *chain) unfence(k, i int, a *account) {
	level, first, n := c.slots(k, i)
	for slot := first; slot < first+n; slot++ {
		at, gpus := c.part(level, slot)
		d := &c.nodes[at]
		d.fenced &^= gpus
		if n == 1 {
			a.move(d.slotKey(gpus, slot), 0)
		}
		c.touch(at)
	}
	if n > 1 {
		a.open = slices.DeleteFunc(a.open, func(key uint64) bool {
			slot := int(uint32(key))
			return first <= slot && slot < first+n
		})
	}
}

// Of a slot's key: bits below its GPUs to use, and below those of them that are lent.
const freeBits, lentBits = 40, 32

// slotKey gives the key of a node, or of some of its GPUs, among those to use; 0 = none.
func (d *node) slotKey(gpus uint64, slot int) uint64 {
	free := gpus &^ (d.used | d.bad)
	if free == 0 {
		return 0
	}
	return uint64(bits.OnesCount64(free))<<freeBits | uint64(bits.OnesCount64(free&d.stays))<<lentBits | uint64(slot)
}

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

// change sets which GPUs of a node are used, bad and lent to leases that stay: some GPUs
// in one bound cell of level k, whose slot it moves.
func (s *allotment) change(v int32, ci, k, at int, gpus, used, bad, stays uint64) {
	c := s.chains[ci]
	d := &c.nodes[at]
	level := min(k, c.nodeAt)
	slot := c.cellOf(level, at, gpus)
	_, whole := c.part(level, slot)
	was := d.slotKey(whole, slot)
	d.used, d.bad, d.stays = used, bad, stays
	s.vcs[v].accounts[ci][k].move(was, d.slotKey(whole, slot))
	c.touch(at)
}

// use puts a lease on GPUs of a cell that is bound to its VC.
func (s *roster) use(l int32, p part) {
	f, c := &s.leases[l], s.chains[p.chain]
	k, d := int(p.level), &c.nodes[p.node]
	s.change(f.vc, int(p.chain), k, int(p.node), p.gpus, d.used|p.gpus, d.bad, d.stays)
	c.levels[k].used[c.cellOf(k, int(p.node), p.gpus)] += int32(bits.OnesCount64(p.gpus))
	f.parts = append(f.parts, p)
}

// leave takes a lease off a cell, and unbinds the cell with its last GPU.
func (s *roster) leave(v int32, p part) {
	c := s.chains[p.chain]
	k, d := int(p.level), &c.nodes[p.node]
	s.change(v, int(p.chain), k, int(p.node), p.gpus, d.used&^p.gpus, d.bad, d.stays)
	i := c.cellOf(k, int(p.node), p.gpus)
	used := &c.levels[k].used[i]
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
		if i := c.cellOf(k, int(p.node), p.gpus); c.levels[k].owner[i] == v+1 && c.levels[k].used[i] == 0 {
			s.unbind(v, int(p.chain), k, i)
		}
	}
	s.hold, s.held = false, s.held[:0]
}

// open makes a lease.
func (s *roster) open(key cluster.JobKey, tenant string, priority int, right cluster.LeaseClass) int32 {
	if len(s.spare) == 0 {
		s.leases = append(s.leases, lease{})
		s.spare = append(s.spare, int32(len(s.leases)-1))
	}
	l := s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	s.leases[l] = lease{key: key, tenant: tenant, priority: int32(priority), right: right, vc: -1, parts: s.leases[l].parts[:0]}
	s.byKey[key] = l
	return l
}

// close forgets a lease that holds nothing.
func (s *roster) close(l int32) {
	delete(s.byKey, s.leases[l].key)
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

// Release ends a lease, and tells whether there was one.
func (s *State) Release(key cluster.JobKey) bool {
	l, ok := s.byKey[key]
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

// Cell is a physical cell.
type Cell struct{ Chain, Level, Index int }

// Allocate binds a cell of a type to a VC: AllocateCell of Algorithm 1, after the check
// that it is legal. An error is a Refusal. What is bound so stays bound until Free.
func (s *allotment) Allocate(name, chain, typ string) (Cell, error) {
	v := s.vcAt(name)
	if v < 0 {
		return Cell{}, Refusal{Code: UnknownVC, VC: name}
	}
	ci, k, wrong := s.levelOf(chain, typ)
	if wrong != "" {
		return Cell{}, Refusal{Code: UnknownLevel, VC: name, Chain: chain, Level: typ}
	}
	if s.vcs[v].accounts[ci][k].unbound() < 1 {
		return Cell{}, Refusal{Code: Lacking, VC: name, Chain: s.chains[ci].name, Level: typ, Needed: 1}
	}
	i, ok := s.chains[ci].find(k)
	if !ok {
		return Cell{}, Refusal{Code: Unsafe, VC: name, Chain: s.chains[ci].name, Level: typ, Needed: 1}
	}
	s.bind(v, ci, k, i)
	return Cell{ci, k, i}, nil
}

// Free gives a cell back that was allocated and that no lease stands in: ReleaseCell of
// Algorithm 1. It tells whether it did.
func (s *allotment) Free(at Cell) bool {
	if at.Chain < 0 || at.Chain >= len(s.chains) || at.Level < 0 || at.Level > s.chains[at.Chain].top() {
		return false
	}
	c := s.chains[at.Chain]
	l := &c.levels[at.Level]
	if at.Index < 0 || at.Index >= l.n || l.owner[at.Index] < 1 || l.used[at.Index] > 0 || c.pinned[cell{at.Level, at.Index}] {
		return false
	}
	s.unbind(l.owner[at.Index]-1, at.Chain, at.Level, at.Index)
	return true
}
