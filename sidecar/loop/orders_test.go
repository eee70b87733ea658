package loop

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A slow scheduler of one virtual cluster delays neither rounds nor the schedulers of others, and is asked again only when it has answered. An
// answer that says the same as the last one is no news.
func TestSchedulersOfVirtualClusters(t *testing.T) {
	b := newBench()
	b.Beside = true
	b.rules.Cells = vcsBy(map[string]string{"a": "/bin/a", "b": "/bin/b"})
	asked, answers := make(chan string, 99), map[string]chan cluster.VCOrder{"a": make(chan cluster.VCOrder, 9), "b": make(chan cluster.VCOrder, 9)}
	b.Schedulers = func(cluster.Snapshot, cluster.Plan) (out []Scheduler) {
		for _, vc := range []string{"a", "b"} {
			out = append(out, Scheduler{VC: vc, Ask: func() cluster.VCOrder {
				asked <- vc
				return <-answers[vc]
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
	b.rules.Cells = nil // the site takes them out
	if turn(true); len(known) != 0 {
		t.Errorf("without schedulers, their answers stay: %v", known)
	}
}

// vcsBy describes virtual clusters with schedulers of their own, without cells.
func vcsBy(commands map[string]string) *cluster.Cells {
	c := &cluster.Cells{}
	for _, vc := range slices.Sorted(maps.Keys(commands)) {
		c.VCs = append(c.VCs, cluster.VC{Name: vc, Scheduler: &cluster.VCScheduler{Command: []string{commands[vc]}}})
	}
	return c
}

// An answer belongs to the program that gave it. When a virtual cluster gets another program, the answers of the one before count no more: neither
// the last one nor one that is under way.
func TestAnotherSchedulerOfAVirtualCluster(t *testing.T) {
	b := newBench()
	b.Beside = true
	answers := map[string]chan cluster.VCOrder{"/bin/old": make(chan cluster.VCOrder, 9), "/bin/new": make(chan cluster.VCOrder, 9)}
	b.Schedulers = func(s cluster.Snapshot, _ cluster.Plan) []Scheduler {
		from := answers[s.Cells.VCs[0].Scheduler.Command[0]]
		return []Scheduler{{VC: "a", Ask: func() cluster.VCOrder { return <-from }}}
	}
	var known []cluster.VCOrder
	decide := b.Decide
	b.Decide = func(s cluster.Snapshot) cluster.Plan { known = s.VCOrders; return decide(s) }
	turn := func(by string) {
		t.Helper()
		b.rules.Cells = vcsBy(map[string]string{"a": by})
		if _, _, err := b.turn(t); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(from string, job cluster.JobKey) {
		heard := b.Loop.orders.pending["a"]
		answers[from] <- cluster.VCOrder{Turns: []cluster.VCTurn{{Job: job}}}
		heard <- <-heard
	}
	turn("/bin/old")
	answer("/bin/old", 1)
	if turn("/bin/old"); len(known) != 1 || known[0].Turns[0].Job != 1 {
		t.Fatalf("the first answer: %v", known)
	}
	under := b.Loop.orders.pending["a"]
	if turn("/bin/new"); len(known) != 0 {
		t.Errorf("the answer of another program counts: %v", known)
	}
	answers["/bin/old"] <- cluster.VCOrder{Turns: []cluster.VCTurn{{Job: 2}}}
	under <- <-under
	if turn("/bin/new"); len(known) != 0 {
		t.Errorf("the answer under way of another program counts: %v", known)
	}
	answer("/bin/new", 3)
	if turn("/bin/new"); len(known) != 1 || known[0].Turns[0].Job != 3 {
		t.Errorf("the answer of the new program: %v", known)
	}
	answer("/bin/new", 4) // has come, and not been heard yet
	if turn("/bin/old"); len(known) != 0 {
		t.Errorf("an answer of another program that came before the reload counts: %v", known)
	}
}

// A panic while a scheduler is asked is a failure of that scheduler, and is reported with its place.
func TestASchedulerThatBreaksDown(t *testing.T) {
	b := newBench()
	b.Beside = true
	b.rules.Cells = vcsBy(map[string]string{"a": "/bin/a"})
	b.Schedulers = func(cluster.Snapshot, cluster.Plan) []Scheduler {
		return []Scheduler{{VC: "a", Ask: func() cluster.VCOrder { panic("no such job") }}}
	}
	b.turn(t)
	heard := b.Loop.orders.pending["a"]
	heard <- <-heard
	r, _, err := b.turn(t)
	if cause, where, _ := strings.Cut(r.Broke, "\n"); err != nil || cause != "the scheduler of a: no such job" || !strings.Contains(where, "TestASchedulerThatBreaksDown") {
		t.Errorf("the turn reports %q (%v)", r.Broke, err)
	}
	if d := cmp.Diff([]cluster.VCOrder{{VC: "a", At: noon, Since: noon, Why: "fairlease broke down as it asked: no such job"}}, b.Loop.orders.last); d != "" {
		t.Error(d)
	}
}
