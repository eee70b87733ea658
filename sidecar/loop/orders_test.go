package loop

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A slow scheduler of one virtual cluster delays neither rounds nor the schedulers of others, and is asked again only when it has answered. An
// answer that says the same as the last one is no news.
func TestSchedulersOfVirtualClusters(t *testing.T) {
	b := newBench()
	b.Beside = true
	asked, answers := make(chan string, 99), map[string]chan cluster.VCOrder{"a": make(chan cluster.VCOrder, 9), "b": make(chan cluster.VCOrder, 9)}
	b.Schedulers = func(s cluster.Snapshot, _ cluster.Plan) (out []Scheduler) {
		for _, vc := range []string{"a", "b"} {
			out = append(out, Scheduler{VC: vc, Ask: func() cluster.VCOrder {
				asked <- vc
				x := <-answers[vc]
				x.At = s.Now
				return x
			}})
		}
		return out
	}
	var known []cluster.VCOrder
	decide := b.Decide
	b.Decide = func(s cluster.Snapshot) cluster.Plan { known = s.VCOrders; return decide(s) }
	turn := func(changed bool) bool {
		t.Helper()
		b.seen.Now, b.seen.Unchanged = b.seen.Now.Add(cluster.Minute), !changed
		r, _, err := b.turn(t)
		if err != nil {
			t.Fatal(err)
		}
		return r.Quiet
	}
	// answer lets a scheduler answer, and waits until the loop can hear it.
	answer := func(vc string, x cluster.VCOrder) {
		answers[vc] <- x
		heard := b.Loop.orders.pending[vc]
		heard <- <-heard
	}
	first := b.seen.Now.Add(cluster.Minute)
	turn(true)
	<-asked
	<-asked
	turns := []cluster.VCTurn{{Job: 7}}
	answer("b", cluster.VCOrder{Turns: turns})
	if turn(false) {
		t.Error("a round after an answer is quiet")
	}
	if d := cmp.Diff([]cluster.VCOrder{{VC: "b", At: first, Since: first, Turns: turns}}, known); d != "" {
		t.Error(d)
	}
	if vc := <-asked; vc != "b" || len(asked) > 0 {
		t.Errorf("%s is asked again, and %d more", vc, len(asked))
	}
	answer("b", cluster.VCOrder{Turns: turns})
	if !turn(false) {
		t.Error("an answer that says the same is news")
	}
	answer("a", cluster.VCOrder{Why: "it failed"})
	if turn(false) {
		t.Error("a round after the first failure is quiet")
	}
	if d := cmp.Diff([]cluster.VCOrder{{VC: "a", At: first, Since: first, Why: "it failed"}, {VC: "b", At: first.Add(cluster.Minute), Since: first, Turns: turns}}, known); d != "" {
		t.Error(d)
	}
	b.Schedulers = func(cluster.Snapshot, cluster.Plan) []Scheduler { return nil } // the site takes them out
	turn(true)
	if turn(true); len(known) != 0 {
		t.Errorf("without schedulers, their answers stay: %v", known)
	}
}
