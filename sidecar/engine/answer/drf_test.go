package answer_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
)

// bid is of a tenant's jobs that want so many GPUs and run on the models whose speed is above 0.
func bid(tenant, party string, weight int64, demand int, speeds ...float64) cluster.Bid {
	return cluster.Bid{Tenant: tenant, Party: party, Weight: weight, Demand: demand, Speeds: speeds, Gang: 1}
}

// The example of §4.1 and Figure 3, with two models for CPUs and memory: of 9 and 18, A wants 1 and 4 a task, B 3 and 1. "User A
// gets 3 CPU, 12 GB; user B gets 6 CPU, 2 GB": both have two thirds of their dominant resource.
func TestDominantSharesOfThePaper(t *testing.T) {
	q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "cpu", Count: 9}, {Model: "memory", Count: 18}}, Bids: []cluster.Bid{
		bid("A", "A/cpu", 1, 10, 1, 0), bid("A", "A/memory", 1, 40, 0, 1),
		bid("B", "B/cpu", 1, 30, 1, 0), bid("B", "B/memory", 1, 10, 0, 1),
	}}
	d := answer.Divide(q, answer.ByDominantShare)
	for i, want := range [][]float64{{3, 0}, {0, 12}, {6, 0}, {0, 2}} {
		for p := range want {
			if got := float64(d.Parts[i].GPUs[p]) / float64(cluster.WholeGPU); got < want[p]-1e-5 || got > want[p]+1e-5 {
				t.Errorf("%s has %v GPUs of %s, want %v", d.Parts[i].Party, got, q.Pools[p].Model, want[p])
			}
		}
	}
	if d.Why != "" || d.Objective < 0.6666 || d.Objective > 0.6667 {
		t.Errorf("the least dominant share is %v (%s), want 2/3", d.Objective, d.Why)
	}
}

// A tenant with twice the weight has twice the dominant share.
func TestDominantSharesGoByWeight(t *testing.T) {
	q := cluster.AllocationRequest{Pools: []cluster.GPUs{{Model: "a100", Count: 12}}, Bids: []cluster.Bid{bid("a", "a", 2, 20, 1), bid("b", "b", 1, 20, 1)}}
	d := answer.Divide(q, answer.ByDominantShare)
	if a, b := d.Parts[0].GPUs[0], d.Parts[1].GPUs[0]; a != 8*cluster.WholeGPU || b != 4*cluster.WholeGPU {
		t.Errorf("they have %d and %d, want 8 and 4 GPUs", a, b)
	}
}

// No tenant exceeds its demand or the GPUs, none has less of its dominant model than its weighted
// share (sharing incentive, §3), and a tenant with unmet demand lacks an exhausted model.
func TestDominantSharesAreFair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := cluster.AllocationRequest{}
		n := rapid.IntRange(1, 4).Draw(rt, "models")
		for p := range n {
			q.Pools = append(q.Pools, cluster.GPUs{Model: fmt.Sprint("m", p), Count: rapid.IntRange(1, 32).Draw(rt, "gpus")})
		}
		weights := 0.0
		for i := range rapid.IntRange(1, 6).Draw(rt, "tenants") {
			weight := rapid.Int64Range(1, 4).Draw(rt, "weight")
			weights += float64(weight)
			for k := range rapid.IntRange(1, 3).Draw(rt, "types") {
				speeds := make([]float64, n)
				for p := range speeds {
					speeds[p] = float64(rapid.IntRange(0, 2).Draw(rt, "speed"))
				}
				speeds[rapid.IntRange(0, n-1).Draw(rt, "runs on")] = 1
				q.Bids = append(q.Bids, bid(fmt.Sprint("t", i), fmt.Sprintf("t%d/%d", i, k), weight, rapid.IntRange(1, 64).Draw(rt, "demand"), speeds...))
			}
		}
		d := answer.Divide(q, answer.ByDominantShare)
		used, has, wants, weight := make([]float64, n), map[string][]float64{}, map[string]float64{}, map[string]float64{}
		for i, part := range d.Parts {
			b := &q.Bids[i]
			if has[b.Tenant] == nil {
				has[b.Tenant] = make([]float64, n)
			}
			weight[b.Tenant] = float64(b.Weight)
			wants[b.Tenant] += float64(b.Demand)
			for p, gpus := range part.GPUs {
				g := float64(gpus) / float64(cluster.WholeGPU)
				if g > 0 && b.Speeds[p] == 0 {
					rt.Fatalf("%s has GPUs on which it does not run", part.Party)
				}
				used[p], has[b.Tenant][p] = used[p]+g, has[b.Tenant][p]+g
			}
		}
		const near = 1e-4
		for tenant, gpus := range has {
			sum, share, scarce := 0.0, 0.0, false
			for p, g := range gpus {
				sum, share = sum+g, max(share, g/float64(q.Pools[p].Count))
				scarce = scarce || g > 0 && used[p] >= float64(q.Pools[p].Count)-near
			}
			if sum > wants[tenant]+near {
				rt.Fatalf("%s has %v GPUs, more than the %v that it wants", tenant, sum, wants[tenant])
			}
			if sum < wants[tenant]-near && (!scarce || share < weight[tenant]/weights-near) {
				rt.Fatalf("%s has %v of %v GPUs and a dominant share of %v, though its weight is %v of %v", tenant, sum, wants[tenant], share, weight[tenant], weights)
			}
		}
		for p := range used {
			if used[p] > float64(q.Pools[p].Count)+near {
				rt.Fatalf("%v GPUs of %s are due, of %d", used[p], q.Pools[p].Model, q.Pools[p].Count)
			}
		}
	})
}
