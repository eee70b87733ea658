package cells

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestGangsAvoidSlowNodes(t *testing.T) {
	d := Description{Types: []Type{{Name: "gpu", Model: "v100"}, {Name: "node", Child: "gpu", Split: 4, Node: true}, {Name: "rack", Child: "node", Split: 2}},
		VCs: []VC{{Name: "a", Cells: []Quota{{Type: "node", Cells: 2}, {Type: "gpu", Cells: 2}}}, {Name: "b", Cells: []Quota{{Type: "rack", Cells: 1}}}}}
	for i := range 3 {
		d.Tops = append(d.Tops, Top{Name: fmt.Sprintf("r%d", i+1), Type: "rack", Nodes: []string{fmt.Sprintf("n%d", 2*i+1), fmt.Sprintf("n%d", 2*i+2)}})
	}
	two := Request{VC: "a", Nodes: 2, GPUs: 4}
	one := Request{VC: "a", Nodes: 1, GPUs: 4}
	racks := Request{VC: "b", Nodes: 2, GPUs: 4, Level: "rack"}
	for _, c := range []struct {
		name  string
		busy  []string // nodes on which b borrows all GPUs
		slow  []string
		q     Request
		lend  bool
		nodes []string
	}{
		{"no node is slow", nil, nil, two, false, []string{"n1", "n2"}},
		{"a gang has other nodes", nil, []string{"n1"}, two, false, []string{"n3", "n4"}},
		{"no larger cell is split for it", nil, []string{"n1", "n3", "n5"}, two, false, []string{"n1", "n2"}},
		{"a job of one node may be on a slow one", nil, []string{"n1"}, one, false, []string{"n1"}},
		{"nobody has to leave for it", []string{"n3", "n4", "n5", "n6"}, []string{"n1"}, two, false, []string{"n1", "n2"}},
		{"unless somebody does in any case", []string{"n1", "n2", "n3", "n4", "n5", "n6"}, []string{"n1"}, two, false, []string{"n3", "n4"}},
		{"all are slow", nil, []string{"n1", "n2", "n3", "n4", "n5", "n6"}, two, false, []string{"n1", "n2"}},
		{"a rack", nil, []string{"n2"}, racks, false, []string{"n3", "n4"}},
		{"a node that it must have", nil, []string{"n1"}, Request{VC: "a", Nodes: 2, GPUs: 4, Must: []string{"n1"}}, false, []string{"n1", "n2"}},
		{"lent nodes", nil, []string{"n6"}, two, true, []string{"n4", "n5"}},
		{"there are no others to be lent", []string{"n1", "n2", "n3", "n4"}, []string{"n6"}, two, true, []string{"n5", "n6"}},
	} {
		w, err := newWorld(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range c.busy {
			if _, err := w.Lend(Request{Job: w.key(), VC: "b", Nodes: 1, GPUs: 4, Must: []string{node}, Admits: func(n string, _ int) bool { return n == node }}); err != nil {
				t.Fatal(err)
			}
		}
		c.q.Job = w.key()
		if c.slow != nil {
			c.q.Slow = func(node string) bool { return slices.Contains(c.slow, node) }
		}
		give := w.Request
		if c.lend {
			give = w.Lend
		}
		if _, err := give(c.q); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var nodes []string
		for _, p := range w.Leases.Parts(c.q.Job) {
			nodes = append(nodes, p.Node)
		}
		if slices.Sort(nodes); !slices.Equal(nodes, c.nodes) {
			t.Errorf("%s: the gang is on %v, want %v", c.name, nodes, c.nodes)
		}
		w.sound(t)
	}
}

// Slow nodes change which nodes a gang has: it gets what it would get, on no more nodes, for no more recalls, in no more cells of each level.
func TestSlowNodesCostNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := describe(rt, 32)
		if len(d.VCs) == 0 {
			rt.Skip("no VC")
		}
		plain, err := newWorld(d)
		if err != nil {
			rt.Fatal(err)
		}
		other, _ := newWorld(d)
		nodes := plain.allNodes()
		draw := func() (Request, bool) {
			q := Request{Job: plain.key(), VC: rapid.SampledFrom(d.VCs).Draw(rt, "VC").Name, Nodes: rapid.IntRange(1, 4).Draw(rt, "parts"),
				GPUs: rapid.IntRange(1, 4).Draw(rt, "GPUs"), Apart: rapid.Bool().Draw(rt, "apart"), Soft: rapid.Bool().Draw(rt, "soft"),
				Priority: rapid.IntRange(0, 2).Draw(rt, "priority")}
			if few := rapid.SliceOfN(rapid.SampledFrom(nodes), 0, 3).Draw(rt, "not on"); len(few) > 0 {
				q.Admits = func(node string, _ int) bool { return !slices.Contains(few, node) }
			}
			return q, rapid.Bool().Draw(rt, "lend")
		}
		give := func(w *world, q Request, lend bool) (Grant, error) {
			if lend {
				return w.Lend(q)
			}
			return w.Request(q)
		}
		for range rapid.IntRange(0, 10).Draw(rt, "before") {
			if rapid.IntRange(0, 4).Draw(rt, "what") == 0 {
				node, gpus := rapid.SampledFrom(nodes).Draw(rt, "node"), rapid.Uint64Range(0, 15).Draw(rt, "bad")
				plain.SetBad(node, gpus)
				other.SetBad(node, gpus)
				continue
			}
			q, lend := draw()
			_, _ = give(plain, q, lend) // a refusal is as good
			_, _ = give(other, q, lend)
		}
		q, lend := draw()
		slow := rapid.SliceOf(rapid.SampledFrom(nodes)).Draw(rt, "slow")
		was, refused := give(plain, q, lend)
		q.Slow = func(node string) bool { return slices.Contains(slow, node) }
		got, err := give(other, q, lend)
		other.sound(rt)
		if (err == nil) != (refused == nil) {
			rt.Fatalf("without slow nodes: %v; with %v: %v", refused, slow, err)
		}
		if err != nil {
			return
		}
		costs := func(w *world, g *Grant) price {
			on := map[string]bool{}
			for _, p := range g.Parts {
				on[p.Node] = true
			}
			out := price{len(on), len(g.Recall), len(g.Demoted), btoi(g.Relaxed)}
			for _, v := range w.Cells.Views() {
				out = append(out, v.Bound, v.Lost)
			}
			for _, x := range w.Cells.Supply() {
				out = append(out, x.Needed-x.There)
			}
			return out
		}
		if x, y := costs(plain, &was), costs(other, &got); y.above(x) {
			rt.Fatalf("without slow nodes %v on %v\nwith %v %v on %v", x, was.Parts, slow, y, got.Parts)
		}
	})
}
