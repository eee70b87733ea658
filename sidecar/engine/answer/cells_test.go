package answer_test

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// in returns the parts of a tenant's bids.
func in(q *cluster.AllocationRequest, d *cluster.Allocation, tenant string) (out []cluster.Part) {
	for i := range q.Bids {
		if q.Bids[i].Tenant == tenant {
			out = append(out, d.Parts[i])
		}
	}
	return out
}

// A virtual cluster's kinds divide its own GPUs, and then bid for the others with what is left of their demand.
func TestAVCFirstDividesItsOwnGPUs(t *testing.T) {
	q := cluster.AllocationRequest{Policy: "drf", Pools: []cluster.GPUs{{Model: "v100", Count: 16}},
		Cells: []cluster.CellGPUs{{Tenant: "a", GPUs: []int{8}}},
		Bids:  []cluster.Bid{bid("a", "a", 1, 10, 1), bid("b", "b", 3, 16, 1), bid("c", "c", 1, 16, 1)}}
	d := preset.Divide(q)
	if d.Why != "" {
		t.Fatal(d.Why)
	}
	// a has 8 of its own, and 2 of its demand compete for the 8 others: it is due a fifth of them.
	for i, want := range []float64{9.6, 4.8, 1.6} {
		if got := float64(d.Parts[i].GPUs[0]) / float64(cluster.WholeGPU); got < want-1e-4 || got > want+1e-4 {
			t.Errorf("%s has %v GPUs, want %v", d.Parts[i].Party, got, want)
		}
	}
}

// GPUs that a virtual cluster leaves idle are divided with the others.
func TestIdleCellsAreDivided(t *testing.T) {
	q := cluster.AllocationRequest{Policy: "drf", Pools: []cluster.GPUs{{Model: "v100", Count: 16}},
		Cells: []cluster.CellGPUs{{Tenant: "a", GPUs: []int{8}}}, Bids: []cluster.Bid{bid("a", "a", 1, 2, 1), bid("b", "b", 1, 16, 1)}}
	d := preset.Divide(q)
	if a, b := d.Parts[0].GPUs[0], d.Parts[1].GPUs[0]; a != 2*cluster.WholeGPU || b != 14*cluster.WholeGPU {
		t.Errorf("a has %d and b %d, want 2 and 14 GPUs", a, b)
	}
}

// No row couples virtual clusters: of its own GPUs a tenant has the same, at least, whatever others ask for, and
// together all have no more than there is.
func TestVCsAreProblemsOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		by := rapid.SampledFrom(preset.Dividing()).Draw(rt, "preset")
		q := cluster.AllocationRequest{Policy: by, At: 1}
		n := rapid.IntRange(1, 3).Draw(rt, "models")
		own := make([]int, n)
		for p := range n {
			own[p] = rapid.IntRange(0, 16).Draw(rt, "own")
			q.Pools = append(q.Pools, cluster.GPUs{Model: fmt.Sprint("m", p), Count: own[p] + rapid.IntRange(0, 16).Draw(rt, "others")})
		}
		own[0]++
		q.Pools[0].Count++
		q.Cells = []cluster.CellGPUs{{Tenant: "a", GPUs: own}}
		key := cluster.JobKey(0)
		for _, tenant := range []string{"a", "b", "c"} {
			for k := range rapid.IntRange(1, 3).Draw(rt, "parties") {
				speeds := make([]float64, n)
				for p := range speeds {
					speeds[p] = float64(rapid.IntRange(0, 3).Draw(rt, "speed"))
				}
				speeds[rapid.IntRange(0, n-1).Draw(rt, "runs on")] = 1
				key++
				b := bid(tenant, fmt.Sprintf("%s/%d", tenant, k), rapid.Int64Range(0, 3).Draw(rt, "weight"), rapid.IntRange(1, 16).Draw(rt, "demand"), speeds...)
				if k > 0 {
					b.Weight = q.Bids[len(q.Bids)-1].Weight
				}
				b.Gang, b.Milli, b.Job, b.Steps, b.Margins = b.Demand, 1000, key, 1000, make([]float64, n)
				q.Bids = append(q.Bids, b)
			}
		}
		d := preset.Divide(q)
		used := make([]cluster.MicroGPU, n)
		for i := range d.Parts {
			sum := cluster.MicroGPU(0)
			for p, gpus := range d.Parts[i].GPUs {
				if gpus < 0 || gpus > 10 && q.Bids[i].Speeds[p] == 0 {
					rt.Fatalf("%s is due %d of %s", d.Parts[i].Party, gpus, q.Pools[p].Model)
				}
				used[p], sum = used[p]+gpus, sum+gpus
			}
			if sum > cluster.MicroGPU(q.Bids[i].Demand)*cluster.WholeGPU+100 {
				rt.Fatalf("%s is due %d, and asks for %d GPUs", d.Parts[i].Party, sum, q.Bids[i].Demand)
			}
		}
		for p := range used {
			if used[p] > cluster.MicroGPU(q.Pools[p].Count)*cluster.WholeGPU+100 {
				rt.Fatalf("%d of %d %s are due", used[p], q.Pools[p].Count, q.Pools[p].Model)
			}
		}
		alone := q
		alone.Cells, alone.Pools, alone.Bids = nil, nil, nil
		for p := range n {
			alone.Pools = append(alone.Pools, cluster.GPUs{Model: q.Pools[p].Model, Count: own[p]})
		}
		for i := range q.Bids {
			if q.Bids[i].Tenant == "a" {
				alone.Bids = append(alone.Bids, q.Bids[i])
			}
		}
		private := preset.Divide(alone)
		for i, part := range in(&q, &d, "a") {
			for p := range part.GPUs {
				if part.GPUs[p] < private.Parts[i].GPUs[p]-10 {
					rt.Fatalf("%s is due %d of %s, and %d in its private cluster", part.Party, part.GPUs[p], q.Pools[p].Model, private.Parts[i].GPUs[p])
				}
			}
		}
	})
}

// A request without cells is answered as before.
func TestNoCellsChangeNothing(t *testing.T) {
	q := cluster.AllocationRequest{Policy: "drf", Pools: []cluster.GPUs{{Model: "v100", Count: 16}},
		Bids: []cluster.Bid{bid("a", "a", 1, 10, 1), bid("b", "b", 3, 16, 1)}}
	with := q
	with.Cells = []cluster.CellGPUs{{Tenant: "nobody", GPUs: []int{0}}}
	if a, b := preset.Divide(q), answer.Divide(with, preset.PolicyOf("drf")); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, with a virtual cluster of nothing %+v", a, b)
	}
}
