package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job that has received five GPU-hours yields, at the end of its lease, to one that has not;
// more GPUs reach that limit sooner.
func TestTiresiasDemotesByServiceInTwoDimensions(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "tiresias-l", baseline.Options{}), simtest.V100s(1, 4), "a", "b")
	wide := w.Queue("a", 3, simtest.Forever, nil)
	thin := w.Queue("a", 1, simtest.Forever, nil)
	w.Run(2 * hour) // six GPU-hours and two
	fresh := w.Queue("b", 3, 2*hour, nil)
	one := w.Queue("b", 1, hour, nil)
	w.Run(term + 2*minute)
	w.WantRunning("the wide one is in the second queue", map[cluster.JobID]bool{wide: false, thin: true, fresh: true, one: false})
	w.Run(4 * hour)
	w.WantRunning("when all are in the second queue, or done, they are served as they came",
		map[cluster.JobID]bool{wide: true, thin: true})
}

// In the first queue no job is preempted for later ones, whatever it has received.
func TestTiresiasServesAQueueInOrder(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "tiresias-l", baseline.Options{}), simtest.V100s(1, 1), "a")
	first := w.Queue("a", 1, 4*hour, nil)
	second := w.Queue("a", 1, hour, nil)
	w.Run(3*hour + 59*minute)
	w.WantRunning("first come, first served", map[cluster.JobID]bool{first: true, second: false})
}

// A lease that is not renewed has a notice, so that a job that saves then loses nothing.
func TestPreemptionIsAnnounced(t *testing.T) {
	for _, grid := range []bool{false, true} {
		w := simtest.Compare(t, simtest.Baseline(t, "tiresias-l", baseline.Options{Grid: grid}), simtest.V100s(1, 1), "a", "b")
		w.Costs = sim.DefaultCosts()
		var lost, worked cluster.Span
		w.Watch = func(e sim.Event) { lost, worked = lost+e.Lost, worked+e.Worked }
		w.Queue("a", 1, 6*hour, func(w *sim.Work) { w.Saves = sim.AtEnd })
		w.Run(5*hour + 3*minute)
		w.Queue("b", 1, hour, nil)
		w.Run(10 * hour)
		if lost != 0 || worked != 7*hour {
			t.Errorf("grid %v: %s of work was done and %s lost, want seven hours and nothing", grid, worked, lost)
		}
	}
}

// Leases end a term after they began, or together.
func TestGrid(t *testing.T) {
	for grid, want := range map[bool]cluster.Instant{true: simtest.Start.Add(term), false: simtest.Start.Add(term + 5*minute)} {
		w := simtest.Compare(t, simtest.Baseline(t, "tiresias-l", baseline.Options{Grid: grid}), simtest.V100s(1, 1), "a")
		w.Run(5 * minute)
		w.Queue("a", 1, hour, nil)
		w.Run(minute)
		if got := w.Last.State.Leases[0].End; got != want {
			t.Errorf("grid %v: the lease ends at %s, want %s", grid, got, want)
		}
	}
}
