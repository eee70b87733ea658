package papers_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// rounds gives the running jobs among some in each of n terms, as bits.
func rounds(w *simtest.Scheduled, n int, ids ...cluster.JobID) []int {
	var out []int
	for range n {
		w.Run(w.Settings.Term / 2)
		run := 0
		for i, id := range ids {
			if w.Job(id).State == cluster.Running {
				run |= 1 << i
			}
		}
		out = append(out, run)
		w.Run(w.Settings.Term / 2)
	}
	return out
}

// told gives known run times of jobs.
func told(runs map[cluster.JobID]cluster.Span) func(*cluster.Job) cluster.Span {
	return func(j *cluster.Job) cluster.Span { return runs[j.ID] }
}

// "Guided by this long-term finish-time fairness principle, these jobs will be scheduled
// alternatively until their completion" (ASTRAEA §4.1, Fig. 6b).
func TestThemisFig6(t *testing.T) {
	runs := map[cluster.JobID]cluster.Span{}
	w := simtest.Compare(t, simtest.Baseline(t, "themis", baseline.Options{Grid: true, Runs: told(runs)}), simtest.V100s(1, 6), "a")
	w.Settings.Term, w.Settings.Notice = 10*minute, 0
	var ids []cluster.JobID
	for _, gpus := range []int{6, 3, 3} {
		id := w.Queue("a", gpus, 40*minute, nil)
		ids, runs[id] = append(ids, id), 40*minute
	}
	if got, want := rounds(w, 8, ids...), []int{1, 6, 1, 6, 1, 6, 1, 6}; !slices.Equal(got, want) {
		t.Errorf("jobs that run, as bits: %b, want %b", got, want)
	}
}

// Of two jobs with equal waits the short one is worse off: an hour is a small part of a day.
func TestThemisPutsShortJobsThatWaitFirst(t *testing.T) {
	runs := map[cluster.JobID]cluster.Span{}
	w := simtest.Compare(t, simtest.Baseline(t, "themis", baseline.Options{Runs: told(runs)}), simtest.V100s(1, 1), "a", "b")
	first := w.Queue("a", 1, 2*hour, nil)
	runs[first] = 2 * hour
	w.Run(minute)
	long := w.Queue("b", 1, cluster.Day, nil)
	runs[long] = cluster.Day
	short := w.Queue("b", 1, hour, nil)
	runs[short] = hour
	w.Run(18 * minute)
	w.WantRunning("when the first lease has ended", map[cluster.JobID]bool{first: false, long: false, short: true})
}

// Without Options.Runs, the time limit gives the run time, else the past does.
func TestThemisWithoutBeingTold(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "themis", baseline.Options{}), simtest.V100s(1, 1), "a")
	w.Queue("a", 1, hour, nil)
	w.Run(2 * minute)
	long := w.Queue("a", 1, hour, func(w *sim.Work) { w.Limit = 10 * hour })
	short := w.Queue("a", 1, hour, func(w *sim.Work) { w.Limit = hour })
	w.Run(16 * minute)
	w.WantRunning("by their limits", map[cluster.JobID]bool{long: false, short: true})
}
