package cells

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/tests/seeds"
)

// Theorem 1 (§3.3): "Buddy cell allocation algorithm satisfies any legal cell allocation,
// under the condition of hierarchical uniform composability, if the original VC assignment
// is feasible." Legal is a_tk < r_tk less what is lost to bad hardware.
func TestTheorem1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := describe(t, 64)
		if len(d.VCs) == 0 {
			t.Skip("no VC") // rapid draws another cluster: this one is too small to promise anything
		}
		theorem(t, d, rapid.Uint64().Draw(t, "seed"), 60, 1)
	})
}

// One long run: 10,000 steps on three racks and a loose node.
func TestTheorem1For10000Steps(t *testing.T) {
	for seed := range seeds.Of(t, 1) {
		theorem(t, threeRacks(), seed+1, 10_000, 10)
	}
}

// threeRacks is fully reserved, on all levels by three VCs.
func threeRacks() Description {
	d := Description{
		Types: []Type{{Name: "gpu", Model: "v100"}, {Name: "pcie", Child: "gpu", Split: 2}, {Name: "socket", Child: "pcie", Split: 2},
			{Name: "node", Child: "socket", Split: 2, Node: true}, {Name: "rack", Child: "node", Split: 3}},
		Tops: []Top{{Name: "r1", Type: "rack", Nodes: []string{"n11", "n12", "n13"}}, {Name: "r2", Type: "rack", Nodes: []string{"n21", "n22", "n23"}},
			{Name: "r3", Type: "rack", Nodes: []string{"n31", "n32", "n33"}}, {Name: "single", Type: "node", Nodes: []string{"n41"}}},
		VCs: []VC{
			{Name: "a", Cells: []Quota{{Type: "rack", Cells: 1}, {Type: "node", Cells: 1}, {Type: "gpu", Cells: 2}}},
			{Name: "b", Cells: []Quota{{Type: "node", Cells: 2}, {Type: "socket", Cells: 3}, {Type: "pcie", Cells: 1}, {Type: "gpu", Cells: 1}}},
			{Name: "c", Cells: []Quota{{Type: "node", Cells: 1}, {Type: "pcie", Cells: 1}, {Type: "gpu", Cells: 1}}, Pins: []Pin{{Type: "socket", Node: "n32", GPU: 5}}},
		},
	}
	return d
}

// theorem makes random steps. After each, nothing may be violated; every legal
// request for a cell must be met at once. In the end all is released and repaired,
// and the state must be that of the start.
func theorem(t rapid.TB, d Description, seed uint64, steps, checks int) {
	w, err := newWorld(d)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	names := w.allNodes()
	legal, recalled, lost := 0, 0, 0
	for step := range steps {
		if step%2000 == 1000 { // now for a thousand steps without bad hardware
			for _, n := range names {
				w.SetBad(n, 0)
			}
		}
		switch v := &d.VCs[rng.IntN(len(d.VCs))]; rng.IntN(10) {
		case 0, 1, 2: // a whole cell that the VC has free
			views := slices.DeleteFunc(w.Cells.Views(), func(o View) bool { return o.VC != v.Name || o.Free < 1 })
			if len(views) == 0 {
				continue
			}
			o := views[rng.IntN(len(views))]
			ci, k, _ := w.Cells.levelOf(o.Chain, o.Type)
			c := w.Cells.chains[ci]
			q := Request{Job: w.key(), VC: v.Name, Chain: o.Chain, Level: o.Type, Nodes: 1, GPUs: c.tree.levels[k].size, Priority: rng.IntN(2)}
			if k > c.tree.nodeAt {
				q.Nodes, q.GPUs = c.tree.nodesIn(k), len(c.lend)
			}
			g, err := w.request(t, q)
			if err != nil {
				t.Fatalf("step %d: %s has %d cells free, and %v is refused: %v", step, v.Name, o.Free, q, err)
			}
			if g.Demoted != nil {
				t.Fatalf("step %d: %v was legal, and took cells from %v", step, q, g.Demoted)
			}
			legal++
			recalled += len(g.Recall)
		case 3: // any gang
			c := w.Cells.chains[rng.IntN(len(w.Cells.chains))]
			k := rng.IntN(len(c.tree.levels))
			q := Request{Job: w.key(), VC: v.Name, Chain: c.name, Level: c.tree.levels[k].name, Nodes: 1 + rng.IntN(4), GPUs: 1 + rng.IntN(len(c.lend)),
				Apart: rng.IntN(2) == 0, Soft: rng.IntN(2) == 0, Priority: rng.IntN(3)}
			_, _ = w.request(t, q)
		case 4, 5: // opportunistic
			c := w.Cells.chains[rng.IntN(len(w.Cells.chains))]
			q := Request{Job: w.key(), VC: "guest", Chain: c.name, Nodes: 1 + rng.IntN(2), GPUs: 1 + rng.IntN(len(c.lend)), Soft: rng.IntN(2) == 0}
			if _, err := w.Lend(q); err == nil {
				w.keys = append(w.keys, q.Job)
			}
		case 6, 7:
			if n := len(w.keys); n > 0 {
				i := rng.IntN(n)
				w.Release(w.keys[i])
				w.keys = slices.Delete(w.keys, i, i+1)
			}
		case 8:
			gpus := rng.Uint64()
			if rng.IntN(2) == 0 || step/1000%2 == 1 {
				gpus = 0
			}
			w.SetBad(names[rng.IntN(len(names))], gpus)
		case 9:
			if n := len(w.keys); n > 0 && rng.IntN(3) == 0 {
				key := w.keys[rng.IntN(n)]
				if !w.Demote(key) {
					w.Promote(key, v.Name, false)
				}
			} else if rng.IntN(10) == 0 {
				r := w.Leases.Export() // in any order
				rng.Shuffle(len(r.Leases), func(i, j int) { r.Leases[i], r.Leases[j] = r.Leases[j], r.Leases[i] })
				rng.Shuffle(len(r.Bad), func(i, j int) { r.Bad[i], r.Bad[j] = r.Bad[j], r.Bad[i] })
				again, changes, err := restored(d, r)
				if err != nil || changes.Outside != nil || changes.Demoted != nil {
					t.Fatalf("step %d: a restart changes %+v: %v", step, changes, err)
				}
				same(t, "after a restart", w.State, again)
				w.State = again
			}
		}
		if step%checks == 0 {
			w.sound(t)
		}
		for _, o := range w.Cells.Views() {
			lost += o.Lost
		}
	}
	w.sound(t)
	for _, key := range w.keys {
		w.Release(key)
	}
	for _, n := range names {
		w.SetBad(n, 0)
	}
	start, _ := New(d)
	same(t, "all released and repaired", w.State, start)
	if steps >= 1000 && (legal < 500 || recalled < 100 || lost == 0) {
		t.Fatalf("%d legal requests, %d recalls, %d losses: too few to show anything", legal, recalled, lost)
	}
}
