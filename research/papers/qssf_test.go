package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Jobs are predicted by what their user's jobs of that name took, else by the user's others, and nothing is preempted.
func TestQSSFPredictsFromThePast(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "qssf", baseline.Options{}), simtest.V100s(1, 4), "quick", "slow")
	name := func(name string) func(*sim.Work) { return func(j *sim.Work) { j.Name = name } }
	w.Queue("slow", 1, 3*hour, name("train"))
	w.Queue("slow", 1, 10*minute, name("eval"))
	w.Queue("quick", 1, 20*minute, name("train"))
	w.Run(4 * hour) // until all have ended
	blocks := w.Queue("slow", 4, hour, name("train"))
	w.Run(minute)
	train := w.Queue("slow", 1, hour, name("train"))
	other := w.Queue("slow", 1, hour, name("other"))
	quick := w.Queue("quick", 1, 5*hour, name("new"))
	eval := w.Queue("slow", 1, hour, name("eval"))
	wide := w.Queue("quick", 2, hour, name("train"))
	w.Run(30 * minute)
	w.WantRunning("nothing is preempted", map[cluster.JobID]bool{blocks: true, train: false, quick: false, eval: false})
	w.Run(31 * minute)
	w.WantRunning("4 GPUs for the least predicted GPU time: 10 min, 20 min, 2 GPUs for 10 min (no job of 2 GPUs has ended)",
		map[cluster.JobID]bool{eval: true, quick: true, wide: true, train: false, other: false})
}

// The bound knows run times, and preempts for shorter jobs at the end of a lease.
func TestSRTF(t *testing.T) {
	runs := map[string]cluster.Span{}
	w := simtest.Compare(t, simtest.Baseline(t, "srtf", baseline.Options{Runs: func(j *cluster.Job) cluster.Span { return runs[j.Name] }}), simtest.V100s(1, 2), "a")
	submit := func(name string, gpus int, of cluster.Span) cluster.JobID {
		runs[name] = of
		return w.Queue("a", gpus, of, func(j *sim.Work) { j.Name = name })
	}
	long := submit("long", 2, 5*hour)
	w.Run(minute)
	short, wide := submit("short", 1, 2*hour), submit("wide", 2, 2*hour)
	w.Run(term + 2*minute)
	w.WantRunning("the least GPU time goes first when the lease ends", map[cluster.JobID]bool{long: false, short: true, wide: false})
	w.Run(2 * hour)
	w.WantRunning("then the next", map[cluster.JobID]bool{wide: true, long: false})
}
