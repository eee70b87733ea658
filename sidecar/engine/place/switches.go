package place

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// switches are the nodes of a pool under each switch, or in each block: Slurm's lowest level of a topology.
type switches struct {
	of      []int          // the switch of each slot, by its place in the pool; -1 = none is known
	has     []bitset       // the slots of each
	unknown bool           // that of some nodes
	few     map[[2]int]int // cache: see fewSwitches
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
				k, pool.switches.unknown = -1, true
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

// Switched reports whether the nodes of a pool are under several switches, each under one that is known.
func (t *Site) Switched(pool int) bool {
	sw := &t.byPool[pool].switches
	return len(sw.has) > 1 && !sw.unknown
}

// Across reports whether holdings of a pool on its nodes are under more switches than as many nodes with as many GPUs need.
func (t *Site) Across(pool int, holds []cluster.Holding) bool {
	if len(holds) < 2 || !t.Switched(pool) {
		return false
	}
	sw, gpus := &t.byPool[pool].switches, 0
	var memory [8]int
	under := memory[:0]
	for i := range holds {
		gpus = max(gpus, holds[i].Size.Devices)
		n := t.nodeAt(holds[i].Node)
		if n < 0 {
			return false
		}
		if s := t.slotOf(n, t.pools[pool]); s < 0 {
			return false
		} else if k := sw.of[t.slots[s].at]; !slices.Contains(under, k) {
			under = append(under, k)
		}
	}
	return len(under) > 1 && len(under) > t.fewSwitches(pool, len(holds), gpus)
}

// fewSwitches returns under how few switches so many nodes of a pool with so many GPUs could be.
func (t *Site) fewSwitches(pool, nodes, gpus int) (few int) {
	sw, of := &t.byPool[pool].switches, [2]int{nodes, gpus}
	if few = sw.few[of]; few > 0 {
		return few
	}
	counts := make([]int, len(sw.has))
	for at, k := range sw.of {
		if t.slots[t.byPool[pool].slots[at]].total >= gpus {
			counts[k]++
		}
	}
	slices.SortFunc(counts, func(a, b int) int { return cmp.Compare(b, a) })
	for ; few < len(counts) && nodes > 0; few++ {
		nodes -= counts[few]
	}
	if sw.few == nil {
		sw.few = map[[2]int]int{}
	}
	sw.few[of] = few
	return few
}

// onNear is onIdle for a gang on several nodes, which should be under one switch: first under that with the fewest idle nodes that are
// enough, so that larger gangs find the others; if there is none, under few switches, those with the most.
func onNear(x *search, sl split, now bool) []choice {
	if sw := &x.board.site.byPool[x.ask.Pool].switches; sl.nodes > 1 && len(sw.has) > 0 && x.must == nil {
		all := x.rest
		found := onFew(x, sw, sl, now)
		if x.rest = all; found != nil {
			return near(x, found)
		}
	}
	return near(x, x.onIdle(sl, now))
}

// near gives what was found, but for an ask for few switches only if it is under as few as it can be.
func near(x *search, found []choice) []choice {
	if !x.ask.Near || found == nil {
		return found
	}
	holds := make([]cluster.Holding, 0, len(found))
	for _, c := range found {
		holds = append(holds, cluster.Holding{Node: x.board.site.machines[x.board.slots[c.slot].node].name, Size: cluster.Whole(c.gpus)})
	}
	if x.board.site.Across(x.ask.Pool, holds) {
		return nil
	}
	return found
}

// onSoftNear is onSoft, for an ask for few switches under each of them in turn, if one is enough.
func onSoftNear(x *search, sl split) []choice {
	sw := &x.board.site.byPool[x.ask.Pool].switches
	if !x.ask.Near || sl.nodes < 2 || x.must != nil || !x.board.site.Switched(x.ask.Pool) || x.board.site.fewSwitches(x.ask.Pool, sl.nodes, max(sl.per, 1)) != 1 {
		return near(x, x.onSoft(sl))
	}
	all := x.rest
	defer func() { x.rest = all }()
	for _, has := range sw.has {
		x.rest = newBitsets(1, len(sw.of))[0]
		if x.rest.add(has, all); x.rest.count() < sl.nodes {
			continue
		}
		if found := x.onSoft(sl); found != nil {
			return found
		}
	}
	return nil
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
