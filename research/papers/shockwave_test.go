package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Equal jobs with equal budgets get equal parts of the window, whether by one GPU each or by gangs.
func TestShockwaveSharesOverTime(t *testing.T) {
	for _, gpus := range []int{1, 4} {
		w := simtest.Compare(t, simtest.Baseline(t, "shockwave", baseline.Options{}), simtest.V100s(1, gpus), "a")
		ids := w.Submit("a", 3, gpus, 10*hour)
		had := map[cluster.JobID]int{}
		for _, run := range rounds(w, 24, ids...) {
			for i, id := range ids {
				had[id] += run >> i & 1
			}
		}
		for _, id := range ids {
			if had[id] < 7 || had[id] > 9 {
				t.Errorf("of 24 rounds three jobs of %d GPUs had %v", gpus, had)
				break
			}
		}
	}
}

// A job that has waited for long is expected to end unfairly late, and goes before new ones of the same length (§6).
func TestShockwavePutsUnfairJobsFirst(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "shockwave", baseline.Options{}), simtest.V100s(1, 2), "a")
	w.Queue("a", 2, 10*minute, nil)
	w.Run(hour) // so that jobs are expected to take 10 minutes
	w.Queue("a", 1, 10*hour, nil)
	w.Queue("a", 1, 10*hour, nil)
	w.Run(minute)
	late := w.Queue("a", 2, 10*minute, nil)
	w.Run(10 * minute)
	early := w.Queue("a", 2, 10*minute, nil)
	w.Run(term - 9*minute)
	w.WantRunning("when the leases have ended", map[cluster.JobID]bool{late: true, early: false})
}
