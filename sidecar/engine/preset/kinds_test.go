package preset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/tests/seeds"
)

// byTypes are the presets whose programs have a row for each kind of a tenant's jobs.
func byTypes() []string {
	return slices.DeleteFunc(preset.Dividing(), func(name string) bool {
		row, _ := preset.Of(name)
		return row.Between != preset.Types || row.Solver && !lp.Available
	})
}

// crowded asks for a division between honest tenants of one kind each and one that has many kinds.
func crowded(rng *rand.Rand, honest, kinds, most int) cluster.AllocationRequest {
	q := cluster.AllocationRequest{Digest: "d", MostKinds: most,
		Pools: []cluster.GPUs{{Model: "a100", Count: 16 + rng.IntN(100)}, {Model: "k80", Count: 16 + rng.IntN(100)}, {Model: "v100", Count: 16 + rng.IntN(100)}}}
	bid := func(tenant, party string, demand int) {
		speeds := []float64{2 + 3*rng.Float64(), 1, 1 + 1.2*rng.Float64()}
		if rng.IntN(8) == 0 {
			speeds[rng.IntN(3)] = 0
		}
		q.Bids = append(q.Bids, cluster.Bid{Party: party, Tenant: tenant, Weight: 100, Milli: 1000, Gang: 1, Demand: demand, Speeds: speeds,
			Margins: []float64{1, 1, 1}, Basis: slices.Repeat([]cluster.Source{cluster.Declared}, 3)})
	}
	for i := range honest {
		bid(fmt.Sprintf("honest%03d", i), fmt.Sprintf("honest%03d/train", i), 1+rng.IntN(60))
	}
	for i := range kinds {
		bid("hostile", fmt.Sprintf("hostile/kind%05d", i), 1+rng.IntN(8))
	}
	return q
}

// worth gives the throughput of a bid's best GPUs, as many as it has a use for.
func worth(b *cluster.Bid, gpus []float64) float64 {
	order := []int{0, 1, 2}
	slices.SortStableFunc(order, func(x, y int) int {
		if b.Speeds[x] > b.Speeds[y] {
			return -1
		}
		return 1
	})
	sum, left := 0.0, float64(b.Demand)
	for _, p := range order {
		x := min(gpus[p], left)
		sum, left = sum+x*b.Speeds[p], left-x
	}
	return sum
}

// However many kinds of jobs one tenant has, every preset has an answer, and no more is given than there is. By oef:coop,
// each other tenant has what its share by weight would give it (OEF Theorem 5.1).
func TestOneTenantsKindsCannotStopTheOthers(t *testing.T) {
	for _, name := range byTypes() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				honest := rapid.IntRange(1, 6).Draw(t, "honest")
				kinds := rapid.IntRange(1, seeds.Some(600, 3000)).Draw(t, "kinds")
				q := crowded(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)), honest, kinds, 16)
				q.Policy = name
				d := preset.Divide(q)
				if d.Why != "" {
					t.Fatal(d.Why)
				}
				given := make([]cluster.MicroGPU, 3)
				for i := range q.Bids {
					share, has := make([]float64, 3), make([]float64, 3)
					for p, pool := range q.Pools {
						given[p] += d.Parts[i].GPUs[p]
						share[p] = float64(pool.Count) / float64(honest+1)
						has[p] = float64(d.Parts[i].GPUs[p]) / float64(cluster.WholeGPU)
					}
					if name == "oef:coop" && i < honest && worth(&q.Bids[i], has) < (1-1e-4)*worth(&q.Bids[i], share) {
						t.Errorf("%s has %v, worth %v; its share is worth %v", q.Bids[i].Party, has, worth(&q.Bids[i], has), worth(&q.Bids[i], share))
					}
				}
				for p, pool := range q.Pools {
					if given[p] > cluster.MicroGPU(pool.Count)*cluster.WholeGPU+cluster.MicroGPU(len(q.Bids)) {
						t.Errorf("%v of %d %s are given", given[p], pool.Count, pool.Model)
					}
				}
			})
		})
	}
}

// A tenant's kinds of largest demand are kept apart; the others are one, whose part is theirs by demand, of models that
// they can use. Within the limit nothing changes.
func TestKindsBeyondTheLimitAreOne(t *testing.T) {
	q := crowded(rand.New(rand.NewPCG(1, 1)), 2, 5, 3)
	for i, demand := range []int{1, 9, 2, 8, 1} {
		q.Bids[2+i].Demand, q.Bids[2+i].Speeds = demand, []float64{2, 1, 1.5}
	}
	q.Bids[6].Speeds = []float64{0, 1, 0}
	for _, name := range []string{"oef:coop", "oef:noncoop"} {
		if !slices.Contains(byTypes(), name) {
			continue
		}
		q.Policy, q.MostKinds = name, 3
		d := preset.Divide(q)
		if d.Why != "" {
			t.Fatal(d.Why)
		}
		first, third, last := d.Parts[2].GPUs, d.Parts[4].GPUs, d.Parts[6].GPUs
		for p := range q.Pools {
			if diff := third[p] - 2*first[p]; diff < -2 || diff > 2 {
				t.Errorf("%s: a kind of 1 GPU has %v, and one of 2 GPUs %v", name, first, third)
			}
		}
		if last[0] != 0 || last[2] != 0 {
			t.Errorf("%s: a kind that can use the second model alone has %v", name, last)
		}
		q.MostKinds = 5
		within := preset.Divide(q)
		q.MostKinds = 0
		if unlimited := preset.Divide(q); fmt.Sprint(within) != fmt.Sprint(unlimited) {
			t.Errorf("%s: a limit of 5 changes what 5 kinds get", name)
		}
	}
}

// A hostile user's five thousand kinds of jobs beside 200 tenants of one kind each.
func BenchmarkManyKinds(b *testing.B) {
	for _, name := range byTypes() {
		for _, kinds := range []int{1, 5000} {
			q := crowded(rand.New(rand.NewPCG(1, 0)), 200, kinds, 16)
			q.Policy = name
			b.Run(fmt.Sprintf("%s/%d", name, kinds), func(b *testing.B) {
				for b.Loop() {
					if d := preset.Divide(q); d.Why != "" {
						b.Fatal(d.Why)
					}
				}
			})
		}
	}
}
