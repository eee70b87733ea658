package cells

import (
	"fmt"
	"slices"
	"testing"
)

// nodesNamed gives n names.
func nodesNamed(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%02d", prefix, i)
	}
	return out
}

// v100 is the hierarchy of Figure 3: 8 GPUs a node, under 4 PCIe switches and 2 sockets.
func v100(perRack int) []Type {
	return []Type{{Name: "gpu", Model: "v100"}, {Name: "pcie", Child: "gpu", Split: 2}, {Name: "socket", Child: "pcie", Split: 2},
		{Name: "node", Child: "socket", Split: 2, Node: true}, {Name: "rack", Child: "node", Split: perRack}}
}

// figure3 is "one rack that consists of four 8-GPU nodes, shared by three tenants": A and B
// with a level-3, a level-2 and a level-1 cell each, C with two level-4 cells and a level-2 cell.
func figure3() Description {
	small := []Quota{{Type: "socket", Cells: 1}, {Type: "pcie", Cells: 1}, {Type: "gpu", Cells: 1}}
	return Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}},
		VCs: []VC{{Name: "A", Cells: small}, {Name: "B", Cells: small}, {Name: "C", Cells: []Quota{{Type: "node", Cells: 2}, {Type: "pcie", Cells: 1}}}}}
}

func start(t *testing.T, d Description) *world {
	t.Helper()
	w, err := newWorld(d)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ask makes a request that must be met; parts of one node are written n00:11110000.
func (w *world) ask(t *testing.T, vc string, nodes, gpus int, change func(*Request)) (int, Grant) {
	t.Helper()
	q := Request{Job: w.key(), VC: vc, Nodes: nodes, GPUs: gpus}
	if change != nil {
		change(&q)
	}
	g, err := w.request(t, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	w.sound(t)
	return q.Job, g
}

func at(name string) func(*Request) { return func(q *Request) { q.Level = name } }

// free gives f_k from the GPU up.
func (w *world) free() []int {
	var out []int
	for k := range w.Cells.chains[0].tree.levels {
		out = append(out, w.Cells.chains[0].tree.levels[k].free)
	}
	return out
}

func (w *world) expectFree(t *testing.T, what string, want ...int) {
	t.Helper()
	if got := w.free(); !slices.Equal(got, want) {
		t.Errorf("%s: free cells from the GPU up are %v, want %v", what, got, want)
	}
}

// Figure 3. "The scheduler can treat tenant C as a private cluster with two 8-GPU nodes and
// one 2-GPU node", and all of it can be used at once: 7 + 7 + 18 of 32 GPUs.
func TestFigure3(t *testing.T) {
	w := start(t, figure3())
	w.expectFree(t, "at the start", 0, 0, 0, 0, 1)
	for _, vc := range []string{"A", "B"} {
		w.ask(t, vc, 1, 4, at("socket"))
		w.ask(t, vc, 1, 2, at("pcie"))
		w.ask(t, vc, 1, 1, at("gpu"))
	}
	// "It can schedule two 2-GPU jobs to a 4-GPU cell": not here, where all are in use.
	if _, err := w.request(t, Request{Job: w.key(), VC: "A", Nodes: 1, GPUs: 1}); err == nil {
		t.Error("A has 7 GPUs and got an eighth")
	}
	w.ask(t, "C", 2, 8, func(q *Request) { q.Apart = true })
	w.ask(t, "C", 1, 2, nil)
	// 4+4 fill a node; 2+1+2+1+2 fill another.
	w.expectFree(t, "all reserved cells bound", 0, 0, 0, 0, 0)
	for _, v := range w.Cells.Views() {
		if v.Free != 0 || v.Bound != v.Reserved {
			t.Errorf("%+v: not all is bound", v)
		}
	}
}

// §2: a tenant "is assigned a quota of 64 GPUs but cannot run a single (and the only) 8x8 job",
// because others' 1-GPU jobs are on all nodes. Its cells are there.
func TestTheSharingAnomaly(t *testing.T) {
	w := start(t, Description{Types: v100(8), Tops: []Top{{Name: "r0", Type: "rack", Nodes: nodesNamed("a", 8)}, {Name: "r1", Type: "rack", Nodes: nodesNamed("b", 8)}},
		VCs: []VC{{Name: "big", Cells: []Quota{{Type: "node", Cells: 8}}}, {Name: "small", Cells: []Quota{{Type: "gpu", Cells: 64}}}}})
	var ones []int
	for range 64 {
		key, _ := w.ask(t, "small", 1, 1, nil)
		ones = append(ones, key)
	}
	for i, key := range ones { // leave one on every node it had
		if i%8 != 0 {
			w.Release(key)
		}
	}
	for _, f := range w.Cells.Fragmentation() {
		if f.Type == "node" && (f.Broken != 8 || f.Cells != 16) {
			t.Errorf("%d of %d nodes cannot give 8 GPUs, want 8 of 16", f.Broken, f.Cells)
		}
	}
	for range 56 { // and what small has free is free for others meanwhile
		if _, err := w.Lend(Request{Job: w.key(), VC: "guest", Nodes: 1, GPUs: 1}); err != nil {
			t.Fatal(err)
		}
	}
	_, g := w.ask(t, "big", 8, 8, func(q *Request) { q.Apart = true })
	if len(g.Parts) != 8 {
		t.Errorf("8x8 on %v", g.Parts)
	}
}

// Figure 4: two racks of V100 nodes and one of P100 nodes; "the only P100 rack and 4 V100
// nodes are assigned to the VC vc1".
func TestFigure4(t *testing.T) {
	types := append(v100(8), Type{Name: "p100", Model: "p100"}, Type{Name: "P100-NODE", Child: "p100", Split: 4, Node: true}, Type{Name: "P100-RACK", Child: "P100-NODE", Split: 8})
	w := start(t, Description{Types: types,
		Tops: []Top{{Name: "1", Type: "rack", Nodes: nodesNamed("10.0.1.", 8)}, {Name: "2", Type: "rack", Nodes: nodesNamed("10.0.2.", 8)}, {Name: "3", Type: "P100-RACK", Nodes: nodesNamed("10.0.3.", 8)}},
		VCs: []VC{{Name: "vc1", Cells: []Quota{{Chain: "P100-RACK", Type: "P100-RACK", Cells: 1}, {Chain: "rack", Type: "node", Cells: 4}}},
			{Name: "vc2", Cells: []Quota{{Type: "rack", Cells: 1}, {Type: "node", Cells: 4}}}}})
	w.ask(t, "vc1", 8, 4, func(q *Request) { q.Model, q.Level = "p100", "P100-RACK" })
	w.ask(t, "vc1", 4, 8, func(q *Request) { q.Model = "v100" })
	// vc1's nodes are split off one rack, so that the other is left for vc2.
	w.ask(t, "vc2", 8, 8, at("rack"))
	w.ask(t, "vc2", 4, 8, nil)
	w.expectFree(t, "P100", 0, 0, 0)
}

// Algorithm 1, step by step: a request is met at the lowest level that has a free cell;
// splitting keeps the others of a split cell free at their level; releasing merges.
func TestAlgorithm1(t *testing.T) {
	w := start(t, figure3())
	first, err := w.Allocate("A", "", "gpu")
	if err != nil {
		t.Fatal(err)
	}
	w.expectFree(t, "a GPU of the rack", 1, 1, 1, 3, 0)
	second, err := w.Allocate("B", "", "gpu")
	if err != nil {
		t.Fatal(err)
	}
	w.expectFree(t, "its buddy", 0, 1, 1, 3, 0)
	if first != (Cell{0, 0, 0}) || second != (Cell{0, 0, 1}) {
		t.Errorf("GPUs %v and %v are no buddies", first, second)
	}
	third, err := w.Allocate("C", "", "node")
	if err != nil {
		t.Fatal(err)
	}
	w.expectFree(t, "a node", 0, 1, 1, 2, 0)
	if _, err := w.Allocate("A", "", "gpu"); err == nil {
		t.Error("A has one GPU and got two")
	}
	w.Free(first)
	w.expectFree(t, "one GPU given back", 1, 1, 1, 2, 0)
	w.Free(second)
	w.expectFree(t, "its buddy given back: merged to a node", 0, 0, 0, 3, 0)
	w.Free(third)
	w.expectFree(t, "the node given back: merged to the rack", 0, 0, 0, 0, 1)
}

// Equation (1) and invariant (2) on Figure 3, by hand: 32 GPUs as one free rack, with
// reservations of 2 nodes, 2 sockets, 3 PCIe switches and 2 GPUs.
func TestInvariant2(t *testing.T) {
	w := start(t, figure3())
	// F_4 = (1+0-0)*4 = 4; F_3 = (0+4-2)*2 = 4; F_2 = (4-2)*2 = 4; F_1 = (4-3)*2 = 2
	want := []gap{{2, 2}, {3, 4}, {2, 4}, {2, 4}, {0, 1}}
	if got := w.Cells.chains[0].tree.gaps(nil); !slices.Equal(got, want) {
		t.Errorf("invariant (2) reads %v, want %v", got, want)
	}
	d := figure3()
	d.VCs[0].Cells = append(d.VCs[0].Cells, Quota{Type: "gpu", Cells: 1})
	if _, err := New(d); err == nil || err.Error() != "chain rack: type gpu: cannot be had: more cells are reserved than there are (needed 3, there 2)" {
		t.Errorf("one GPU too many: %v", err)
	}
}

// §3.3: high priority chooses "the free cells with the fewest GPUs used by low-priority
// jobs", low priority "the cells farthest away from those occupied by high-priority jobs".
func TestTwoViews(t *testing.T) {
	w := start(t, figure3())
	w.ask(t, "A", 1, 1, nil) // on n00
	lend := func(gpus int) Part {
		g, err := w.Lend(Request{Job: w.key(), VC: "guest", Nodes: 1, GPUs: gpus})
		if err != nil {
			t.Fatal(err)
		}
		w.sound(t)
		return g.Parts[0]
	}
	if p := lend(2); p.Node != "n03" || p.GPUs != 0b11000000 {
		t.Errorf("2 GPUs are lent at %+v, farthest is n03", p)
	}
	if p := lend(8); p.Node != "n02" {
		t.Errorf("8 GPUs are lent on %s, of the idle nodes n02 is the farthest", p.Node)
	}
	if p := lend(1); p.Node != "n03" {
		t.Errorf("1 GPU is lent on %s: n03 is in use already", p.Node)
	}
	_, g := w.ask(t, "C", 1, 8, nil)
	if g.Parts[0].Node != "n01" || g.Recall != nil {
		t.Errorf("C's node is %s, recalling %v: n01 is idle", g.Parts[0].Node, g.Recall)
	}
	_, g = w.ask(t, "C", 1, 8, nil)
	if g.Parts[0].Node != "n03" || len(g.Recall) != 2 {
		t.Errorf("C's node is %s, recalling %v: n03 has fewest GPUs lent", g.Parts[0].Node, g.Recall)
	}
}

// Multi-level cells of several tenants are packed on one node (§5.3), single-level ones are not.
func TestMultiLevelCellsFragmentLess(t *testing.T) {
	broken := func(typ string) int {
		var vcs []VC
		for _, name := range []string{"a", "b", "c", "d"} {
			vcs = append(vcs, VC{Name: name, Cells: []Quota{{Type: typ, Cells: 1}}})
		}
		w := start(t, Description{Types: v100(4), Tops: []Top{{Name: "rack", Type: "rack", Nodes: nodesNamed("n", 4)}}, VCs: vcs})
		for _, v := range vcs {
			w.ask(t, v.Name, 1, 1, nil)
		}
		for _, f := range w.Cells.Fragmentation() {
			if f.Type == "node" {
				return f.Broken
			}
		}
		return -1
	}
	if one, node := broken("gpu"), broken("node"); one != 1 || node != 4 {
		t.Errorf("four 1-GPU jobs break %d nodes with GPU cells, %d with node cells; want 1 and 4", one, node)
	}
}
