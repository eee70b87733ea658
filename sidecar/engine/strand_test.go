package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A tenant whose jobs take the CPUs or the memory of a node, and leave its GPUs idle, does not get the GPUs of others
// for that: they keep what they are due.
func TestStrandedGPUsAreCharged(t *testing.T) {
	nodes := simtest.Nodes("n", "v100", 2, 4)
	all := nodes[0]
	for name, strands := range map[string]cluster.Holding{
		"memory without GPUs": {CPUs: 1, MemoryMB: all.MemoryMB},
		"CPUs without GPUs":   {CPUs: all.CPUs, MemoryMB: 1},
		"memory with a GPU":   {Model: "v100", Size: cluster.Whole(1), CPUs: 1, MemoryMB: all.MemoryMB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := simtest.Product()
			set.Threshold = second // small differences decide
			w := newWorldOn(t, set, nodes, "a", "b")
			strands.Node = "n02"
			// The virtual Slurm places GPUs only.
			held := cluster.Job{ID: cluster.JobID{ID: 1000}, Record: 1000, User: "a_user", Account: "a", Partitions: []string{"gpu"}, State: cluster.Running,
				Batch: true, Request: cluster.Request{Size: strands.Size, Nodes: 1, PerNode: strands.Size.Devices}, Holds: []cluster.Holding{strands},
				Submit: simtest.Start, Eligible: simtest.Start, Start: simtest.Start}
			w.alter = func(o *cluster.Observation) { o.Jobs = append(o.Jobs, held) }
			w.Run(minute)
			victim := w.submit("b", 4, forever, nil)
			w.Run(minute)
			w.state(victim, cluster.Running)
			w.Submit("a", 60, 1, 20*minute)
			w.Run(3 * hour)
			bound := w.boundAs(held.ID)
			if without := strands.Size.Devices == 0; (bound != nil && bound.Way == cluster.WayNoGPUs) != without || without && (bound.GPUs != cluster.CountOf(4) || bound.Pool != "v100" || bound.Since != simtest.Start) {
				t.Errorf("the idle GPUs are bound as %+v", bound)
			}
			if stops := w.done(cluster.Reclaim, victim); len(stops) > 0 {
				t.Errorf("b was stopped %d times on the GPUs that it is due: %s", len(stops), fmt.Sprint(w.Standing("a", "v100"), w.Standing("b", "v100")))
			}
		})
	}
}
