package place

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Mover gives what the job of a soft lease asks for if it moves, and the GPU time that the move costs.
type Mover func(who int) (Ask, cluster.GPUTime)

// Compact places a gang for which idle GPUs suffice, but not on its nodes: the soft leases that are in the way there
// move to idle GPUs of other nodes. It takes the nodes from which moves cost least, and takes all places on the board.
// moves has the new places, in the order of the gang's Displaced. If the moves would cost more than most, or more than
// Ask.Max leases would move, or they do not all fit elsewhere, the board stays as it is. Only leases on one node move.
func Compact(b *Board, a Ask, most cluster.GPUTime, mover Mover) (gang Placement, moves []Placement, ok bool) {
	x := b.search(a)
	for _, sl := range x.splits(nil) {
		if sl.per == 0 {
			continue
		}
		if found, places := x.movable(sl, most, mover); found != nil {
			gang = x.placement(found)
			for _, who := range gang.Displaced {
				moves = append(moves, places[who])
			}
			b.Take(gang)
			return gang, moves, true
		}
	}
	return Placement{}, nil, false
}

// movable chooses nodes for a gang and holds the places of the leases that move from them; nil = there are not enough.
func (x *search) movable(sl split, most cluster.GPUTime, mover Mover) ([]choice, map[int]Placement) {
	var found []choice
	places := map[int]Placement{}
	for _, s := range x.cheapest(sl, mover) {
		c, cost, ok := x.price(s, sl, mover) // anew: leases of other nodes may have moved here
		few := x.ask.Max < 0 || len(places)+len(c.displaced) <= x.ask.Max
		if !ok || cost > most || !few || !x.clear(c, places, mover) {
			continue
		}
		found, most = append(found, c), most-cost
		x.board.nodes[x.board.slots[s].node].shut = true // to the leases of the other nodes
		if len(found) == sl.nodes {
			break
		}
	}
	for i := range found {
		x.board.nodes[x.board.slots[found[i].slot].node].shut = false
	}
	if len(found) == sl.nodes && near(x, found) != nil {
		return found, places
	}
	for i := range found {
		giveBack(x.board, found[i].displaced, places)
	}
	return nil, nil
}

// price gives the leases to move from a slot for a part of the gang, and the cost of their moves.
func (x *search) price(s int, sl split, mover Mover) (c choice, cost cluster.GPUTime, ok bool) {
	c, ok = x.makeRoom(s, x.want(s, sl))
	for _, f := range c.displaced {
		_, one := mover(f.who)
		cost, ok = cost+one, ok && len(f.holds) == 1
	}
	return c, cost, ok
}

// cheapest lists the slots for a part of the gang: cheapest moves first, slow nodes last among these.
func (x *search) cheapest(sl split, mover Mover) []int {
	var seen []priced
	sets, only := x.board.avail[x.ask.Pool], x.sp.onlyIn(x.ask.Pool)
	for k := max(sl.per, 1); k < len(sets); k++ {
		for at := sets[k].next(0, only); at >= 0; at = sets[k].next(at+1, only) {
			s := x.board.site.byPool[x.ask.Pool].slots[at]
			if c, cost, ok := x.price(s, sl, mover); ok {
				seen = append(seen, priced{s, dislikes(x, sl.nodes, s), c.spare, cost})
			}
		}
	}
	slices.SortStableFunc(seen, func(a, b priced) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.slow, b.slow), cmp.Compare(a.spare, b.spare))
	})
	slots := make([]int, 0, scan)
	for i := range seen[:min(len(seen), max(scan, 4*sl.nodes))] {
		slots = append(slots, seen[i].slot)
	}
	return slots
}

// priced is a slot with the GPUs left over there and the cost of the moves from it; slow = 1 on a slow node.
type priced struct {
	slot, slow, spare int
	cost              cluster.GPUTime
}

// clear holds idle GPUs of other nodes for all leases that a choice displaces, or for none of them.
func (x *search) clear(c choice, places map[int]Placement, mover Mover) bool {
	n := &x.board.nodes[x.board.slots[c.slot].node]
	n.shut = true
	defer func() { n.shut = false }()
	for k, f := range c.displaced {
		a, _ := mover(f.who)
		y := x.board.search(a)
		var nodes []choice
		for _, sl := range y.splits(nil) {
			if nodes = onSound(y, sl, true); nodes != nil {
				break
			}
		}
		if nodes == nil {
			giveBack(x.board, c.displaced[:k], places)
			return false
		}
		places[f.who] = y.placement(nodes)
		x.board.Hold(places[f.who].Nodes, a.Sharer)
	}
	return true
}

// giveBack returns the places of leases that do not move after all.
func giveBack(b *Board, leases []*soft, places map[int]Placement) {
	for _, f := range leases {
		Release(b, places[f.who].Nodes, places[f.who].Sharer)
		delete(places, f.who)
	}
}
