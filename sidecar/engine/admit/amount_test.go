package admit

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A job that takes turns on the GPU that its user asked for counts as that GPU in Slurm's limits, though Slurm counts shards only.
func TestSlicesCountAsGPUs(t *testing.T) {
	whole := cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1}
	half := cluster.SliceOf(whole, 2, cluster.WholeGPU/2)
	holds := []cluster.Holding{{Node: "n1", Model: "v100", Size: half.Size, Index: []int{0}}}
	for _, c := range []struct {
		job  cluster.Job
		want int64
	}{
		{cluster.Job{State: cluster.Waiting, Request: half}, 0},
		{cluster.Job{State: cluster.Running, Request: half, Holds: holds}, 0},
		{cluster.Job{State: cluster.Running, Request: half, Holds: holds, Ask: "gres/gpu:1"}, 1},
	} {
		if got := amount(&c.job, "gres/gpu"); got != c.want {
			t.Errorf("%+v counts as %d GPUs, want %d", c.job, got, c.want)
		}
		if got := amount(&c.job, "gres/gpu:v100"); got != c.want {
			t.Errorf("%+v counts as %d v100, want %d", c.job, got, c.want)
		}
	}
}
