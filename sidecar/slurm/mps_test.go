package slurm

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A GPU that jobs use by MPS counts once: for the oldest of them. A job on several nodes has a GPU on each.
func TestGPUsInUseByMPSCountOnce(t *testing.T) {
	nodes := map[string]cluster.Node{"v1": {Name: "v1", GPUs: []cluster.GPUs{{Model: "v100", Count: 2}}}, "v2": {Name: "v2", GPUs: []cluster.GPUs{{Model: "v100", Count: 2}}}}
	tr := translator{nodes: nodes}
	s := &seen{records: map[int64]*record{}, gpuNodes: nodes}
	for _, w := range []wireJob{
		{id: 9, user: "bob", nodes: "v1", detail: []string{"mps:20(0/100,20/100)"}, perNode: "gres/mps:20"},
		{id: 7, user: "alice", nodes: "v1", detail: []string{"mps:50(0/100,50/100)"}, perNode: "gres/mps:50"},
		{id: 8, user: "alice", nodes: "v[1-2]", detail: []string{"mps:10(0/100,10/100)", "mps:10(10/100,0/100)"}, perNode: "gres/mps:10", nodeCount: 2, maxNodes: 2},
	} {
		w.states = []string{"RUNNING"}
		rec, err := tr.record(&w, nil)
		if err != nil || len(rec.jobs) != 1 {
			t.Fatalf("job %d: %+v, %v", w.id, rec, err)
		}
		s.records[w.id] = rec
	}
	want := map[string][]string{"7": {"v1 1"}, "8": {"v2 0"}, "9": nil}
	for _, j := range s.assemble(0) {
		var got []string
		for _, h := range j.Holds {
			for _, index := range h.Index {
				got = append(got, h.Node+" "+string(rune('0'+index)))
			}
		}
		if !slices.Equal(got, want[j.ID.String()]) || j.GPUsHeld() != len(got) {
			t.Errorf("job %s counts for %v, %d GPUs, want %v", j.ID, got, j.GPUsHeld(), want[j.ID.String()])
		}
	}
}
