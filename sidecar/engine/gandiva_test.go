package engine_test

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Gandiva_fair §3.1, Table 2, by the preset: on a server of four GPUs three users with the same tickets have two jobs each, of one, two and four GPUs.
// "Gang-Aware Stride (6 intervals)": their jobs run for 66.7, 33.3 and 16.7 % of the time, with "a service delay of at most 1-time quantum". By the paper's chooser no
// user waits for its next turn for longer than there (none in one quantum of two, and in two of three with gangs of all GPUs), by the default one for
// twice as long at most. Which of its jobs has a user's turn is up to jobs.order, so a single job may wait for longer.
func TestGandivaFairTable2(t *testing.T) {
	for _, c := range []struct {
		by   string
		most map[int]int
	}{{cluster.ByStride, map[int]int{1: 1, 2: 1, 4: 2}}, {cluster.Nearest, map[int]int{1: 2, 2: 2, 4: 4}}} {
		w := simtest.New(t, simtest.Product(), simtest.Nodes("n", "v100", 1, 4), "x", "y", "z")
		divides(w, "gandiva-fair")
		w.Settings.Mechanism = c.by
		ids, size := []cluster.JobID{}, map[cluster.JobID]int{}
		for k, tenant := range []string{"x", "y", "z"} {
			for range 2 {
				gpus := 1 << k
				id := w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(gpus), Runs: 10_000 * cluster.Hour})
				ids, size[id] = append(ids, id), gpus
			}
		}
		w.Run(6 * w.Settings.Term)
		const quanta = 120
		began, before, last := w.Now(), map[cluster.JobID]cluster.Span{}, map[cluster.JobID]cluster.Span{}
		for _, id := range ids {
			before[id], last[id] = w.Progress(id), w.Progress(id)
		}
		idle, longest, ran := map[int]int{}, map[int]int{}, map[int]float64{} // by GPUs of a user's jobs; in terms
		for range quanta {
			w.Run(w.Settings.Term)
			went := map[int]bool{}
			for _, id := range ids {
				went[size[id]] = went[size[id]] || w.Progress(id)-last[id] > w.Settings.Term/2
				last[id] = w.Progress(id)
			}
			for gpus := range went {
				if idle[gpus]++; went[gpus] {
					idle[gpus] = 0
				}
				longest[gpus] = max(longest[gpus], idle[gpus])
			}
		}
		for _, id := range ids {
			ran[size[id]] += 100 * float64(last[id]-before[id]) / float64(2*w.Now().Sub(began))
		}
		t.Logf("%s: jobs of 1, 2 and 4 GPUs run for %.1f, %.1f and %.1f %% of the time; their users have none for at most %d, %d and %d terms",
			c.by, ran[1], ran[2], ran[4], longest[1], longest[2], longest[4])
		for gpus, want := range map[int]float64{1: 66.7, 2: 33.3, 4: 16.7} {
			if math.Abs(ran[gpus]-want) > 1 {
				t.Errorf("%s: jobs of %d GPUs run for %.1f %% of the time, want %.1f", c.by, gpus, ran[gpus], want)
			}
			if longest[gpus] > c.most[gpus] {
				t.Errorf("%s: the user with jobs of %d GPUs has none for %d terms, want at most %d", c.by, gpus, longest[gpus], c.most[gpus])
			}
		}
	}
}
