package papers_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// New jobs run in the profiler while the cluster is full: debugging jobs end there, others wait again after T_prof (§3.2).
func TestLucidsProfiler(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "lucid", baseline.Options{}), simtest.V100s(20, 4), "a")
	full := w.Submit("a", 20, 4, 10*hour)
	w.Run(10 * minute)
	running := 0
	for _, id := range full {
		if w.Job(id).State == cluster.Running {
			running++
		}
	}
	if running != 19 {
		t.Errorf("%d jobs run on the 19 nodes that are not set aside", running)
	}
	debug := w.Queue("a", 1, 2*minute, nil)
	long := w.Queue("a", 2, hour, nil)
	stays := w.Queue("a", 1, hour, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(minute)
	w.WantRunning("the profiler has 4 GPUs; a job that could not leave it waits", map[cluster.JobID]bool{debug: true, long: true, stays: false})
	w.Run(10 * minute)
	w.WantRunning("it has left the profiler, and the other is done", map[cluster.JobID]bool{long: false})
	if got := w.Ended(debug); got > 13*minute {
		t.Errorf("the debugging job ended after %s, want 12 min", got)
	}
	if got := w.Ended(long); got > 0 {
		t.Errorf("a job of an hour ended after %s", got)
	}
}

// A gang that needs the profiler's nodes gets them.
func TestLucidRunsGangsOnAllNodes(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "lucid", baseline.Options{}), simtest.V100s(20, 4), "a")
	all := w.Queue("a", 80, hour, simtest.Anywhere(80))
	w.Run(minute)
	w.WantRunning("on all 20 nodes", map[cluster.JobID]bool{all: true})
}

// The model adds what it has learnt of a user to what it has learnt of a command (§3.5), so it tells a user's first job of a
// long command from the user's usual jobs. qssf knows the user only. Nothing is preempted.
func TestLucidAddsFeatures(t *testing.T) {
	for name, want := range map[string]bool{"lucid": true, "qssf": false} {
		w := simtest.Compare(t, simtest.Baseline(t, name, baseline.Options{}), simtest.V100s(1, 8), "a", "b")
		name := func(name string) func(*sim.Work) { return func(j *sim.Work) { j.Name = name } }
		for range 5 {
			w.Queue("a", 1, 20*minute, name("eval"))
			w.Queue("b", 1, 20*minute, name("eval"))
			w.Queue("b", 1, 5*hour, name("train"))
		}
		w.Run(20 * hour)
		blocks := w.Queue("a", 8, hour, nil)
		w.Run(minute)
		train, eval := w.Queue("a", 5, hour, name("train")), w.Queue("a", 5, hour, name("eval"))
		w.Run(30 * minute)
		w.WantRunning("nothing is preempted", map[cluster.JobID]bool{blocks: true, train: false, eval: false})
		w.Run(31 * minute)
		w.WantRunning("the job that is expected to be shorter runs", map[cluster.JobID]bool{eval: want, train: !want})
	}
}
