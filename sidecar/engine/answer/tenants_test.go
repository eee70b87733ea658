package answer

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// job is the bid of one job with a gang.
func job(tenant, user string, n, gang int, speeds ...float64) cluster.Bid {
	return cluster.Bid{Party: fmt.Sprintf("%s/%010d", tenant, n), Tenant: tenant, User: user, Job: cluster.JobKey(n), Weight: 1, Milli: 1000, Gang: gang, Demand: gang, Speeds: speeds}
}

// The rest of a job that is at its demand stays with its user, then with its tenant: small jobs cost a tenant nothing.
func TestSmallJobsCostNothing(t *testing.T) {
	for name, ways := range map[string]policy.Ways{"las": {}, "las-blind": {Blind: true}, "las-fifo": {FIFO: true}} {
		for _, c := range []struct {
			jobs []cluster.Bid
			want map[string]float64 // by tenant, or by tenant and user
		}{
			{[]cluster.Bid{job("a", "", 1, 4, 1), job("a", "", 2, 4, 1), job("a", "", 3, 1, 1), job("a", "", 4, 1, 1), job("b", "", 5, 16, 1)},
				map[string]float64{"a": 8, "b": 8}},
			{[]cluster.Bid{job("a", "x", 1, 1, 1), job("a", "x", 2, 8, 1), job("a", "y", 3, 8, 1), job("b", "z", 4, 16, 1)},
				map[string]float64{"a": 8, "a x": 4, "a y": 4, "b": 8}},
			{[]cluster.Bid{job("a", "x", 1, 1, 1), job("a", "y", 3, 8, 1), job("b", "z", 4, 16, 1)},
				map[string]float64{"a": 8, "a x": 1, "a y": 7, "b": 8}},
			{[]cluster.Bid{job("a", "x", 1, 1, 1), job("a", "y", 3, 2, 1), job("b", "z", 4, 16, 1)},
				map[string]float64{"a": 3, "b": 13}},
		} {
			q := cluster.AllocationRequest{Policy: name, Pools: []cluster.GPUs{{Model: "v100", Count: 16}}, Bids: c.jobs}
			d := Divide(q, ByTenants(ways))
			got := map[string]float64{}
			for i := range d.Parts {
				gpus := float64(d.Parts[i].GPUs[0]) / float64(cluster.WholeGPU)
				got[q.Bids[i].Tenant] += gpus
				got[q.Bids[i].Tenant+" "+q.Bids[i].User] += gpus
			}
			for who, want := range c.want {
				if g := got[who]; g < want-1e-4 || g > want+1e-4 || d.Why != "" {
					t.Errorf("%s: %s has %.4f, want %v (%s)", name, who, g, want, d.Why)
				}
			}
		}
	}
}

// A tenant whose few jobs could use the fast GPUs alone leaves the others the part of them that is theirs.
func TestAFewJobsTakeNoShare(t *testing.T) {
	var jobs []cluster.Bid
	for n := range 22 {
		if n < 6 {
			jobs = append(jobs, job("a", "", n+1, 1, 1, 1.1))
		} else {
			jobs = append(jobs, job("b", "", n+1, 1, 1, 10))
		}
	}
	q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "k80", Count: 8}, {Model: "v100", Count: 8}}, Bids: jobs}
	d := Divide(q, ByTenants(policy.Ways{}))
	worth := map[string]float64{}
	for i := range d.Parts {
		for p, gpus := range d.Parts[i].GPUs {
			worth[q.Bids[i].Tenant] += q.Bids[i].Speeds[p] * float64(gpus) / float64(cluster.WholeGPU)
		}
	}
	// The half of all is 4 of each: 4·1.1 + 2 for the six jobs of a, 4·10 + 4 for b.
	if worth["a"] < 6.4-1e-4 || worth["b"] < 44-1e-4 {
		t.Errorf("a has %.3f and b %.3f; their halves are worth 6.4 and 44", worth["a"], worth["b"])
	}
}
