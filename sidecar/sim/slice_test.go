package sim_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Jobs that run on one GPU at the same time do as much as one alone, where nothing else is known of them, two as well as three.
func TestJobsOfAGPUShareItsSpeed(t *testing.T) {
	for _, n := range []int{2, 3} {
		nodes, set := simtest.Nodes("n", "v100", 1, 1), simtest.Product()
		nodes[0].Shards = 6
		set.Slices = &cluster.Slices{Quantum: cluster.Minute, Jobs: n, Memory: []cluster.GPUMemory{{Model: "v100", Bytes: 32 << 30}}}
		w := simtest.New(t, set, nodes, "x")
		w.Gate = cluster.Hour
		var ids []cluster.JobID
		for range n {
			ids = append(ids, w.Virtual.Submit(sim.Work{Name: "train", User: "x_user", Account: "x", Partition: "gpu", Comment: "share=yes,mem.v100=9g",
				Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, CPUs: 1, MemoryMB: 1024}, Runs: cluster.Day}))
		}
		w.Run(40 * cluster.Minute)
		done := func() (sum cluster.Span) {
			for _, id := range ids {
				sum += w.Progress(id)
			}
			return sum
		}
		for _, id := range ids {
			if j := w.Job(id); cluster.SizeHeld(j.Holds).IsWhole() {
				t.Fatalf("of %d jobs, job %s is on no shared GPU: %s", n, id, j.State)
			} else if j.State == cluster.Suspended {
				w.Apply(t.Context(), []cluster.Action{{Verb: cluster.Resume, ID: id}})
			}
		}
		before := done()
		w.Advance(w.Now().Add(cluster.Minute))
		if got := done() - before; got < cluster.Minute-cluster.Second || got > cluster.Minute+cluster.Second {
			t.Errorf("%d jobs did %v of work in a minute at the same time, want a minute's", n, got)
		}
	}
}
