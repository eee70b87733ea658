package place

import (
	"cmp"
	"iter"
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
		defer func() { x.rest = all }()
		for x.rest = range near(x, sw, sl) {
			if found := x.onIdle(sl, now); found != nil {
				return found
			}
		}
		x.rest = all
	}
	return x.onIdle(sl, now)
}

// near gives the sets of slots in which a gang is looked for, in turn, of those of the search.
func near(x *search, sw *switches, sl split) iter.Seq[bitset] {
	type idle struct{ nodes, at int }
	counts, all := make([]idle, len(sw.has)), x.rest
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
	slices.SortFunc(counts, func(a, b idle) int { return cmp.Or(cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.at, b.at)) })
	return func(yield func(bitset) bool) {
		some := newBitsets(1, len(sw.of))[0]
		add := func(k int) {
			for w, word := range sw.has[k] {
				if len(all) > 0 {
					word &= all[w]
				}
				some[w] |= word
			}
		}
		for _, c := range counts {
			if c.nodes < sl.nodes {
				continue
			}
			clear(some)
			if add(c.at); !yield(some) {
				return
			}
		}
		clear(some)
		nodes := 0
		for _, c := range slices.Backward(counts) {
			add(c.at)
			if nodes += c.nodes; nodes >= sl.nodes && c.nodes < sl.nodes && !yield(some) {
				return
			}
		}
	}
}
