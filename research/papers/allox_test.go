package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// matched gives the minimum sum of completion times of one-GPU jobs on m machines, by trying
// every matching of jobs to machines and places from the end.
func matched(m int, runs []cluster.Span) cluster.Span {
	places := make([]int, m) // jobs so far on each machine, counted from the end
	var try func(left []cluster.Span) cluster.Span
	try = func(left []cluster.Span) cluster.Span {
		if len(left) == 0 {
			return 0
		}
		least := cluster.Span(-1)
		for i := range left {
			rest := append(append([]cluster.Span{}, left[:i]...), left[i+1:]...)
			for k := range places {
				places[k]++
				if cost := cluster.Span(places[k])*left[i] + try(rest); least < 0 || cost < least {
					least = cost
				}
				places[k]--
			}
		}
		return least
	}
	return try(runs)
}

// Jobs that arrive together complete as in the matching of least cost.
func TestAlloXIsTheMatchingOfLeastCost(t *testing.T) {
	length := []cluster.Span{50 * minute, 10 * minute, 40 * minute, 20 * minute, 30 * minute}
	runs := map[cluster.JobID]cluster.Span{}
	w := simtest.Compare(t, simtest.Baseline(t, "allox", baseline.Options{Runs: told(runs)}), simtest.V100s(1, 2), "a")
	w.Settings.Interval = second
	var ids []cluster.JobID
	for _, l := range length {
		id := w.Queue("a", 1, l, nil)
		ids, runs[id] = append(ids, id), l
	}
	var sum cluster.Span
	w.Run(3 * hour)
	for _, id := range ids {
		sum += w.Ended(id)
	}
	if want := matched(2, length); sum < want || sum > want+10*second {
		t.Errorf("completion times sum up to %s, the cheapest matching has %s", sum, want)
	}
}

// A gang counts with its GPU time.
func TestAlloXCountsAllMachinesOfAGang(t *testing.T) {
	runs := map[cluster.JobID]cluster.Span{}
	w := simtest.Compare(t, simtest.Baseline(t, "allox", baseline.Options{Runs: told(runs)}), simtest.V100s(1, 4), "a")
	wide := w.Queue("a", 4, 20*minute, nil)
	thin := w.Queue("a", 1, hour, nil)
	runs[wide], runs[thin] = 20*minute, hour
	w.Run(minute)
	w.WantRunning("80 GPU-minutes wait for 60", map[cluster.JobID]bool{wide: false, thin: true})
}

// The tenant with the lowest progress goes first, however long its jobs are.
func TestAlloXTenantWithTheLowestProgress(t *testing.T) {
	runs := map[cluster.JobID]cluster.Span{}
	w := simtest.Compare(t, simtest.Baseline(t, "allox", baseline.Options{Runs: told(runs)}), simtest.V100s(1, 2), "has", "has-not")
	ids := w.Submit("has", 2, 1, 4*hour)
	for _, id := range ids {
		runs[id] = 4 * hour
	}
	w.Run(5 * minute)
	long := w.Queue("has-not", 1, 10*hour, nil)
	short := w.Queue("has", 1, 30*minute, nil)
	runs[long], runs[short] = 10*hour, 30*minute
	w.Run(term)
	w.WantRunning("at the end of the leases", map[cluster.JobID]bool{long: true, short: true, ids[0]: false, ids[1]: false})
	w.Run(4 * hour)
	w.WantRunning("its progress was the lowest for hours", map[cluster.JobID]bool{long: true})
}
