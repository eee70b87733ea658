package cells

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// private is a VC's cells of one chain as its private cluster: what State is held against. It
// is searched by trying everything.
type private struct {
	c      *chain
	cells  []privateCell
	admits func(node string, gpus int) bool // of a request that is tried
}

// privateCell is the nodes of a cell of a VC, or a smaller cell, which is a node of
// its own then.
type privateCell struct {
	level int
	base  int      // of a smaller one: its first bit
	free  []uint64 // GPUs, by node
	node  int      // the first, or -1: one that is not bound
}

// on gives what a cell's node is counted as, and whether it takes so many GPUs of a gang.
func (p *private) on(i, at, gpus int) (node [2]int, takes bool) {
	if first := p.cells[i].node; first >= 0 {
		return [2]int{-1, first + at}, p.admits == nil || p.admits(p.c.nodes[first+at].name, gpus)
	}
	return [2]int{i, at}, true
}

// lower gives the GPUs of a VC's leases of lower priority, by node.
func (w *world) lower(v int32, ci, priority int) []uint64 {
	low := make([]uint64, len(w.Cells.chains[ci].nodes))
	for _, l := range w.Leases.ofVC[v] {
		if w.Leases.leases[l].priority < int32(priority) {
			for _, part := range w.Leases.leases[l].parts {
				if int(part.chain) == ci {
					low[part.node] |= part.gpus
				}
			}
		}
	}
	return low
}

// bound gives a cell that is bound to a VC.
func (p *private) bound(k, i int, low []uint64) privateCell {
	l, size := &p.c.tree.levels[k], len(p.c.lend)
	cell := privateCell{level: k, base: i * l.size % size, node: i * l.size / size}
	for n := cell.node; n*size < (i+1)*l.size; n++ {
		whole := ones(0, size)
		if l.size < size {
			whole = ones(cell.base, l.size)
		}
		cell.free = append(cell.free, whole&^(p.c.nodes[n].used&^low[n])&^p.c.nodes[n].bad)
	}
	return cell
}

// privately gives the private cluster of a VC; leases of lower priority count as free.
func (w *world) privately(v int32, ci, priority int) *private {
	p := &private{c: w.Cells.chains[ci]}
	size, low := len(p.c.lend), w.lower(v, ci, priority)
	for k := range p.c.tree.levels {
		l := &p.c.tree.levels[k]
		for i, owner := range l.owner {
			if owner == v+1 {
				p.cells = append(p.cells, p.bound(k, i, low))
			}
		}
		for range w.Cells.vcs[v].accounts[ci][k].unbound() {
			cell := privateCell{level: k, node: -1, free: []uint64{ones(0, min(l.size, size))}}
			for len(cell.free)*size < l.size {
				cell.free = append(cell.free, cell.free[0])
			}
			p.cells = append(p.cells, cell)
		}
	}
	return p
}

// physically binds cells of a VC in every way that leaves a place for all that is promised, and
// tells whether one of them is legal. Leases of lower priority go, and give cells back that nobody else uses.
func (w *world) physically(v int32, ci, priority int, back bool, legal func(*private) bool) bool {
	c := w.Cells.chains[ci]
	p := &private{c: c}
	low, size := w.lower(v, ci, priority), len(c.lend)
	taken := make([]bool, c.tree.levels[0].n)
	promised, free := make([]int, len(c.tree.levels)), make([]int, len(c.tree.levels))
	for k := range c.tree.levels {
		l := &c.tree.levels[k]
		promised[k] = l.reserved - l.bound - l.lost
		free[k] = w.Cells.vcs[v].accounts[ci][k].unbound()
		for i, owner := range l.owner {
			if owner < 1 {
				continue
			}
			goes := back && owner == v+1 && !c.pinned[cell{k, i}]
			for g := i * l.size; g < (i+1)*l.size && goes; g++ {
				goes = (c.nodes[g/size].used&^low[g/size])&(1<<(g%size)) == 0
			}
			if goes {
				promised[k]++
				free[k]++
				continue
			}
			for g := i * l.size; g < (i+1)*l.size; g++ {
				taken[g] = true
			}
			if owner == v+1 {
				p.cells = append(p.cells, p.bound(k, i, low))
			}
		}
	}
	for g := range taken {
		d := &c.nodes[g/size]
		taken[g] = taken[g] || d.name == "" || d.bad&(1<<(g%size)) != 0
	}
	var bind func(k, from int) bool
	bind = func(k, from int) bool {
		if packs(c, promised, 0, slices.Clone(taken)) && legal(p) {
			return true
		}
		for ; k < len(c.tree.levels); k, from = k+1, 0 {
			l := &c.tree.levels[k]
			for i := from; i < l.n && free[k] > 0; i++ {
				gpus := taken[i*l.size : (i+1)*l.size]
				if slices.Contains(gpus, true) {
					continue
				}
				for j := range gpus {
					gpus[j] = true
				}
				promised[k]--
				free[k]--
				p.cells = append(p.cells, p.bound(k, i, low))
				ok := bind(k, i+1)
				p.cells = p.cells[:len(p.cells)-1]
				promised[k]++
				free[k]++
				clear(gpus)
				if ok {
					return true
				}
			}
		}
		return false
	}
	return bind(0, 0)
}

// legal tells whether a request has room, at a level.
func (p *private) legal(q *Request, level int) bool {
	p.admits = q.Admits
	return p.fits(q.Nodes, q.GPUs, level, q.Apart) || q.Soft && p.gpus() >= q.Nodes*q.GPUs
}

// fits tries to place n parts of g GPUs each, every way.
func (p *private) fits(n, g, level int, apart bool) bool {
	within := 0
	part := min(level, p.c.tree.nodeAt)
	if level > p.c.tree.nodeAt {
		within = level
	}
	if within == 0 {
		return p.place(n, g, part, apart, map[[2]int]int{}, func(int, int) bool { return true })
	}
	per := p.c.tree.nodesIn(within)
	for i, cell := range p.cells {
		for first := 0; cell.level >= within && first < len(cell.free); first += per {
			if p.place(n, g, part, apart, map[[2]int]int{}, func(j, at int) bool { return i == j && first <= at && at < first+per }) {
				return true
			}
		}
	}
	return false
}

func (p *private) place(n, g, level int, apart bool, used map[[2]int]int, may func(i, at int) bool) bool {
	if n == 0 {
		return true
	}
	for i := range p.cells {
		cell := &p.cells[i]
		for at := range cell.free {
			node, _ := p.on(i, at, 0)
			if _, takes := p.on(i, at, used[node]+g); !takes || !may(i, at) || apart && used[node] > 0 {
				continue
			}
			free := cell.free[at]
			size := p.c.tree.levels[min(level, cell.level)].size
			for from := cell.base; from < cell.base+min(p.c.tree.levels[cell.level].size, len(p.c.lend)); from += size {
				for set := free & ones(from, size); set != 0; set = (set - 1) & free & ones(from, size) {
					if bits.OnesCount64(set) != g {
						continue
					}
					cell.free[at] = free &^ set
					used[node] += g
					ok := p.place(n-1, g, level, apart, used, may)
					cell.free[at] = free
					used[node] -= g
					if ok {
						return true
					}
				}
			}
		}
	}
	return false
}

// gpus gives how many GPUs are free, and taken by their nodes.
func (p *private) gpus() int {
	free := map[[2]int]int{}
	n := 0
	for i, cell := range p.cells {
		for at := range cell.free {
			node, _ := p.on(i, at, 0)
			for range bits.OnesCount64(cell.free[at]) {
				if _, takes := p.on(i, at, free[node]+1); takes {
					free[node]++
					n++
				}
			}
		}
	}
	return n
}

// admits draws how many GPUs of a gang each node takes; nil = as many as it has.
func (w *world) admits(rng *rand.Rand, c *chain) func(string, int) bool {
	if rng.IntN(2) == 0 {
		return nil
	}
	most := map[string]int{}
	for i := range c.nodes {
		if most[c.nodes[i].name] = len(c.lend); rng.IntN(2) == 0 {
			most[c.nodes[i].name] = rng.IntN(len(c.lend)/(1+rng.IntN(2)) + 1)
		}
	}
	return func(node string, gpus int) bool { return gpus <= most[node] }
}

// Requests that a search of a VC's private cluster finds legal are granted at once, others are
// not; no VC loses a cell for a request that fits without.
func TestWhatASearchFindsIsGranted(t *testing.T) {
	granted, refused, preempted := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := describe(t, 8)
		if len(d.VCs) == 0 {
			t.Skip("no VC") // rapid draws another cluster: this one is too small to promise anything
		}
		w, err := newWorld(d)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		names := w.allNodes()
		for range 25 {
			ci := rng.IntN(len(w.Cells.chains))
			c := w.Cells.chains[ci]
			switch rng.IntN(6) {
			case 0:
				w.SetBad(names[rng.IntN(len(names))], rng.Uint64()&rng.Uint64())
				continue
			case 1:
				key := w.key()
				if _, err := w.Lend(Request{Job: key, VC: "guest", Chain: c.name, Nodes: 1, GPUs: 1 + rng.IntN(len(c.lend))}); err == nil {
					w.keys = append(w.keys, key)
				}
				continue
			case 2:
				if len(w.keys) > 0 {
					i := rng.IntN(len(w.keys))
					w.Release(w.keys[i])
					w.keys = slices.Delete(w.keys, i, i+1)
				}
				continue
			}
			k := rng.IntN(len(c.tree.levels))
			v := rng.IntN(len(w.Cells.vcs))
			q := Request{Job: w.key(), VC: w.Cells.vcs[v].name, Chain: c.name, Level: c.tree.levels[k].name, Nodes: 1 + rng.IntN(3),
				GPUs: 1 + rng.IntN(c.tree.levels[min(k, c.tree.nodeAt)].size), Apart: rng.IntN(4) == 0, Soft: rng.IntN(4) == 0, Priority: rng.IntN(2)}
			if k > c.tree.nodeAt && q.Nodes*q.GPUs > c.tree.levels[k].size {
				continue
			}
			q.Admits = w.admits(rng, c)
			legal := func(priority int, back bool) bool {
				return w.physically(int32(v), ci, priority, back, func(p *private) bool { return p.legal(&q, k) })
			}
			free, held, lower := legal(0, false), legal(q.Priority, false), legal(q.Priority, true)
			// Two cells smaller than a node may be in one node: only cells are promised.
			small := q.Apart && slices.ContainsFunc(w.Cells.vcs[v].accounts[ci][:c.tree.nodeAt], func(a account) bool { return a.reserved+a.pinned > 0 })
			broken := w.Leases.Export().Bad != nil
			if q.Admits == nil && !small && free != w.privately(int32(v), ci, 0).legal(&q, k) {
				t.Fatalf("%v: on the VC's own nodes and on any legal is not the same", q)
			}
			g, err := w.request(t, q)
			// The rest of a broken cell is better than none, but a VC that returns it may get a
			// whole one.
			switch {
			case err == nil && !lower && !broken, err != nil && (held || lower && !broken) && !small:
				t.Fatalf("%v: legal is %v, with cells kept %v, with cells given back %v; the answer %v, %v", q, free, held, lower, g, err)
			case err == nil && free && g.Demoted != nil && !small:
				t.Fatalf("%v fits, and takes cells from %v", q, g.Demoted)
			case err == nil && !free:
				preempted++
			case err == nil:
				granted++
			default:
				refused++
			}
			w.sound(t)
		}
	})
	if granted < 300 || refused < 100 || preempted < 10 {
		t.Fatalf("%d granted, %d refused, %d preempted: too few to show anything", granted, refused, preempted)
	}
}

// packs tries to put cells of these levels (how many, by level) on what is healthy;
// those of the highest level from index from on.
func packs(c *chain, cells []int, from int, taken []bool) bool {
	k := len(cells) - 1
	for k >= 0 && cells[k] == 0 {
		k, from = k-1, 0
	}
	if k < 0 {
		return true
	}
	size := c.tree.levels[k].size
	for i := from; i < c.tree.levels[k].n; i++ {
		gpus := taken[i*size : (i+1)*size]
		if slices.Contains(gpus, true) {
			continue
		}
		for j := range gpus {
			gpus[j] = true
		}
		left := slices.Clone(cells[:k+1])
		left[k]--
		ok := packs(c, left, i+1, taken)
		clear(gpus)
		if ok {
			return true
		}
	}
	return false
}

// An assignment is called feasible if and only if a search finds a place for every cell,
// on healthy hardware.
func TestFeasibleIsWhatASearchCanPack(t *testing.T) {
	feasible, not := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := describe(t, 8)
		d.VCs = nil
		w, err := newWorld(d)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for _, n := range w.allNodes() {
			w.SetBad(n, rng.Uint64()&rng.Uint64()&rng.Uint64())
		}
		for _, c := range w.Cells.chains {
			if c.tree.levels[0].n > 16 {
				continue
			}
			want := make([]int, len(c.tree.levels))
			left := c.tree.levels[0].n
			for k := len(want) - 1; k >= 0; k-- {
				want[k] = rng.IntN(left/c.tree.levels[k].size + 1)
				left -= want[k] * c.tree.levels[k].size
				c.tree.levels[k].reserved = want[k]
			}
			taken := make([]bool, c.tree.levels[0].n)
			for g := range taken {
				d := &c.nodes[g/len(c.lend)]
				taken[g] = d.name == "" || d.bad&(1<<(g%len(c.lend))) != 0
			}
			_, short := c.tree.short()
			if can := packs(c, want, 0, taken); can != (short == 0) {
				t.Fatalf("chain %s: cells %v: can be packed is %v, short are %d GPUs", c.name, want, can, short)
			} else if can {
				feasible++
			} else {
				not++
			}
		}
	})
	if feasible < 20 || not < 20 {
		t.Fatalf("%d feasible, %d not: too few to show anything", feasible, not)
	}
}

// Max-min by the book: GPU after GPU to whoever has least for its weight.
func TestMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "GPUs")
		demands := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 6).Draw(t, "demands")
		weights := rapid.SliceOfN(rapid.Int64Range(0, 5), len(demands), len(demands)).Draw(t, "weights")
		got := MaxMin(n, demands, weights)
		sum, want := 0, 0
		for i := range got {
			if got[i] < 0 || got[i] > demands[i] {
				t.Fatalf("%v: tenant %d asks for %d", got, i, demands[i])
			}
			sum, want = sum+got[i], want+demands[i]
		}
		if sum != min(n, want) {
			t.Fatalf("%v: %d of %d are given", got, sum, min(n, want))
		}
		for i := range got { // nobody may have a whole GPU more, for its weight, than one who wants more
			for j := range got {
				if got[j] < demands[j] && got[i] > 0 && int64(got[i]-1)*weights[j] > int64(got[j]+1)*weights[i] {
					t.Fatalf("%v of %v by %v: tenant %d has too much beside %d", got, demands, weights, i, j)
				}
			}
		}
	})
	for _, c := range []struct {
		n       int
		demands []int
		weights []int64
		want    []int
	}{
		{10, []int{8, 8}, []int64{1, 1}, []int{5, 5}},
		{10, []int{2, 8, 8}, []int64{1, 1, 1}, []int{2, 4, 4}},
		{12, []int{10, 10}, []int64{2, 1}, []int{8, 4}},
		{7, []int{9, 9, 9}, []int64{1, 1, 1}, []int{3, 2, 2}},
		{7, []int{3, 9}, []int64{1, 0}, []int{3, 4}},
	} {
		if got := MaxMin(c.n, c.demands, c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%d among %v by %v: %v, want %v", c.n, c.demands, c.weights, got, c.want)
		}
	}
}
