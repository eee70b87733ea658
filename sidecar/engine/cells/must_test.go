package cells

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A gang has a part on each node that it must have, in a VC's cells and in lent ones, and a refusal leaves no trace. A gang that a VC gets
// with such nodes it also gets without them.
func TestAGangHasTheNodesThatItMust(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, err := newWorld(describe(rt, 16))
		if err != nil {
			rt.Fatal(err)
		}
		nodes := w.allNodes()
		if len(w.d.VCs) == 0 {
			rt.Skip("no VC")
		}
		granted := func(q Request, lend bool) bool {
			if lend {
				_, err := w.Lend(q)
				return err == nil
			}
			_, err := w.request(rt, q)
			return err == nil
		}
		for range rapid.IntRange(1, 8).Draw(rt, "gangs") {
			q := Request{Job: w.key(), VC: w.d.VCs[rapid.IntRange(0, len(w.d.VCs)-1).Draw(rt, "VC")].Name,
				Nodes: rapid.IntRange(1, 4).Draw(rt, "parts"), GPUs: rapid.IntRange(1, 4).Draw(rt, "gpus"), Apart: rapid.Bool().Draw(rt, "apart")}
			if rapid.Bool().Draw(rt, "must") {
				for range rapid.IntRange(1, q.Nodes).Draw(rt, "how many") {
					if n := rapid.SampledFrom(nodes).Draw(rt, "node"); !slices.Contains(q.Must, n) {
						q.Must = append(q.Must, n)
					}
				}
			}
			lend := rapid.Bool().Draw(rt, "lend")
			ok := granted(q, lend)
			parts := w.Leases.Parts(q.Job)
			for _, n := range q.Must {
				if ok && !slices.ContainsFunc(parts, func(p Part) bool { return p.Node == n }) {
					rt.Fatalf("%+v has %+v", q, parts)
				}
			}
			if !ok && len(parts) > 0 {
				rt.Fatalf("%+v was refused and has %+v", q, parts)
			}
			if ok && len(q.Must) > 0 && !lend && !q.Apart && rapid.Bool().Draw(rt, "again") {
				w.Release(q.Job)
				if q.Must = nil; !granted(q, lend) {
					rt.Fatalf("%+v is refused without its nodes", q)
				}
			}
			w.sound(rt)
		}
	})
}
