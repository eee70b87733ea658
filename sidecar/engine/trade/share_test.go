package trade

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// Gandiva_fair §1: "the effective performance of user A in the shared cluster must be at least the
// same as if A ran on a dedicated cluster with 20% of the GPUs": of tickets that are divided and
// then traded everybody has at least what its share of every model would give to its jobs,
// where newer models are no slower. GPUs of jobs that name a model are not traded.
func TestSharingIncentive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var models []string
		var fleet []cluster.MicroGPU
		for m := range rapid.IntRange(1, 4).Draw(t, "models") {
			models = append(models, fmt.Sprint("model ", m))
			fleet = append(fleet, cluster.MicroGPU(rapid.IntRange(0, 32).Draw(t, "GPUs"))*gpu)
		}
		var claims []policy.Claim
		sum := int64(0)
		for range rapid.IntRange(1, 6).Draw(t, "tenants") {
			c := policy.Claim{Weight: rapid.Int64Range(1, 4).Draw(t, "weight"), Wants: []policy.Want{
				{GPUs: cluster.MicroGPU(rapid.IntRange(0, 60).Draw(t, "anywhere")) * gpu},
			}}
			for m := range fleet { // jobs that name the model
				may := make([]bool, len(fleet))
				may[m] = true
				c.Wants = append(c.Wants, policy.Want{GPUs: cluster.MicroGPU(rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "pinned")) * gpu, May: may})
			}
			claims = append(claims, c)
			sum += c.Weight
		}
		parts := policy.Tickets(fleet, claims)
		var parties []Party
		for i, c := range claims {
			p := Party{Name: Name{Tenant: fmt.Sprint(i)}, Demand: c.Wants[0].GPUs}
			v := 1.0
			for m := range fleet {
				p.GPUs = append(p.GPUs, parts[i][m].For[0])
				p.Speed = append(p.Speed, exactly(v))
				v *= rapid.Float64Range(1, 3).Draw(t, "faster")
			}
			slices.Reverse(p.Speed)
			parties = append(parties, p)
		}
		o := Decide(models, parties, nil, rules55)
		for i, c := range claims {
			dedicated := make([]cluster.MicroGPU, len(fleet))
			for m := range fleet {
				share := cluster.MicroGPU(cluster.MulDiv(int64(fleet[m]), c.Weight, sum))
				pinned := c.Wants[1+m].GPUs
				dedicated[m] = max(share-pinned, 0)
				if got := parts[i][m].For[1+m]; got < min(share, pinned) {
					t.Fatalf("tenant %d has %d of %s for jobs that name it, of a share of %d", i, got, models[m], share)
				}
			}
			if before, after := parties[i].worth(dedicated, false), parties[i].worth(o.GPUs[i], false); after < before*(1-1e-9)-100 {
				t.Fatalf("tenant %d has a throughput of %v, and %v on a cluster of its own", i, after, before)
			}
		}
	})
}
