package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func TestFIFOServesInTheOrderOfArrival(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "fifo", baseline.Options{}), simtest.V100s(1, 4), "a", "b")
	first := w.Queue("a", 3, hour, nil)
	second := w.Queue("b", 2, hour, nil)
	third := w.Queue("a", 1, hour, nil) // would fit beside the first
	w.Run(minute)
	w.WantRunning("the head of the queue blocks", map[cluster.JobID]bool{first: true, second: false, third: false})
	w.Run(hour)
	w.WantRunning("then both", map[cluster.JobID]bool{second: true, third: true})
	w.Run(10 * hour)
	if got := w.Started(second); got < hour || got > hour+20*cluster.Second {
		t.Errorf("the second started after %s, want when the first ended", got)
	}
}

// A job that waits for one model does not block jobs for another.
func TestFIFOBlocksOnlyItsModel(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "fifo", baseline.Options{}), append(simtest.V100s(1, 4), simtest.Nodes("o", "k80", 1, 4)...), "a")
	v100 := func(w *sim.Work) { w.Request.Model = "v100" }
	first := w.Queue("a", 4, hour, v100)
	second := w.Queue("a", 4, hour, v100)
	either := w.Queue("a", 4, hour, nil)
	w.Run(minute)
	w.WantRunning("two models", map[cluster.JobID]bool{first: true, second: false, either: true})
}

// With Options.Mixed a gang takes idle GPUs of both models, and runs at the pace of the slower
// one; without it, it waits.
func TestMixedGangsSpanModels(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		w := simtest.Compare(t, simtest.Baseline(t, "fifo", baseline.Options{Mixed: mixed}), append(simtest.V100s(1, 4), simtest.Nodes("o", "k80", 1, 4)...), "a")
		w.Mixed = mixed
		w.Speeds = sim.Speeds{{Kind: "dnn"}: {"k80": {Speed: sim.Reference / 4}}}
		typed := map[cluster.JobID]bool{}
		for _, model := range []string{"v100", "k80"} {
			typed[w.Queue("a", 2, simtest.Forever, func(w *sim.Work) { w.Request.Model = model })] = true
		}
		gang := w.Queue("a", 4, hour, func(w *sim.Work) { simtest.Anywhere(4)(w); w.Kind = "dnn" })
		w.Run(minute)
		w.WantRunning("jobs that name their model", typed)
		w.WantRunning("a gang over two models", map[cluster.JobID]bool{gang: mixed})
		w.Run(2 * hour)
		if got := w.Progress(gang); mixed && (got < 29*minute || got > 31*minute) {
			t.Errorf("after two hours the gang has done %s of its work, want a quarter of that", got)
		}
	}
}
