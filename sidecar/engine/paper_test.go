package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// ASTRAEA §4.1, Fig. 6c: "the scheduler should give one round for Job1 and two
// rounds for Job2 and Job3. Then equal resources are allocated to each running
// job in any half hour." Six GPUs, one 6-GPU job, two 3-GPU jobs, 10-minute rounds.
func TestFigure6c(t *testing.T) {
	w := simtest.New(t, simtest.Paper(10*cluster.Minute), simtest.Nodes("n", "v100", 1, 6), "solo")
	w.Completing = 0
	job1 := w.Submit("solo", 1, 6, 10*cluster.Hour)[0]
	pair := w.Submit("solo", 2, 3, 10*cluster.Hour)
	jobs := append([]cluster.JobID{job1}, pair...)
	w.Run(30 * cluster.Minute) // until all three have had their first lease
	for half := range 10 {
		var before [3]cluster.GPUTime
		for k, id := range jobs {
			before[k] = w.Alloc(id)
		}
		w.Run(30 * cluster.Minute)
		for k, id := range jobs {
			if got := w.Alloc(id) - before[k]; got != cluster.Times(2, 30*cluster.Minute) {
				t.Errorf("half hour %d: job %s got %.3f GPU-hours, want 1", half, id, got.Hours())
			}
		}
	}
}
