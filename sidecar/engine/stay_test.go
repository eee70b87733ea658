package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Jobs whose stops cost more than their budgets bind what a regular grant may bind, and no more, if their owner opens their gates while
// nobody waits.
func TestAnOpenedGateBindsNoMoreThanAGrant(t *testing.T) {
	t.Parallel()
	set := simtest.Product()
	set.Interval, set.BindQuiet = minute, 20*set.BindQuiet
	w := newWorld(t, set, []int{8, 8}, "a", "b")
	w.License = 1_000_000
	for range 16 {
		w.submit("b", 1, 30*minute, nil)
	}
	w.Run(2 * hour)
	var first, second []cluster.JobID
	for range 16 {
		id := w.submit("a", 1, forever, func(j *sim.Work) { j.Saves, j.Begin = sim.OnTerm, w.Now().Add(3*minute) })
		w.Update(id, func(j *cluster.Job) { j.Declares.Takes = cluster.Day })
		first = append(first, id)
	}
	w.Run(hour)
	if got := w.holdsIn(first); got != 8 {
		t.Fatalf("before its owner opens gates a holds %d GPUs, want its due of 8", got)
	}
	opened := 0
	for _, id := range first {
		if w.Job(id).State == cluster.Waiting {
			w.TakeOff(id)
			opened++
		}
	}
	w.Run(hour)
	if got := w.holdsIn(first); opened != 8 || got != 8 {
		t.Errorf("an hour after %d gates were opened a holds %d GPUs, want 8", opened, got)
	}
	for range 16 {
		second = append(second, w.submit("b", 1, forever, saves))
	}
	w.Run(2*term + 2*minute)
	if got := w.holdsIn(second); got != 8 {
		t.Errorf("b holds %d GPUs after its return, want its due of 8", got)
	}
}
