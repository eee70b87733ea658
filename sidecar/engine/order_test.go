package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// By attained service a job that has had little goes before one that has had much, until it has had about as much; then
// they take turns that get longer. By rho they take turns from the first term on. No job starves by either.
func TestTheLeastAttainedGoesFirst(t *testing.T) {
	for _, order := range []cluster.JobOrder{cluster.ByRho, cluster.ByAttained, cluster.ByExpected} {
		w := newWorld(t, simtest.Product(), []int{1}, "a")
		w.Settings.JobOrder, w.Settings.StopAllowance, w.Settings.StopOverheadMilli = order, 0, 0
		old := w.submit("a", 1, forever, nil)
		w.Run(4 * hour)
		had := w.Alloc(old)
		young := w.submit("a", 1, forever, nil)
		w.Run(3 * hour)
		if got := w.Alloc(old) - had; (got < cluster.GPUTime(hour/2)) != (order != cluster.ByRho) {
			t.Errorf("order %q: the old job got %.1f GPU-h beside the young one, which got %.1f", order, got.Hours(), w.Alloc(young).Hours())
		}
		w.Run(21 * hour)
		if a, b := w.Alloc(old)-had, w.Alloc(young); a < cluster.GPUTime(5*hour) || b < cluster.GPUTime(5*hour) {
			t.Errorf("order %q: in a day the old job got %.1f GPU-h and the young one %.1f", order, a.Hours(), b.Hours())
		}
		w.books()
	}
}

// A job is expected to need what its user's jobs of its type needed, whatever it has had: the one with the shorter past goes
// first, also beside a job that runs already. Once it has outlived them, it goes behind the other.
func TestTheShortestByItsPastGoesFirst(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a")
	w.Settings.StopAllowance, w.Settings.StopOverheadMilli = 0, 0
	submit := func(command string, runs cluster.Span) cluster.JobID {
		return w.Virtual.Submit(sim.Work{User: "u", Account: "a", Partition: "gpu", Command: command, Request: simtest.Gang(1), Runs: runs, Saves: sim.AtEnd})
	}
	for range 5 {
		submit("long.sh", 8*hour)
		submit("short.sh", hour)
	}
	w.Run(50 * hour)
	if n := len(w.Last.State.Leases); n != 0 {
		t.Fatalf("%d jobs of the past still run", n)
	}
	long := submit("long.sh", 8*hour)
	w.Run(minute)
	short := submit("short.sh", 20*hour)
	w.Run(65 * minute)
	if a, b := w.Alloc(short), w.Alloc(long); a < cluster.GPUTime(50*minute) || b > cluster.GPUTime(16*minute) {
		t.Errorf("in 66 minutes the job of a short type got %.2f GPU-h, that of a long one %.2f", a.Hours(), b.Hours())
	}
	w.Run(9 * hour)
	if a, b := w.Alloc(short), w.Alloc(long); a > b {
		t.Errorf("in 10 h the job that outlived its type got %.2f GPU-h, the one of a long type %.2f", a.Hours(), b.Hours())
	}
	w.books()
}

// No job starves behind short ones that never stop coming: it falls behind by the patience of the settings, and then gets
// what it is due.
func TestNobodyStarvesBehindShortJobs(t *testing.T) {
	for _, patience := range []cluster.Span{0, 4 * hour} {
		w := newWorld(t, simtest.Product(), []int{2}, "a")
		w.Settings.Patience = patience
		w.Settings.StopAllowance, w.Settings.StopOverheadMilli = 0, 0
		old := w.submit("a", 1, forever, nil)
		w.Run(2 * hour)
		for range 4 * 48 {
			w.Submit("a", 1, 1, 30*minute) // all that two GPUs do
			w.Run(15 * minute)
		}
		got := w.Alloc(old)
		if (got < cluster.GPUTime(8*hour)) != (patience == 0) {
			t.Errorf("with a patience of %s the long job got %.2f GPU-h in 50 h", patience, got.Hours())
		}
		w.books()
	}
}
