package place

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// switches are the nodes of a pool under each switch, or in each block: Slurm's lowest level of a topology.
type switches struct {
	of  []int    // the switch of each slot, by its place in the pool; -1 = none is known
	has []bitset // the slots of each
}

// wire groups the slots of each pool by the switches of their nodes.
func (t *Site) wire(nodes []cluster.Node) {
	if !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.Switch != "" }) {
		return
	}
	for p := range t.byPool {
		pool, number := &t.byPool[p], map[string]int{}
		pool.switches.of = make([]int, len(pool.slots))
		for at, s := range pool.slots {
			name := nodes[t.slots[s].node].Switch
			k, known := number[name]
			switch {
			case name == "":
				k = -1
			case !known:
				k = len(number)
				number[name] = k
				pool.switches.has = append(pool.switches.has, newBitsets(1, len(pool.slots))[0])
			}
			if pool.switches.of[at] = k; k >= 0 {
				pool.switches.has[k].set(at)
			}
		}
	}
}

// onNear is onIdle for a gang on several nodes, which should be under one switch: first under that with the fewest idle nodes that are
// enough, so that larger gangs find the others; if there is none, under few switches, those with the most.
func onNear(x *search, sl split, now bool) []choice {
	if sw := &x.board.site.byPool[x.ask.Pool].switches; sl.nodes > 1 && len(sw.has) > 0 && x.must == nil {
		all := x.rest
		found := onFew(x, sw, sl, now)
		if x.rest = all; found != nil {
			return found
		}
	}
	return x.onIdle(sl, now)
}

// idleUnder is the number of nodes under a switch that have as many idle GPUs as a part of a gang needs.
type idleUnder struct{ nodes, at int }

// onFew is onIdle under one switch, else under few. It leaves the slots of the last try as those of the search.
func onFew(x *search, sw *switches, sl split, now bool) []choice {
	all, some := x.rest, newBitsets(1, len(sw.of))[0]
	counts := make([]idleUnder, len(sw.has))
	for k := range counts {
		counts[k].at = k
	}
	sets := x.board.idle[x.ask.Pool]
	for _, set := range sets[min(max(sl.per, 1), len(sets)):] {
		for at := set.next(0, all); at >= 0; at = set.next(at+1, all) {
			if k := sw.of[at]; k >= 0 {
				counts[k].nodes++
			}
		}
	}
	slices.SortFunc(counts, func(a, b idleUnder) int { return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.at, b.at)) })
	x.rest = some
	for _, c := range counts {
		if c.nodes < sl.nodes {
			continue
		}
		clear(some)
		some.add(sw.has[c.at], all)
		if found := x.onIdle(sl, now); found != nil {
			return found
		}
	}
	clear(some)
	nodes := 0
	for _, c := range slices.Backward(counts) {
		some.add(sw.has[c.at], all)
		if nodes += c.nodes; nodes < sl.nodes || c.nodes >= sl.nodes {
			continue
		}
		if found := x.onIdle(sl, now); found != nil {
			return found
		}
	}
	return nil
}

// add adds the members of a set that are in only, too. An empty only has all.
func (s bitset) add(set, only bitset) {
	for w, word := range set {
		if len(only) > 0 {
			word &= only[w]
		}
		s[w] |= word
	}
}
