package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// One event stands for the same remark about many jobs of an array in one look; remarks of one job stay apart.
func TestRemarksOfAnArray(t *testing.T) {
	list := []gpu.Remark{{Kind: gpu.HoldsIdle, Job: 1, ID: cluster.JobID{ID: 5}, Text: "no array"}}
	for i := range 1000 {
		list = append(list, gpu.Remark{Kind: gpu.HoldsIdle, Job: cluster.JobKey(10 + i), ID: cluster.TaskID(7, int32(i)), Text: "idle"},
			gpu.Remark{Kind: "slow", Job: cluster.JobKey(10 + i), ID: cluster.TaskID(7, int32(i)), Text: "slow"})
	}
	list = append(list, gpu.Remark{Kind: gpu.HoldsIdle, Job: 10, ID: cluster.TaskID(7, 0), Node: "n2", Text: "on another node"})
	var got []string
	for _, r := range remarkRows(list) {
		got = append(got, r.Text)
	}
	if d := cmp.Diff([]string{"no array", "idle (and 999 more of its array)", "slow (and 999 more of its array)", "on another node"}, got); d != "" {
		t.Error(d)
	}
}
