package cells

import (
	"math/bits"
	"slices"
)

// A gang is as fast as its slowest node. So one that would have a slow node among several is tried again without slow ones. It has what it finds
// there, if that costs no more: it is on as many nodes, no more leases are recalled, no more cells are bound, and no larger cell is split. A gang
// that takes cells from leases of its own VC has what it finds.

// price is what a grant costs, in several ways.
type price []int

// above reports whether a price is higher than another one in any way.
func (p price) above(o price) bool {
	for i := range p {
		if p[i] > o[i] {
			return true
		}
	}
	return false
}

// priceOf gives the price of a grant that has been carried out. GPUs in bound cells cost something, since a lease that borrows them goes first.
func priceOf(s *State, l int32, g *Grant) price {
	var nodes []int32
	parts, borrowed := s.Leases.leases[l].parts, 0
	c := s.Cells.chains[parts[0].chain]
	for _, p := range parts {
		nodes = append(nodes, p.node)
		borrowed += bits.OnesCount64(c.nodes[p.node].fenced & p.gpus)
	}
	out := price{len(sorted(nodes)), btoi(g.Relaxed), len(g.Recall)}
	if s.Leases.leases[l].vc < 0 {
		out = append(out, borrowed)
	}
	for k, row := range c.tree.gaps(nil) {
		out = append(out, c.tree.levels[k].bound, row.needed-row.there)
	}
	return out
}

// onSlow reports whether a lease has a slow node among several.
func onSlow(s *State, l int32, slow func(string) bool) bool {
	parts := s.Leases.leases[l].parts
	name := func(p part) string { return s.Cells.chains[p.chain].nodes[p.node].name }
	return slow != nil && slices.ContainsFunc(parts, func(p part) bool { return p.node != parts[0].node }) &&
		slices.ContainsFunc(parts, func(p part) bool { return slow(name(p)) })
}

// avoid exchanges a grant for one without slow nodes, if that costs no more. try carries out a request, and undo a grant in reverse. It reports
// whether there still is a grant.
func avoid(s *State, q Request, l int32, was Grant, try func(*Request) (Grant, bool), undo func(Grant)) (Grant, bool) {
	if !onSlow(s, l, q.Slow) {
		return was, true
	}
	first, other, admits := priceOf(s, l, &was), q, q.Admits
	if len(was.Recall) == 0 && q.Idle != nil {
		admits = q.Idle
	}
	other.Chain = s.Cells.chains[s.Leases.leases[l].parts[0].chain].name
	other.Admits = func(node string, gpus int) bool {
		return (!q.Slow(node) || slices.Contains(q.Must, node)) && (admits == nil || admits(node, gpus))
	}
	undo(was)
	s.work, s.aside = s.aside, s.work // it takes no search from other gangs
	now, ok := try(&other)
	s.work, s.aside = s.aside, s.work
	if ok && !priceOf(s, l, &now).above(first) {
		return now, true
	}
	if ok {
		undo(now)
	}
	return try(&q)
}
