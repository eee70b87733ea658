package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job that has ended is a former one after some minutes, in no case, and forgotten after an hour.
func TestAnEndedJobIsAFormerOne(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a")
	id := w.submit("a", 1, minute, nil)
	w.Run(90 * second)
	over := w.Record(id).Done
	if over == 0 {
		t.Fatal("the job has not ended")
	}
	began := map[string]cluster.Span{}
	w.Check = func(r loop.Report) {
		for what, list := range map[string][]cluster.Record{"record": r.Plan.State.Records, "former": r.Plan.State.Former} {
			for i := range list {
				if list[i].ID == id {
					began[what] = max(began[what], r.Plan.At.Sub(over))
				}
			}
		}
	}
	for range 70 {
		w.submit("a", 1, minute, nil) // else no round is made
		w.Run(minute)
	}
	if last := began["record"]; last < cluster.FormerAfter-minute || last >= cluster.FormerAfter {
		t.Errorf("it was a record for %s", last)
	}
	if last := began["former"]; last < cluster.FormerFor-minute || last >= cluster.FormerFor {
		t.Errorf("it was remembered for %s", last)
	}
}

// Former jobs are in memory that plans share. Neither rounds that go on from one plan in two ways, nor later ones, change what a plan has.
func TestPlansShareFormerJobsSafely(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	kept := map[*cluster.Plan]string{}
	d, other := &engine.Decider{}, &engine.Decider{}
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		whatif := s
		whatif.Now = s.Now.Add(2 * minute) // more jobs have become former ones by then
		for _, by := range []*engine.Decider{d, other} {
			for _, x := range []*cluster.Snapshot{&whatif, &s} {
				p := by.Decide(*x)
				kept[&p] = encode(p)
			}
		}
		p := d.Decide(s)
		kept[&p] = encode(p)
		return p
	}
	for i := range 90 {
		w.Virtual.Submit(sim.Work{User: "u", Account: []string{"a", "b"}[i%2], Partition: "gpu", Request: simtest.Gang(1 + i%2), Runs: cluster.Span(1+i%7) * minute})
		w.Run(minute)
	}
	most := 0
	for p, was := range kept {
		most = max(most, len(p.State.Former))
		if is := encode(*p); is != was {
			t.Fatalf("the plan of round %d has changed", p.Round)
		}
	}
	if most < 20 {
		t.Errorf("at most %d former jobs", most)
	}
}
