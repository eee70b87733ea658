package cells

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// restored makes the state of a record from its description, as after a restart.
func restored(d Description, r Record) (*State, Changes, error) {
	plain, err := New(d)
	if err != nil {
		return nil, Changes{}, err
	}
	s, changes := plain.Rebuild(r)
	return s, changes, nil
}

// twoNodes is two nodes: one for a, and 8 GPUs by one for b.
func twoNodes() Description {
	return Description{Types: v100(2), Tops: []Top{{Name: "rack", Type: "rack", Nodes: []string{"n1", "n2"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 1}}}, {Name: "b", Cells: []Quota{{Type: "gpu", Cells: 8}}}}}
}

// Cells that hardware takes away are lost by the VC with most unallocated ones of that
// level, the first by name, and it sees so; they come back with the hardware.
func TestLosses(t *testing.T) {
	nodes := func(lost ...string) []Loss {
		var out []Loss
		for _, vc := range lost {
			out = append(out, Loss{VC: vc, Chain: "rack", Type: "node", Cells: 1})
		}
		return out
	}
	d := Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: []string{"n0", "n1", "n2", "n3"}}, {Name: "spare", Type: "node", Nodes: []string{"x"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 2}}}, {Name: "b", Cells: []Quota{{Type: "node", Cells: 3}}}}}
	d.VCs[1].Cells[0].Cells = 2
	w := start(t, d)
	lost := func(what string, want ...string) {
		t.Helper()
		w.sound(t)
		if got := w.Leases.Export().Lost; !slices.Equal(got, nodes(want...)) {
			t.Errorf("%s: lost are %v, want %v", what, got, want)
		}
	}
	one, g := w.ask(t, "a", 1, 8, nil)
	if g.Parts[0].Node != "x" {
		t.Fatalf("a is on %v: x needs no rack to be split", g.Parts)
	}
	w.SetBad("n3", 1)
	lost("one GPU is dead: three whole nodes are free, and three reserved")
	w.SetBad("x", ^uint64(0))
	lost("a's node is down while its job stands there")
	w.SetBad("n0", ^uint64(0))
	lost("two nodes are free: b has two unallocated, a one", "b")
	w.Release(one)
	lost("the job has left: a has two unallocated now", "a", "b")
	w.SetBad("n2", ^uint64(0))
	if got := w.Cells.Views(); got[0].Free != 0 || got[1].Free != 1 || got[0].Lost != 2 || got[1].Lost != 1 {
		t.Errorf("of four cells one is left, and a is first by name: %+v", got)
	}
	w.SetBad("n0", 0)
	w.SetBad("n2", 0)
	w.SetBad("n3", 0)
	lost("all but the spare is repaired")
}

// A loss stays with who lost, whatever is allocated later, over a restart too.
func TestALossStays(t *testing.T) {
	d := Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 2}}}, {Name: "b", Cells: []Quota{{Type: "node", Cells: 2}}}}}
	w := start(t, d)
	one, _ := w.ask(t, "a", 1, 8, nil)
	w.SetBad("n03", 1)
	w.Release(one)
	want := []Loss{{VC: "b", Chain: "rack", Type: "node", Cells: 1}} // b had more unallocated then; a would be first now
	again, _, err := restored(d, w.Leases.Export())
	if got := w.Leases.Export().Lost; err != nil || !slices.Equal(got, want) || !slices.Equal(again.Leases.Export().Lost, want) {
		t.Errorf("lost are %v, after a restart %v (%v), want %v", got, again.Leases.Export().Lost, err, want)
	}
}

// A VC that holds what is left of a broken node as its cell has lost nothing.
func TestABrokenCellIsHeld(t *testing.T) {
	w := start(t, Description{Types: v100(2), Tops: []Top{{Name: "rack", Type: "rack", Nodes: []string{"n1", "n2"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 2}}}}})
	w.SetBad("n2", 1)
	key := w.key()
	if g, err := w.Lend(Request{Job: key, VC: "a", Nodes: 1, GPUs: 7}); err != nil || g.Parts[0].Node != "n2" {
		t.Fatalf("7 GPUs are lent on %+v, %v", g, err)
	}
	if v := w.Cells.Views()[0]; v.Lost != 1 || v.Free != 1 {
		t.Errorf("one of two nodes is broken: %+v", v)
	}
	if !w.Promote(key, "a", false) {
		t.Error("a has a node cell unallocated, and its lease on n2 is not promoted")
	}
	w.sound(t)
	if v := w.Cells.Views()[0]; v.Lost != 0 || v.Free != 1 || v.Bound != 1 {
		t.Errorf("a holds the broken node: %+v", v)
	}
}

// Which cell (SEMANTICS: fewest opportunistic GPUs, fullest parent, name), where several
// are free at the lowest level.
func TestTheFullestParent(t *testing.T) {
	w := start(t, Description{Types: v100(2), Tops: []Top{{Name: "rack", Type: "rack", Nodes: []string{"n1", "n2"}}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "gpu", Cells: 16}}}}})
	var got []Cell
	for range 16 {
		c, err := w.Allocate("a", "", "gpu")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c)
	}
	for i, c := range got { // left: GPU 0 of n1, GPUs 0 and 1 of n2
		if i != 0 && i != 8 && i != 9 {
			w.Free(c)
		}
	}
	if i, _ := w.Cells.chains[0].tree.find(1); i != 5 {
		t.Errorf("the PCIe switch chosen is %d: 5 is beside a full one", i)
	}
	w.SetBad("n2", 1<<7)
	if i, _ := w.Cells.chains[0].tree.find(1); i != 1 {
		t.Errorf("the PCIe switch chosen is %d: n2 is broken, so 1", i)
	}
	w.SetBad("n2", 0)
	w.Free(got[9])
	if i, _ := w.Cells.chains[0].tree.find(0); i != 1 {
		t.Errorf("the GPU chosen is %d: 1 and 9 are each beside one, 1 is the first", i)
	}
	if w.allot.bind(0, 0, 0, 12); w.Cells.chains[0].tree.levels[0].owner[12] != 1 {
		t.Fatal("GPU 12 is not bound")
	}
	if i, _ := w.Cells.chains[0].tree.find(0); i != 9 {
		t.Errorf("the GPU chosen is %d: 9 is beside one in use, on the fuller node", i)
	}
}

// Within a bound cell a job gets GPUs that are near each other.
func TestGPUsOfOneSwitch(t *testing.T) {
	w := start(t, twoNodes())
	w.ask(t, "a", 1, 1, nil)
	if _, g := w.ask(t, "a", 1, 2, nil); g.Parts[0].GPUs != 0b1100 {
		t.Errorf("2 GPUs beside a job on GPU 0: %b, want one PCIe switch", g.Parts[0].GPUs)
	}
	if _, g := w.ask(t, "a", 1, 1, nil); g.Parts[0].GPUs != 0b10 {
		t.Errorf("1 GPU: %b, want the switch that is in use", g.Parts[0].GPUs)
	}
}

// A dead GPU spoils its node for a node cell; the rest of it is used for smaller ones,
// and only where no whole node has such a cell free.
func TestHealthyCellsFirst(t *testing.T) {
	d := twoNodes()
	d.Tops = append(d.Tops, Top{Name: "x", Type: "node", Nodes: []string{"x"}})
	w := start(t, d)
	w.SetBad("n1", 1)
	if _, g := w.ask(t, "a", 1, 8, nil); g.Parts[0].Node == "n1" {
		t.Error("a's node has a dead GPU")
	}
	seen := map[string]int{}
	for range 8 {
		_, g := w.ask(t, "b", 1, 1, nil)
		seen[g.Parts[0].Node]++
	}
	if seen["n1"] != 7 {
		t.Errorf("b's GPUs are on %v: 7 of the broken node, before a whole one is split", seen)
	}
}

// "We observe up to 75% of the preemption rate (150 out of 200 VMs)" (§4): nodes vanish and
// return, and legal requests in between succeed.
func TestThreeQuartersOfTheNodesVanish(t *testing.T) {
	d := Description{Types: v100(20)}
	for r := range 10 {
		d.Tops = append(d.Tops, Top{Name: nodesNamed("r", 10)[r], Type: "rack", Nodes: nodesNamed(string(rune('a'+r)), 20)})
	}
	for v := range 4 {
		d.VCs = append(d.VCs, VC{Name: string(rune('a' + v)), Cells: []Quota{{Type: "node", Cells: 40}, {Type: "gpu", Cells: 80}}})
	}
	w := start(t, d)
	names := w.allNodes()
	for i, n := range names {
		if i%4 != 0 {
			w.SetBad(n, ^uint64(0))
		}
	}
	w.sound(t)
	var keys []int
	free := 0
	for _, v := range w.Cells.Views() {
		for range v.Free {
			size := map[string]int{"node": 8, "gpu": 1}[v.Type]
			q := Request{Job: w.key(), VC: v.VC, Level: v.Type, Nodes: 1, GPUs: size}
			if _, err := w.request(t, q); err != nil {
				t.Fatalf("%+v is legal: %v", v, err)
			}
			keys, free = append(keys, q.Job), free+size
		}
	}
	w.sound(t)
	if free != 400 {
		t.Errorf("%d GPUs of 50 nodes could be used, of 400", free)
	}
	for _, n := range names {
		w.SetBad(n, 0)
	}
	w.sound(t)
	if lost := w.Leases.Export().Lost; lost != nil {
		t.Errorf("all nodes are back, lost are still %v", lost)
	}
	for _, key := range keys {
		w.Release(key)
	}
	fresh, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "all released and repaired", w.State, fresh)
}

// Reconfiguration ends no lease: what no longer fits its VC becomes opportunistic, and
// keeps its GPUs.
func TestReconfigure(t *testing.T) {
	was := Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 2}}}, {Name: "b", Cells: []Quota{{Type: "node", Cells: 1}, {Type: "gpu", Cells: 4}}}}}
	w := start(t, was)
	high, _ := w.ask(t, "a", 1, 8, func(q *Request) { q.Priority = 1 })
	low, _ := w.ask(t, "a", 1, 8, nil)
	b, _ := w.ask(t, "b", 1, 1, nil)
	guest := w.key()
	if _, err := w.Lend(Request{Job: guest, VC: "g", Nodes: 1, GPUs: 4}); err != nil {
		t.Fatal(err)
	}
	rebuild := func(change func(*Description)) (*world, Changes) {
		t.Helper()
		d := was
		d.Tops, d.VCs = slices.Clone(was.Tops), slices.Clone(was.VCs)
		change(&d)
		s, changes, err := restored(d, w.Leases.Export())
		if err != nil {
			t.Fatal(err)
		}
		out := &world{State: s, d: d, next: w.next}
		out.sound(t)
		for _, key := range []int{high, low, b, guest} {
			if slices.Contains(changes.Outside, key) {
				continue
			}
			for node, gpus := range w.gpus(key) {
				if out.gpus(key)[node] != gpus {
					t.Errorf("lease %d moved from %v to %v", key, w.gpus(key), out.gpus(key))
				}
			}
		}
		return out, changes
	}
	_, changes := rebuild(func(*Description) {})
	if changes.Demoted != nil || changes.Outside != nil {
		t.Errorf("the same description changes %+v", changes)
	}
	_, changes = rebuild(func(d *Description) { d.VCs[0].Cells = []Quota{{Type: "node", Cells: 1}} })
	if !slices.Equal(changes.Demoted, []int{low}) {
		t.Errorf("a has one node left: %+v, want its lease of low priority demoted", changes)
	}
	_, changes = rebuild(func(d *Description) { d.VCs = d.VCs[1:] })
	if !slices.Equal(changes.Demoted, []int{high, low}) {
		t.Errorf("a is deleted: %+v", changes)
	}
	_, changes = rebuild(func(d *Description) { // sockets are done away with
		d.Types = []Type{{Name: "gpu", Model: "v100"}, {Name: "pcie", Child: "gpu", Split: 2}, {Name: "node", Child: "pcie", Split: 4, Node: true}, {Name: "rack", Child: "node", Split: 4}}
	})
	if changes.Demoted != nil {
		t.Errorf("another hierarchy: %+v", changes)
	}
	gone := w.Leases.Parts(high)[0].Node
	out, changes := rebuild(func(d *Description) { // a node is removed, the others are single
		d.Tops, d.VCs[0].Cells = nil, []Quota{{Type: "node", Cells: 1}}
		for _, n := range was.Tops[0].Nodes {
			if n != gone {
				d.Tops = append(d.Tops, Top{Name: n, Type: "node", Nodes: []string{n}})
			}
		}
	})
	if !slices.Equal(changes.Outside, []int{high}) || changes.Demoted != nil {
		t.Errorf("%s is removed: %+v", gone, changes)
	}
	if _, err := out.request(t, Request{Job: out.key(), VC: "b", Nodes: 1, GPUs: 8}); err != nil {
		t.Errorf("b's node in the smaller cluster: %v", err)
	}
	if _, _, err := restored(Description{Types: was.Types, Tops: was.Tops[:0], VCs: was.VCs}, w.Leases.Export()); err == nil {
		t.Error("no node is left, and it is not refused")
	}
}

// A lease that would break another VC's guarantee where it stands is not kept: GPUs of b
// on both nodes leave none for a.
func TestReconfigureKeepsTheGuarantee(t *testing.T) {
	r := Record{Leases: []Lease{
		{Job: 1, VC: "b", Right: cluster.Guaranteed, Parts: []Part{{Node: "n1", GPUs: 1, Type: "gpu"}}},
		{Job: 2, VC: "b", Right: cluster.Guaranteed, Parts: []Part{{Node: "n2", GPUs: 1, Type: "gpu"}}}}}
	s, changes, err := restored(twoNodes(), r)
	if err != nil || !slices.Equal(changes.Demoted, []int{2}) {
		t.Fatalf("%+v, %v: want lease 2 demoted", changes, err)
	}
	w := &world{State: s, next: 2}
	w.sound(t)
	if _, g := w.ask(t, "a", 1, 8, nil); !slices.Equal(g.Recall, []int{2}) {
		t.Errorf("a's node recalls %v, want 2", g.Recall)
	}
	// Nor may it be promoted where it stands.
	if w.Release(3); w.Promote(2, "b", false) {
		t.Error("lease 2 is promoted, and a has no node left")
	}
	w.sound(t)
	// The other one's GPU is beside those of b.
	if _, err := w.Lend(Request{Job: 4, VC: "b", Nodes: 1, GPUs: 1}); err != nil {
		t.Fatal(err)
	}
}

// Jobs of a VC share a bound cell, which is given back with its last GPU.
func TestJobsShareACell(t *testing.T) {
	w := start(t, twoNodes())
	one, _ := w.ask(t, "a", 1, 2, nil)
	two, g := w.ask(t, "a", 1, 4, nil)
	if g.Parts[0].Node != "n1" || w.Cells.Views()[0].Bound != 1 {
		t.Errorf("a's second job is on %v with %d cells bound, want the first's cell", g.Parts, w.Cells.Views()[0].Bound)
	}
	w.Release(one)
	if w.Cells.Views()[0].Bound != 1 {
		t.Error("the cell is given back while a job is in it")
	}
	w.Release(two)
	if w.Cells.Views()[0].Bound != 0 {
		t.Error("the cell is bound with nobody in it")
	}
}

// Higher priority takes cells of the same VC only, and no more than needed.
func TestPriorityWithinAVC(t *testing.T) {
	w := start(t, figure3())
	first, _ := w.ask(t, "C", 1, 8, nil)
	second, _ := w.ask(t, "C", 1, 8, nil)
	small, _ := w.ask(t, "C", 1, 2, at("pcie"))
	if _, err := w.request(t, Request{Job: w.key(), VC: "C", Nodes: 1, GPUs: 8}); err == nil {
		t.Error("a job takes a cell from one of its own priority")
	}
	_, g := w.ask(t, "C", 1, 8, func(q *Request) { q.Priority = 1 })
	if !slices.Equal(g.Demoted, []int{second}) {
		t.Errorf("demoted are %v, want the youngest of a node, %d: neither %d nor %d, which is no help", g.Demoted, second, first, small)
	}
	if len(g.Recall) != 0 {
		t.Errorf("recalled are %v: a node is idle, the demoted job may stay on its own", g.Recall)
	}
}

// A recalled lease is no further disturbance: the gang takes the rest of its GPUs rather than
// those of another.
func TestLeastDisturbance(t *testing.T) {
	w := start(t, Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 4}}}}})
	// n03: 2 GPUs of X; n02: 2 of Y and so on would be the same. X has 8 GPUs of n00 as well.
	x, y, z := int(101), int(102), int(103)
	for _, l := range []struct {
		key   int
		parts []part
	}{
		{x, []part{{0, -1, 0, 0xff}, {0, -1, 3, 1}}},
		{y, []part{{0, -1, 1, 3}}},
		{z, []part{{0, -1, 2, 7}}},
	} {
		w.Leases.lendAt(w.Leases.open(l.key, "g", 0, cluster.Opportunistic), l.parts, false)
	}
	w.sound(t)
	_, g := w.ask(t, "a", 2, 8, func(q *Request) { q.Apart = true })
	if !slices.Equal(g.Recall, []int{x}) {
		t.Errorf("two nodes recall %v: n03 has fewest GPUs lent, and n00's are of the same lease", g.Recall)
	}
}

// A gang in one rack stays in one rack.
func TestWithinARack(t *testing.T) {
	w := start(t, Description{Types: v100(4), Tops: []Top{{Name: "r0", Type: "rack", Nodes: nodesNamed("a", 4)}, {Name: "r1", Type: "rack", Nodes: nodesNamed("b", 4)}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "rack", Cells: 1}, {Type: "node", Cells: 4}}}}})
	w.ask(t, "a", 2, 8, nil)
	_, g := w.ask(t, "a", 3, 8, at("rack"))
	for _, p := range g.Parts {
		if p.Node[0] != g.Parts[0].Node[0] || p.Type != "rack" {
			t.Errorf("parts %v are not in one rack", g.Parts)
		}
	}
	if _, err := w.request(t, Request{Job: w.key(), VC: "a", Nodes: 2, GPUs: 8, Level: "rack"}); err == nil {
		t.Error("one node of the only rack cell is left, and two in one rack are granted")
	}
	lent, err := w.Lend(Request{Job: w.key(), VC: "g", Nodes: 2, GPUs: 4, Level: "rack", Apart: true})
	if err == nil {
		if lent.Parts[0].Node[0] != lent.Parts[1].Node[0] {
			t.Errorf("lent in two racks: %v", lent.Parts)
		}
	} else {
		t.Errorf("two nodes of a rack are idle: %v", err)
	}
	w.sound(t)
}

// Soft affinity: asked for first, relaxed if it cannot be had.
func TestSoftAffinity(t *testing.T) {
	w := start(t, figure3())
	w.ask(t, "A", 1, 1, at("socket"))
	q := Request{Job: w.key(), VC: "A", Nodes: 1, GPUs: 4}
	if _, err := w.request(t, q); err != nil {
		t.Fatalf("A's socket is free, the job is on its GPU: %v", err)
	}
	q = Request{Job: w.key(), VC: "A", Nodes: 1, GPUs: 2, Soft: true}
	if g, err := w.request(t, q); err != nil || g.Relaxed {
		t.Errorf("A's PCIe switch is free: %+v, %v", g, err)
	}
	w.Release(q.Job)
	w.ask(t, "A", 1, 1, nil) // one GPU of the switch
	q = Request{Job: w.key(), VC: "B", Nodes: 1, GPUs: 7}
	if _, err := w.request(t, q); err == nil {
		t.Error("B has no cell of 7 GPUs")
	}
	q.Soft = true
	if g, err := w.request(t, q); err != nil || !g.Relaxed || len(g.Parts) != 3 {
		t.Errorf("B has 4+2+1 GPUs: %+v, %v", g, err)
	}
	w.sound(t)
}

// Bound and Lent say who holds what by what right.
func TestWhoHoldsWhat(t *testing.T) {
	w := start(t, figure3())
	one, _ := w.ask(t, "A", 1, 3, nil)
	two, _ := w.ask(t, "B", 1, 1, nil)
	for range 7 { // two on each idle node, one beside A and B
		if _, err := w.Lend(Request{Job: w.key(), VC: "guest", Nodes: 1, GPUs: 3}); err != nil {
			t.Fatal(err)
		}
	}
	lent := 0
	for _, f := range w.Leases.Export().Leases {
		if f.Right == cluster.Opportunistic && f.VC == "guest" {
			for _, p := range f.Parts {
				lent += bits.OnesCount64(p.GPUs)
			}
		}
	}
	if lent != 21 {
		t.Errorf("%d GPUs are lent", lent)
	}
	held := w.Leases.Bound(func(job int) cluster.JobKey { return cluster.JobKey(job) })
	if len(held) != 2 || held[0].VC != "A" || held[0].Type != "socket" || held[0].Used != 3 || !slices.Equal(held[0].Holders, []cluster.JobKey{cluster.JobKey(one)}) ||
		held[1].VC != "B" || held[1].Type != "gpu" || !slices.Equal(held[1].Holders, []cluster.JobKey{cluster.JobKey(two)}) {
		t.Errorf("bound are %+v", held)
	}
	for _, v := range w.Cells.Views() {
		if v.VC == "C" && v.Type == "node" && (v.Free != 2 || v.Lent != 2) {
			t.Errorf("C's nodes: %+v, want 2 free, both lent", v)
		}
	}
}
