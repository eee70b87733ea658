package cells

import (
	"fmt"
	"math/bits"
	"slices"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// describe draws a cluster of at most most GPUs a chain with a feasible assignment, often one
// to which nothing can be added.
func describe(t *rapid.T, most int) Description {
	var d Description
	node := 0
	for c := range rapid.IntRange(1, 2).Draw(t, "chains") {
		levels := rapid.IntRange(1, 4).Draw(t, "levels above the GPU")
		nodeAt := rapid.IntRange(0, levels).Draw(t, "node level")
		d.Types = append(d.Types, Type{Name: fmt.Sprintf("c%d.0", c), Model: fmt.Sprintf("m%d", c), Node: nodeAt == 0})
		size, nodes := 1, 1
		perNode := []int{} // nodes in a cell, by level
		for k := range levels + 1 {
			if k > 0 {
				split := rapid.IntRange(1, 4).Draw(t, "split")
				if size*split > most {
					split = 1
				}
				size *= split
				if k > nodeAt {
					nodes *= split
				}
				d.Types = append(d.Types, Type{Name: fmt.Sprintf("c%d.%d", c, k), Child: fmt.Sprintf("c%d.%d", c, k-1), Split: split, Node: k == nodeAt})
			}
			perNode = append(perNode, nodes)
		}
		top := func(k int) {
			t := Top{Name: fmt.Sprintf("top%03d", len(d.Tops)), Type: fmt.Sprintf("c%d.%d", c, k)}
			for range perNode[k] {
				t.Nodes = append(t.Nodes, fmt.Sprintf("n%03d", node))
				node++
			}
			d.Tops = append(d.Tops, t)
		}
		for range rapid.IntRange(1, max(1, min(4, most/size))).Draw(t, "tops") {
			top(levels)
		}
		for range rapid.IntRange(0, 2).Draw(t, "loose cells") {
			if k := rapid.IntRange(nodeAt, levels).Draw(t, "their level"); k < levels {
				top(k)
			}
		}
	}
	d.VCs = []VC{{Name: "a"}, {Name: "b"}, {Name: "c"}}[:rapid.IntRange(1, 3).Draw(t, "VCs")]
	for range rapid.IntRange(1, 25).Draw(t, "quotas") {
		v := &d.VCs[rapid.IntRange(0, len(d.VCs)-1).Draw(t, "VC")]
		typ := d.Types[rapid.IntRange(0, len(d.Types)-1).Draw(t, "type")].Name
		cells, pins := v.Cells, v.Pins
		if node > 0 && rapid.IntRange(0, 9).Draw(t, "pin") == 0 {
			v.Pins = append(pins[:len(pins):len(pins)], Pin{Type: typ, Node: fmt.Sprintf("n%03d", rapid.IntRange(0, node-1).Draw(t, "node"))})
		} else {
			v.Cells = append(cells[:len(cells):len(cells)], Quota{Type: typ, Cells: rapid.IntRange(1, 4).Draw(t, "cells")})
		}
		trial := d
		trial.VCs = slices.DeleteFunc(slices.Clone(d.VCs), func(v VC) bool { return len(v.Cells)+len(v.Pins) == 0 })
		if _, err := New(trial); err != nil {
			v.Cells, v.Pins = cells, pins
		}
	}
	d.VCs = slices.DeleteFunc(d.VCs, func(v VC) bool { return len(v.Cells)+len(v.Pins) == 0 })
	return d
}

// world is a state and what a test knows about it.
type world struct {
	*State
	d    Description
	next int
	keys []int
}

func newWorld(d Description) (*world, error) {
	s, err := New(d)
	return &world{State: s, d: d}, err
}

func (w *world) key() int { w.next++; return w.next }

// gpus gives a lease's GPUs by node.
func (w *world) gpus(key int) map[string]uint64 {
	out := map[string]uint64{}
	for _, p := range w.Leases.Parts(key) {
		out[p.Node] |= p.GPUs
	}
	return out
}

// allNodes gives the names of the nodes.
func (w *world) allNodes() []string {
	var out []string
	for _, t := range w.d.Tops {
		out = append(out, t.Nodes...)
	}
	return out
}

// request makes a request and checks what a grant says.
func (w *world) request(t rapid.TB, q Request) (Grant, error) {
	t.Helper()
	guests := map[int]map[string]uint64{}
	for key := range w.Leases.byJob {
		if w.Leases.Right(key) == cluster.Opportunistic {
			guests[key] = w.gpus(key)
		}
	}
	before := w.Leases.Export()
	g, err := w.Request(q)
	if err != nil {
		if after := w.Leases.Export(); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("a refusal (%v) changed the state:\n%v\n%v", err, before, after)
		}
		return g, err
	}
	w.keys = append(w.keys, q.Job)
	n, nodes, recall := 0, map[string]bool{}, map[int]bool{}
	for _, key := range g.Demoted {
		guests[key] = w.gpus(key)
	}
	for _, p := range g.Parts {
		n += bits.OnesCount64(p.GPUs)
		at := w.Cells.places[p.Node]
		d := &w.Cells.chains[at.chain].nodes[at.node]
		if d.bad&p.GPUs != 0 {
			t.Fatalf("%v got a bad GPU of %s", q, p.Node)
		}
		if q.Apart && !g.Relaxed && nodes[p.Node] {
			t.Fatalf("%v got %s twice", q, p.Node)
		}
		nodes[p.Node] = true
		for key, on := range guests {
			if on[p.Node]&p.GPUs != 0 {
				recall[key] = true
			}
		}
	}
	if n != q.Nodes*q.GPUs {
		t.Fatalf("%v got %d GPUs", q, n)
	}
	if len(recall) != len(g.Recall) {
		t.Fatalf("%v recalls %v, on its GPUs are %v", q, g.Recall, recall)
	}
	for _, key := range g.Recall {
		if !recall[key] {
			t.Fatalf("%v recalls %v, which is not in its way", q, key)
		}
	}
	return g, nil
}

// sound fails if something that must hold does not.
func (w *world) sound(t rapid.TB) {
	t.Helper()
	if bad := w.check(); bad != nil {
		t.Fatalf("violations: %v", bad)
	}
}

// same fails unless two states are the same in all that decisions depend on.
func same(t rapid.TB, what string, a, b *State) {
	t.Helper()
	if x, y := fmt.Sprint(a.Leases.Export()), fmt.Sprint(b.Leases.Export()); x != y {
		t.Fatalf("%s: leases, bad hardware or losses differ:\n%s\n%s", what, x, y)
	}
	for i, c := range a.Cells.chains {
		o := b.Cells.chains[i]
		c.lendings()
		o.lendings()
		for k := range c.tree.levels {
			x, y := &c.tree.levels[k], &o.tree.levels[k]
			if x.free != y.free || x.bound != y.bound || x.lost != y.lost ||
				!slices.Equal(x.taken, y.taken) || !slices.Equal(x.dead, y.dead) || !slices.Equal(x.stays, y.stays) ||
				!slices.Equal(x.owner, y.owner) || !slices.Equal(x.used, y.used) ||
				!slices.Equal(x.order.kids.keys, y.order.kids.keys) || !slices.Equal(x.order.best.keys, y.order.best.keys) {
				t.Fatalf("%s: chain %s, type %s: cells differ", what, c.name, x.name)
			}
		}
		for g := range c.lend {
			if !slices.Equal(c.lend[g].kids.keys, o.lend[g].kids.keys) || !slices.Equal(c.lend[g].best.keys, o.lend[g].best.keys) {
				t.Fatalf("%s: chain %s: what can be lent differs", what, c.name)
			}
		}
	}
	for v := range a.Cells.vcs {
		for ci := range a.Cells.chains {
			for k := range a.Cells.vcs[v].accounts[ci] {
				if x, y := fmt.Sprint(a.Cells.vcs[v].accounts[ci][k]), fmt.Sprint(b.Cells.vcs[v].accounts[ci][k]); x != y {
					t.Fatalf("%s: VC %s: %s, %s", what, a.Cells.vcs[v].name, x, y)
				}
			}
		}
	}
}
