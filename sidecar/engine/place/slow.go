package place

import "github.com/fairlease/fairlease/sidecar/cluster"

// slowness says which slots of a pool are on slow nodes; index into byPool. The sets are nil where no node is slow.
type slowness struct {
	slow, sound bitset
	gangs       bool // a job waits that needs several nodes
}

// Slow sets the slow nodes of a round. gangs tells, by pool, whether a job waits there that needs several nodes.
//
// A job of several nodes is as fast as its slowest node: it gets others, if as many of them serve it without a wait. Jobs of one node get the
// slow ones of nodes that serve them as well while such a job waits, and the others else.
func Slow(t *Site, nodes []cluster.SlowNode, gangs []bool) {
	for p := range t.byPool {
		t.byPool[p].slow = slowness{}
	}
	for k := range nodes {
		i := t.nodeAt(nodes[k].Node)
		if i < 0 {
			continue
		}
		s := t.slotOf(i, nodes[k].Model)
		if s < 0 {
			continue
		}
		l := &t.slots[s]
		x := &t.byPool[l.pool].slow
		if x.slow == nil {
			n := len(t.byPool[l.pool].slots)
			sets := newBitsets(2, n)
			x.slow, x.sound, x.gangs = sets[0], sets[1], gangs[l.pool]
			for at := range n {
				x.sound.set(at)
			}
		}
		x.slow.set(l.at)
		x.sound.clear(l.at)
	}
}

// AnySlow reports whether a pool has slow nodes.
func AnySlow(t *Site, pool int) bool { return pool >= 0 && t.byPool[pool].slow.slow != nil }

// IsSlow reports whether a node is a slow one of a pool.
func IsSlow(t *Site, pool int, node string) bool {
	i := t.nodeAt(node)
	if i < 0 {
		return false
	}
	s := t.slotOf(i, t.pools[pool])
	return s >= 0 && AnySlow(t, pool) && t.byPool[pool].slow.slow.has(t.slots[s].at)
}

// prefers gives the slots of the pool that part of a job on so many nodes should rather be on; nil = it makes no difference.
func prefers(x *search, nodes int) bitset {
	s := &x.board.site.byPool[x.ask.Pool].slow
	if nodes > 1 || !s.gangs {
		return s.sound
	}
	return s.slow
}

// first gives those of them that the job may choose; nil = it makes no difference.
func first(x *search, nodes int) bitset { return among(prefers(x, nodes), x.rest) }

// among gives the members of some that are in only, where that is a choice; nil = there are none to prefer.
func among(some, only bitset) bitset {
	if some == nil || len(only) == 0 {
		return some
	}
	both := newBitsets(1, 64*len(some))[0]
	for w := range both {
		both[w] = some[w] & only[w]
	}
	return both
}

// inTurn gives the sets in which slots are looked for, from the one at from on: those to prefer, nil = none, then all.
func inTurn(some, all bitset) (sets [2]bitset, from int) {
	if some == nil {
		from = 1
	}
	return [2]bitset{some, all}, from
}

// onSound is onNear, for a job of several nodes first without the slow ones.
func onSound(x *search, sl split, now bool) []choice {
	if some := first(x, sl.nodes); sl.nodes > 1 && some != nil {
		rest := x.rest
		x.rest = some
		found := onNear(x, sl, now)
		if x.rest = rest; found != nil {
			return found
		}
	}
	return onNear(x, sl, now)
}

// dislikes gives 1 for a slot that part of a job on so many nodes should rather not be on, else 0.
func dislikes(x *search, nodes, slot int) int {
	if likes := prefers(x, nodes); likes == nil || likes.has(x.board.slots[slot].at) {
		return 0
	}
	return 1
}
