package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A job that has run for less than the exempt time is not preempted, and jobs of lower priority make room for exactly those that need it.
func TestPreemptExemptTime(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "slurm-preempt", baseline.Options{}), simtest.V100s(2, 4), "a", "b")
	var old []cluster.JobID
	for range 4 {
		old = append(old, w.Queue("a", 1, simtest.Forever, nil))
	}
	w.Run(10 * minute)
	young := w.Queue("a", 4, simtest.Forever, nil)
	w.Run(minute)
	w.WantRunning("all GPUs are its", map[cluster.JobID]bool{old[0]: true, old[3]: true, young: true})
	own := w.Queue("b", 2, simtest.Forever, nil)
	w.Run(2 * minute)
	w.WantRunning("no job has run for the exempt time", map[cluster.JobID]bool{own: false, young: true})
	w.Run(4 * minute)
	w.WantRunning("those that have make room", map[cluster.JobID]bool{own: true, young: true})
	left := 0
	for _, id := range old {
		if w.Job(id).State == cluster.Running {
			left++
		}
	}
	if left != 2 {
		t.Errorf("%d of the four jobs that could be preempted still run, want two", left)
	}
}

// Jobs that save nothing and need longer than the swings never end: GPU time is even, and all work is lost. A real slurmctld with a
// fifteenth of all times did the same (60 jobs of 150 s each, an exempt time of 1 min): 144 preemptions in waves of 16, and 3,921 to 4,089 GPU-s.
func TestPreemptSwings(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "slurm-preempt", baseline.Options{}), simtest.V100s(2, 8), "a", "b")
	ids := map[string][]cluster.JobID{}
	for _, tenant := range []string{"a", "b"} {
		for range 60 {
			ids[tenant] = append(ids[tenant], w.Queue(tenant, 1, 37*minute+30*second, func(x *sim.Work) { x.Saves = sim.Never }))
		}
		w.Run(15 * minute)
	}
	w.Run(110 * minute)
	got, preempted := map[string]float64{}, 0
	for tenant, list := range ids {
		for _, id := range list {
			got[tenant] += w.Alloc(id).Hours()
			preempted += w.Job(id).Restarts
			if w.Job(id).State == cluster.Done {
				t.Errorf("job %s has ended", id)
			}
		}
	}
	if since := got["a"] - 4; since < 0.75*got["b"] || since > 1.25*got["b"] {
		t.Errorf("since b came, a got %.1f GPU-h and b %.1f", since, got["b"])
	}
	if preempted < 80 {
		t.Errorf("%d preemptions, want waves of 16", preempted)
	}
}
