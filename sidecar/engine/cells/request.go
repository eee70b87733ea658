package cells

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Request is a gang: Nodes parts of GPUs GPUs each, all of them or none.
type Request struct {
	Job      int    // the caller's number of the job: small, as there is an entry for each below it
	VC       string // or the tenant, of an opportunistic one
	Chain    string // "" = any
	Model    string // "" = any
	Nodes    int
	GPUs     int // at most those of a node
	Level    string
	Apart    bool     // each part on a node of its own, as Slurm's --nodes wants it
	Soft     bool     // any GPUs will do, if the parts cannot be had: the gang has waited for its affinity
	Priority int      // within the VC: higher ones preempt lower ones
	Must     []string // nodes that have a part of it each, fewer than its parts
	// Admits tells whether a node takes so many GPUs of the gang, ignoring cells (features, CPUs,
	// memory); nil = all nodes do. A node that takes some also takes fewer.
	Admits func(node string, gpus int) bool
	// Slow tells whether a node is slow; nil = none is. Idle is Admits where nothing has to leave the node: a gang that recalls no lease avoids slow
	// nodes only if others are idle.
	Slow func(node string) bool
	Idle func(node string, gpus int) bool
}

// Level of a request: a part's GPUs are in one cell of this type if it is a node or
// smaller ("" = node); if it is larger, all parts are in one cell of it.

// Grant is the result of a request.
type Grant struct {
	Parts   []Part
	Relaxed bool  // without the requested affinity
	Recall  []int // opportunistic leases on these GPUs, which must go first
	Demoted []int // leases of lower priority that are opportunistic now

	recalled []int32 // subset of Recall: those newly recalled
}

// RefusalCode is why a request was refused.
type RefusalCode string

// The codes.
const (
	UnknownVC    RefusalCode = "no such VC"
	UnknownLevel RefusalCode = "no such level, chain or model"
	Malformed    RefusalCode = "asks for nothing, or for more than a cell of its level has"
	Held         RefusalCode = "has a lease already"
	Lacking      RefusalCode = "the VC has not enough free cells"
	NoneToLend   RefusalCode = "not enough GPUs are idle"
	Unsafe       RefusalCode = "the VC has the cell free, and the cluster has none: the guarantee is broken"
)

// Refusal says why a request was refused.
type Refusal struct {
	Code             RefusalCode
	VC, Chain, Level string
	Needed, There    int  // parts, or cells
	Cut              bool // not all choices of cells were considered: one may fit
}

func (r Refusal) Error() string {
	text := string(r.Code)
	if r.VC != "" {
		text = r.VC + ": " + text
	}
	if r.Level != "" || r.Chain != "" {
		text += fmt.Sprintf(": %s of chain %s", cmp.Or(r.Level, "cells"), r.Chain)
	}
	if r.Needed > 0 {
		text += fmt.Sprintf(" (needed %d, there %d)", r.Needed, r.There)
	}
	if r.Cut {
		text += "; there were too many ways to choose cells to weigh them all"
	}
	return text
}

// ask is a request while it is tried on a chain.
type ask struct {
	v      int32
	ci     int
	c      *chain
	level  int // of one part, at most that of a node
	gpus   int
	apart  bool
	admits func(node string, gpus int) bool
	must   []string
	within int // if it is larger than a node: the level of the cell that all parts must be in
	inside int // that cell
	gang   uint32
	unsafe bool // a cell was legal and not there
	passed bool // a node was passed over that does not admit the gang: another cell may do
	chosen bool // the cells are bound that the gang is for
	cut    bool // a search for them did not weigh all ways
}

// asks gives a request for each chain that it may go to, of a job that has no lease.
func (s *State) asks(q *Request) ([]ask, Refusal) {
	if _, ok := s.Leases.find(q.Job); ok {
		return nil, Refusal{Code: Held, VC: q.VC}
	}
	return s.asksOf(q)
}

// asksOf gives a request for each chain that it may go to.
func (s *State) asksOf(q *Request) ([]ask, Refusal) {
	refusal := Refusal{Code: UnknownLevel, VC: q.VC, Chain: q.Chain, Level: q.Level}
	var asks []ask
	for ci, c := range s.Cells.chains {
		if q.Chain != "" && q.Chain != c.name || q.Model != "" && q.Model != c.model {
			continue
		}
		k := c.tree.nodeAt
		if q.Level != "" {
			k = c.tree.levelOf(q.Level)
		}
		if k < 0 {
			continue
		}
		if part := c.tree.levels[min(k, c.tree.nodeAt)].size; q.Nodes < 1 || q.GPUs < 1 || q.GPUs > part ||
			q.Nodes > ChainGPUs/q.GPUs || k > c.tree.nodeAt && q.Nodes*q.GPUs > c.tree.levels[k].size {
			refusal.Code = Malformed
			continue
		}
		a := ask{ci: ci, c: c, level: min(k, c.tree.nodeAt), gpus: q.GPUs, apart: q.Apart, admits: q.Admits, must: q.Must, within: -1}
		if k > c.tree.nodeAt {
			a.within = k
		}
		asks = append(asks, a)
	}
	return asks, refusal
}

// Request gives a VC's gang a guaranteed lease. An error is a Refusal, and then nothing has
// changed. It succeeds whenever the VC's own cells, seen as a private cluster, have space for it;
// if needed, leases of the VC with lower priority become opportunistic.
func (s *State) Request(q Request) (Grant, error) {
	v := s.Cells.vcAt(q.VC)
	if v < 0 {
		return Grant{}, Refusal{Code: UnknownVC, VC: q.VC}
	}
	asks, refusal := s.asks(&q)
	if len(asks) == 0 {
		return Grant{}, refusal
	}
	t := trial{state: s, q: &q, l: s.Leases.open(q.Job, q.VC, q.Priority, cluster.Guaranteed), asks: asks}
	s.Leases.join(t.l, v)
	if !t.tryFast() && !t.preempt() {
		s.Leases.quit(t.l)
		s.Leases.close(t.l)
		return Grant{}, t.refusal
	}
	t.grant.Parts = s.Leases.parts(&s.Leases.leases[t.l])
	slices.Sort(t.grant.Recall)
	slices.Sort(t.grant.Demoted)
	return t.grant, nil
}

// trial is a VC's request while it is tried on a state.
type trial struct {
	state   *State
	q       *Request
	asks    []ask
	l       int32   // the lease, with what it has been given so far
	grant   Grant   // so far
	refusal Refusal // why it was not met at first
}

// tryFast is try, without slow nodes where that costs no more.
func (t *trial) tryFast() (ok bool) {
	if !t.try() {
		return false
	}
	anew := func(q *Request) (Grant, bool) {
		asks, _ := t.state.asksOf(q)
		o := trial{state: t.state, q: q, l: t.l, asks: asks}
		ok := o.try()
		return o.grant, ok
	}
	t.grant, ok = avoid(t.state, *t.q, t.l, t.grant, anew, func(g Grant) { (&trial{state: t.state, l: t.l, grant: g}).undone() })
	return ok
}

// try tries a request with the requested affinity, then, if allowed, without.
func (t *trial) try() bool {
	q := t.q
	for i := range t.asks {
		a := &t.asks[i]
		a.v = t.state.Leases.leases[t.l].vc
		placed := t.fill(a, q.Nodes, t.gangOf)
		if placed == q.Nodes {
			return true
		}
		t.grant = t.undone()
		if t.refusal.Code == "" || a.unsafe && !t.state.allot.trying {
			k := max(a.c.tree.fit(q.GPUs), a.within)
			t.refusal = Refusal{Lacking, q.VC, a.c.name, a.c.tree.levels[k].name, q.Nodes, placed, a.cut}
			if a.unsafe && !t.state.allot.trying {
				t.refusal.Code = Unsafe
			}
		}
	}
	if !q.Soft || len(q.Must) > 0 {
		return false
	}
	for i := range t.asks {
		spread := ask{v: t.asks[i].v, ci: t.asks[i].ci, c: t.asks[i].c, level: t.asks[i].c.tree.nodeAt, admits: q.Admits, within: -1}
		if all := q.Nodes * q.GPUs; t.fill(&spread, all, t.spreadOf) == all {
			t.grant.Relaxed = true
			return true
		}
		t.grant = t.undone()
	}
	return false
}

// fill places n parts with place, and gives the number of placed ones: in the first available
// cells or, if nodes were skipped and that does not suffice, in the cells that a search finds.
func (t *trial) fill(a *ask, n int, place func(*ask, int) int) int {
	placed := place(a, n)
	if placed == n || !a.passed || a.within >= 0 {
		return placed
	}
	t.grant = t.undone()
	cells, most := t.state.cells(a, n)
	if most < n {
		return most
	}
	t.inCells(a, cells, func() bool { placed = place(a, n); return placed == n })
	return placed
}

// spreadOf places n GPUs wherever there are some, on few nodes, and gives the number of placed
// ones.
func (t *trial) spreadOf(a *ask, n int) int {
	a.gang = t.state.nextGang()
	left := n
	for g := min(left, a.c.tree.levels[a.level].size); left > 0 && g > 0; g = min(g, left) {
		a.gpus = g
		if t.place(a) {
			left -= g
		} else {
			g--
		}
	}
	a.gpus = 1
	return n - left
}

func (s *State) nextGang() uint32 {
	s.gang++
	return s.gang
}

// gangOf places the parts of a gang, and gives the number of placed ones.
func (t *trial) gangOf(a *ask, n int) int {
	a.gang = t.state.nextGang()
	if a.within >= 0 && !t.state.enclose(a, n) {
		return 0
	}
	for placed := range n {
		if placed < len(a.must) && !t.placeOn(a, a.must[placed]) || placed >= len(a.must) && !t.place(a) {
			return placed
		}
	}
	return n
}

// on gives an ask for a part on one node.
func (a *ask) on(name string) ask {
	one := *a
	one.admits = func(node string, gpus int) bool { return node == name && (a.admits == nil || a.admits(node, gpus)) }
	return one
}

// placeOn places one part on a node: in bound cells, or in one that it binds there.
func (t *trial) placeOn(a *ask, name string) bool {
	one := a.on(name)
	defer func() { a.unsafe, a.passed, a.cut = a.unsafe || one.unsafe, a.passed || one.passed, a.cut || one.cut }()
	if t.place(&one) {
		return true
	}
	cells, most := t.state.cells(&one, 1)
	if most < 1 {
		return false
	}
	return t.inCells(&one, cells, func() bool { return t.place(&one) })
}

// inCells places something in cells that it binds, and leaves those bound that are in use then.
func (t *trial) inCells(a *ask, cells []cell, place func() bool) bool {
	for _, at := range cells {
		t.state.allot.bind(a.v, a.ci, at.level, at.index)
	}
	chosen := a.chosen
	a.chosen = true
	ok := place()
	a.chosen = chosen
	for _, at := range cells {
		if a.c.tree.levels[at.level].used[at.index] == 0 {
			t.state.allot.unbind(a.v, a.ci, at.level, at.index)
		}
	}
	return ok
}

// undone reverts the parts placed in vain and their recalls, and gives the rest of the grant.
func (t *trial) undone() Grant {
	t.state.Leases.empty(t.l)
	for _, g := range t.grant.recalled {
		t.state.Leases.recall(g, false)
	}
	left := t.grant
	left.Recall, left.recalled = nil, nil
	return left
}

// place places one part: in the smallest sufficient cell, first in bound ones.
func (t *trial) place(a *ask) bool {
	low := a.c.tree.fit(a.gpus)
	if a.within >= 0 {
		low = a.within
	}
	for k := low; k <= a.c.tree.top(); k++ {
		if p := t.state.bound(a, k); p.gpus != 0 {
			t.put(a, p)
			return true
		}
		if a.chosen || a.within >= 0 {
			continue // its cell is bound
		}
		if p := t.state.fresh(a, k); p.gpus != 0 {
			t.put(a, p)
			return true
		}
	}
	return false
}

// bound finds GPUs in the VC's bound cells of level k: with the fewest disturbed opportunistic
// leases, in the fullest, by name.
func (s *State) bound(a *ask, k int) part {
	c := a.c
	open := s.Cells.vcs[a.v].accounts[a.ci][k].open
	best, least := part{chain: int16(a.ci), level: int16(k)}, a.gpus+1
	level := min(k, c.tree.nodeAt)
	for free := a.gpus; free <= c.tree.levels[level].size && least > 0; free++ {
		i, _ := slices.BinarySearch(open, uint64(free)<<freeBits)
		for open = open[i:]; len(open) > 0 && int(open[0]>>freeBits) == free; open = open[1:] {
			if lent := int(uint8(open[0] >> lentBits)); a.gpus-(free-lent) >= least {
				break // later ones are no better
			}
			at, whole := c.tree.part(level, int(uint32(open[0])))
			d := &c.nodes[at]
			if !a.takes(d) || a.within >= 0 && at/c.tree.nodesIn(a.within) != a.inside {
				continue
			}
			gpus, cost := c.tree.pick(whole, whole&^(d.used|d.bad), d.stays, a.gpus, min(a.level, level), false)
			if gpus != 0 && cost < least {
				best.node, best.gpus, least = int32(at), gpus, cost
			}
			if least == 0 {
				break
			}
		}
	}
	return best
}

// takes tells whether another part may be on a node at all.
func (a *ask) takes(d *node) bool {
	gpus := a.gpus
	if d.mark == a.gang {
		if a.apart {
			return false
		}
		gpus += d.marked
	}
	if a.admits == nil || a.admits(d.name, gpus) {
		return true
	}
	a.passed = true
	return false
}

// note records a part of the gang on a node.
func (a *ask) note(d *node) {
	if d.mark != a.gang {
		d.mark, d.marked = a.gang, 0
	}
	d.marked += a.gpus
}

// fresh binds another cell of level k to the VC and finds GPUs in it. It temporarily binds cells
// on nodes that the gang may not use, so that others are found.
func (s *State) fresh(a *ask, k int) part {
	var passed []int
	var got part
	for s.Cells.vcs[a.v].accounts[a.ci][k].unbound() > 0 && got.gpus == 0 {
		i, ok := a.c.tree.find(k)
		if !ok {
			a.unsafe = true
			break
		}
		s.allot.bind(a.v, a.ci, k, i)
		if got = s.bound(a, k); got.gpus == 0 {
			passed = append(passed, i)
		}
	}
	for _, i := range passed {
		s.allot.unbind(a.v, a.ci, k, i)
	}
	return got
}

// put places a part, and recalls the opportunistic leases in its way.
func (t *trial) put(a *ask, p part) {
	t.state.Leases.use(t.l, p)
	grant := &t.grant
	d := &a.c.nodes[p.node]
	a.note(d)
	if d.lent&p.gpus == 0 {
		return
	}
	found := len(grant.Recall)
	for _, g := range t.state.Leases.guests[a.ci][p.node] {
		if key := t.state.Leases.leases[g.lease].job; g.gpus&p.gpus != 0 && !slices.Contains(grant.Recall, key) {
			grant.Recall = append(grant.Recall, key)
		}
	}
	for _, key := range grant.Recall[found:] {
		if g, _ := t.state.Leases.find(key); !t.state.Leases.leases[g].leaving {
			t.state.Leases.recall(g, true)
			grant.recalled = append(grant.recalled, g)
		}
	}
}

// enclose chooses the cell larger than a node for all parts: one with bound cells, the fullest
// sufficient one, else one with a cell that it binds.
func (s *State) enclose(a *ask, n int) bool {
	c := a.c
	accounts := s.Cells.vcs[a.v].accounts[a.ci]
	for k := a.within; k <= c.tree.top(); k++ {
		open := accounts[k].open
		room := make([]int, c.tree.levels[a.within].n)
		i, _ := slices.BinarySearch(open, uint64(a.gpus)<<freeBits)
		for _, key := range open[i:] {
			room[int(uint32(key))/c.tree.nodesIn(a.within)] += a.most(&c.nodes[uint32(key)], int(key>>freeBits)/a.gpus)
		}
		if a.inside = fullest(room, n); a.inside >= 0 {
			return true
		}
	}
	for k := a.within; k <= c.tree.top(); k++ {
		if accounts[k].unbound() < 1 {
			continue
		}
		i, ok := c.tree.find(k)
		if !ok {
			a.unsafe = true
			return false
		}
		if a.inside = a.roomIn(k, i, n); a.inside < 0 {
			i = a.roomy(k, n)
		}
		if i >= 0 {
			s.allot.bind(a.v, a.ci, k, i)
			return true
		}
	}
	return false
}

// fullest gives the index of the cell with the least space for n parts, or -1.
func fullest(room []int, n int) int {
	best := -1
	for i, parts := range room {
		if parts >= n && (best < 0 || parts < room[best]) {
			best = i
		}
	}
	return best
}

// roomIn gives the cell in a free one of level k that has room for n parts, or -1.
func (a *ask) roomIn(k, i, n int) int {
	c := a.c
	first := i * c.tree.levels[k].size / c.tree.levels[a.within].size
	room := make([]int, c.tree.levels[k].size/c.tree.levels[a.within].size)
	for x := range room {
		for at, last := c.tree.span(a.within, first+x); at < last; at++ {
			room[x] += a.most(&c.nodes[at], len(c.lend)/a.gpus)
		}
	}
	if x := fullest(room, n); x >= 0 {
		return first + x
	}
	return -1
}

// roomy finds the free cell of level k with room for n parts and fewest GPUs under opportunistic
// leases that may be bound without breaking invariant (2), or -1.
func (a *ask) roomy(k, n int) int {
	c := a.c
	rows, best := c.tree.gaps(nil), -1
	for i, stays := range c.tree.levels[k].stays {
		if best >= 0 && stays >= c.tree.levels[k].stays[best] || !c.isFree(k, i) {
			continue
		}
		may := true
		for l, x := k, i; l < c.tree.top() && may; l++ {
			x /= c.tree.levels[l+1].split
			may = !c.isFree(l+1, x) || rows[l+1].there > rows[l+1].needed
		}
		if may {
			if inside := a.roomIn(k, i, n); inside >= 0 {
				best, a.inside = i, inside
			}
		}
	}
	return best
}

// pick chooses n of the free GPUs of a part of a node, all in one cell of level most or lower:
// with the fewest GPUs of avoid, in the smallest cell, farthest from those, in the fullest, the
// first (or the last). It gives the number of used GPUs of avoid; 0 GPUs = there is no such cell.
func (c *tree) pick(whole, free, avoid uint64, n, most int, last bool) (gpus uint64, cost int) {
	if free == whole && bits.OnesCount64(whole) == n && c.levels[most].size >= n {
		return whole, bits.OnesCount64(whole & avoid)
	}
	begin, end := bits.TrailingZeros64(whole), 64-bits.LeadingZeros64(whole)
	var from uint64
	best := [4]int{n + 1}
	for k := c.fit(n); k <= most && best[0] > 0; k++ {
		size := c.levels[k].size
		up := size
		if k < most {
			up = c.levels[k+1].size
		}
		for i := begin / size; i*size < end; i++ {
			at := i
			if last {
				at = begin/size + end/size - 1 - i
			}
			in := free & ones(at*size, size)
			count := bits.OnesCount64(in)
			if count < n {
				continue
			}
			near := bits.OnesCount64(avoid & ones(at*size/up*up, up))
			if this := [4]int{max(0, n-bits.OnesCount64(in&^avoid)), k, near, count}; slices.Compare(this[:], best[:]) < 0 {
				from, best = in, this
			}
		}
	}
	if from == 0 {
		return 0, 0
	}
	return some(from&^avoid, n-best[0], last) | some(from&avoid, best[0], last), best[0]
}

// some gives the first n members of a set, or the last.
func some(set uint64, n int, last bool) uint64 {
	var out uint64
	for ; n > 0; n-- {
		bit := set & -set
		if last {
			bit = 1 << (63 - bits.LeadingZeros64(set))
		}
		out |= bit
		set &^= bit
	}
	return out
}
