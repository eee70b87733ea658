package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// earnsFor makes a world of 16 GPUs in which two tenants have worked. Since then its pool has earned money for stops, with four GPUs in use.
func earnsFor(t *testing.T, set cluster.Settings, earned cluster.Span) *world {
	w := newWorld(t, set, []int{8, 8}, "a", "b")
	for range 16 {
		w.submit("a", 1, 30*minute, nil)
		w.submit("b", 1, 30*minute, nil)
	}
	w.Run(2 * hour)
	w.Settings.StopTotalMilli = 30 // the pool has nothing yet
	w.submit("a", 4, earned, nil)
	w.Run(earned + minute)
	return w
}

// A pool that can pay for few stops grants the first comer no more young jobs beyond its due than it can stop again.
func TestTheFirstComerBindsItsDueWhateverStopsCost(t *testing.T) {
	for _, earned := range []cluster.Span{10 * minute, hour, 5 * hour} {
		set := simtest.Product()
		set.Interval, set.BindQuiet, set.BindMaxPercent = minute, 20*set.BindQuiet, 0
		w := earnsFor(t, set, earned)
		var first []cluster.JobID
		for range 16 {
			first = append(first, w.submit("a", 1, 100*hour, func(j *sim.Work) { neverSaves(j); j.Begin = w.Now().Add(3 * minute) }))
		}
		w.Run(2 * hour)
		var second []cluster.JobID
		for range 16 {
			second = append(second, w.submit("b", 1, 100*hour, nil))
		}
		w.Run(hour)
		if got := w.holdsIn(second); got < 8 {
			t.Errorf("after %s: the other tenant has %d GPUs an hour after its return, want its 8; the first comer has %d", earned, got, w.holdsIn(first))
		}
	}
}

// Slurm may need a round or two to start what was granted. Meanwhile, the money for the stops of these jobs is kept as well.
func TestGrantsUnderWayKeepMoneyForTheirStops(t *testing.T) {
	for _, earned := range []cluster.Span{4 * hour, 6 * hour, 8 * hour, 10 * hour, 12 * hour, 15 * hour} {
		set := simtest.Product()
		set.Interval, set.GrantTimeout, set.BindQuiet, set.BindMaxPercent = minute, 10*minute, 100*set.BindQuiet, 0
		w := earnsFor(t, set, earned)
		w.alter = func(s *cluster.Observation) {
			for i := range s.Jobs {
				if j := &s.Jobs[i]; j.State == cluster.Running && s.Now.Sub(j.Start) < 150*second {
					j.State, j.Start, j.Holds = cluster.Waiting, 0, nil
				}
			}
		}
		var first []cluster.JobID
		for i := range 16 {
			first = append(first, w.submit("a", 1, 100*hour, func(j *sim.Work) { neverSaves(j); j.Begin = w.Now().Add(cluster.Span(3+i/4) * minute) }))
		}
		w.Run(2 * hour)
		if got := w.holdsIn(first); got > 9 { // foresight may be wrong by one job
			t.Errorf("after %s: the first comer has %d GPUs for good, its due is 8", earned, got)
		}
	}
}

// A job that takes the whole cluster, never saves and is due a part of it waits for what the others wanted lately, and ends, however
// poor its pool is.
func TestABoundJobOfTheWholePoolEnds(t *testing.T) {
	for _, total := range []int64{0, 1, 30} {
		set := simtest.Product()
		set.Interval, set.StopTotalMilli = minute, total
		w := newWorld(t, set, []int{8}, "a", "b", "c")
		for range 4 {
			w.submit("b", 2, 2*hour, neverSaves) // larger ones than its due could not use what is kept for it
		}
		w.Run(10 * minute)
		id, waited := w.submit("a", 8, 30*minute, neverSaves), false
		w.Run(50 * minute)
		w.submit("c", 2, hour, neverSaves)
		for w.Job(id).State != cluster.Done && w.Now().Sub(simtest.Start) < cluster.Day {
			w.Run(10 * minute)
			waited = waited || w.Job(id).State == cluster.Waiting && w.Reason(id).Code == cluster.ReasonBound
		}
		if w.Job(id).State != cluster.Done || !waited {
			t.Errorf("stop.total %d: it is %s, and has waited for the others: %v: %+v", total, w.Job(id).State, waited, w.Reason(id))
		}
	}
}

// The stop of a job whose owner opened its gate, and says that its save takes a day, costs the pool nothing: the others' leases end
// as before.
func TestOneStopDoesNotBankruptThePool(t *testing.T) {
	set := simtest.Product()
	set.Interval, set.StopTotalMilli = minute, 30
	w := newWorld(t, set, []int{4, 4}, "a", "b")
	w.License = 1_000_000
	w.submit("a", 4, forever, func(j *sim.Work) { j.NoRequeue = true }) // its due
	runs := w.submit("b", 4, forever, saves)
	w.Run(5 * hour)
	id := w.submit("a", 4, forever, func(j *sim.Work) { j.NoRequeue, j.Saves, j.Costs = true, sim.Always, &sim.Costs{Save: cluster.Day} })
	w.Run(minute)
	next := w.submit("b", 4, forever, saves)
	w.Cancel(runs)
	w.TakeOff(id)
	w.Advance(w.Now().Add(10 * second))
	w.state(id, cluster.Running)
	w.Run(3 * hour)
	if n := len(w.done(cluster.Reclaim, id)); n == 0 {
		t.Fatal("it was not stopped")
	}
	for _, p := range w.Last.State.Ledger.Pools {
		if p.Stops < 0 {
			t.Errorf("the pool has no money for stops any more: %.1f GPU hours", p.Stops.Hours())
		}
	}
	w.state(next, cluster.Running)
}
