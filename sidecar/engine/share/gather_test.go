package share

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// A gang with gathered GPUs may find idle GPUs, or GPUs that others give up, in the same round. The journal
// would reject two claims of one job.
func TestGatheringEndsWhereThereIsAClaim(t *testing.T) {
	facts, none := &round.Facts{}, []int{-1, -1, -1}
	leases := []*cluster.Lease{nil, {Job: 2}, nil}
	facts.Open(&cluster.Snapshot{Cases: make([]cluster.Case, 3)}, &round.Opening{Records: make([]cluster.Record, 3), Keys: []cluster.JobKey{1, 2, 3},
		Rows: none, Users: none, Leases: leases})
	h := &contest{f: &field.Field{In: facts, Hand: field.Hand{Leases: leases}}}
	got := h.served([]cluster.Claim{
		{Job: 1, Pool: "a100", Gathers: true},
		{Job: 2, Pool: "a100", Gathers: true},
		{Job: 3, Pool: "a100", Gathers: true},
		{Job: 1, Pool: "h100"},
	})
	var left []cluster.JobKey
	for _, cl := range got {
		left = append(left, cl.Job)
	}
	if !slices.Equal(left, []cluster.JobKey{3, 1}) || got[1].Gathers {
		t.Errorf("claims %+v are left, want job 3's and the one of job 1 that is no gathering", got)
	}
}
