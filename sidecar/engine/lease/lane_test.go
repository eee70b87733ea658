package lease

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// A job on GPUs that are gathered for another gang may not bind them, with lanes or without.
func TestABarredCandidateIsDenied(t *testing.T) {
	for _, lanes := range [][]Lane{nil, {{GPUs: cluster.Micro(8)}}} {
		in := Input{Settings: &cluster.Settings{Term: cluster.Minute}, Lanes: lanes,
			Candidates: []Candidate{{Case: 7, Key: 7, Pools: []int{0}, GPUs: cluster.Micro(4), Shape: 4, Running: true, Keeping: Keeping{Binds: BindsLong, Barred: true}}},
			Tenants:    []Tenant{{Name: "a", Shares: []Share{{Entitlement: 8 * cluster.WholeGPU}}, Jobs: []int{0}}}}
		got := Choose(in, &machine{idle: 4, soft: map[int]int{7: 4}, of: map[int]int{7: 0}, line: []int{7}}, 1)
		if len(got.Renewed) != 0 || got.Passed[0].Code != cluster.ReasonLane {
			t.Errorf("with lanes %v: renewed %v, and passed for %q", lanes, got.Renewed, got.Passed[0].Code)
		}
	}
}
