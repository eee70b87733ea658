// Package promises draws questions to presets, and measures for each preset what a tenant has of what it is promised.
package promises

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// Promise is a promise to every tenant.
type Promise string

// The promises. Share: at least the throughput that the tenant's jobs have of its weighted share of every model, divided as the preset does. Envy: no
// tenant's jobs would have more of another's part, by weight. Lies: no tenant gains by claiming that a model is faster than it is.
// Waste: no tenant could have more without another having less.
const (
	Share Promise = "share with demand"
	Envy  Promise = "no envy"
	Lies  Promise = "no gain from false speeds"
	Waste Promise = "Pareto-efficient"
)

// Cell is a promise of a preset, and the markets in which it is kept.
type Cell struct {
	Preset  string
	Promise Promise
	In      Markets
}

// Markets tells which questions are drawn.
type Markets struct {
	OneType bool // each tenant has one job type
	AnyGPUs bool // jobs can use any model
}

// All lists the promises that presets keep.
var All = []Cell{
	{"gandiva-fair", Share, Markets{}},
	{"gandiva-fair:no-trade", Share, Markets{}},
	{"drf", Share, Markets{}},
	{"gavel:las", Share, Markets{}},
	{"gavel:las-blind", Share, Markets{}},
	{"gavel:las-fifo", Share, Markets{}},
	{"oef:coop", Share, Markets{}},
	{"gandiva-fair:no-trade", Envy, Markets{AnyGPUs: true}},
	{"oef:coop", Envy, Markets{}},
	{"gandiva-fair:no-trade", Lies, Markets{}},
	{"drf", Lies, Markets{}},
	{"oef:noncoop", Lies, Markets{OneType: true}},
	{"oef:noncoop", Waste, Markets{OneType: true}},
}

// Draw gives the question of a number. Each tenant's weighted share of every model is a whole number of GPUs.
func (c Cell) Draw(seed uint64) cluster.AllocationRequest {
	rng := rand.New(rand.NewPCG(seed, 35))
	q := cluster.AllocationRequest{Policy: c.Preset, At: 1}
	weights, sum := make([]int64, 2+rng.IntN(4)), 0
	for l := range weights {
		weights[l] = int64(1 + rng.IntN(3))
		sum += int(weights[l])
	}
	n, gpus := 1+rng.IntN(3), 0
	for p := range n {
		q.Pools = append(q.Pools, cluster.GPUs{Model: fmt.Sprint("m", p), Count: sum * (1 + rng.IntN(4))})
		gpus += q.Pools[p].Count
	}
	for l, weight := range weights {
		types := 1
		if !c.In.OneType {
			types += rng.IntN(4)
		}
		for k := range types {
			b := cluster.Bid{Tenant: fmt.Sprint("t", l), Party: fmt.Sprintf("t%d/%d", l, k), Weight: weight, Milli: 1000, Gang: 1, Demand: 1 + rng.IntN(2*gpus/len(weights))}
			if rng.IntN(3) == 0 {
				b.Demand = 1 + rng.IntN(2)
			}
			if preset.OfJobs(c.Preset) {
				b.Gang, b.Job, b.Steps = b.Demand, cluster.JobKey(len(q.Bids)+1), 1000
			}
			speed := 1.0
			for p := range n {
				if p > 0 {
					speed *= 1 + rng.Float64()
				}
				b.Speeds, b.Margins, b.Basis = append(b.Speeds, speed), append(b.Margins, 1), append(b.Basis, cluster.Declared)
			}
			if n > 1 && !c.In.AnyGPUs && rng.IntN(4) == 0 {
				b.Speeds[rng.IntN(n)] = 0
			}
			q.Bids = append(q.Bids, b)
		}
	}
	if c.Preset == "gavel:las" || c.Preset == "gavel:las-fifo" {
		scatter(&q, rand.New(rand.NewPCG(seed, 36)), sum)
	}
	return q
}

// scatter draws gangs that are slower on more nodes than they need, and how many GPUs they can have on their fewest nodes: a multiple of a number.
func scatter(q *cluster.AllocationRequest, rng *rand.Rand, of int) {
	for p := range q.Pools {
		q.Together = append(q.Together, 1000)
		if parts := q.Pools[p].Count / of; rng.IntN(2) == 0 {
			q.Together[p] = 1000 * rng.IntN(parts) / parts
		}
	}
	for i := range q.Bids {
		if rng.IntN(2) == 0 {
			for range q.Pools {
				q.Bids[i].Apart = append(q.Bids[i].Apart, 1.3*rng.Float64())
			}
		}
	}
}

// Kept gives what the tenant that has least of what it is promised has of it: 1 or more = the promise is kept.
func (c Cell) Kept(q cluster.AllocationRequest) float64 {
	q, _ = answer.Halves(&q)
	if c.Promise == Share && c.Preset != "oef:coop" {
		return c.share(q)
	}
	a := answer.Audit(&q, preset.PolicyOf(c.Preset), 1, nil)
	least := math.Inf(1)
	switch c.Promise {
	case Share:
		for _, t := range a.Tenants {
			least = min(least, t.Incentive)
		}
	case Envy:
		for _, e := range a.Envy {
			least = min(least, 1/e.Ratio)
		}
	case Lies:
		for _, t := range a.Tenants {
			if t.More != nil {
				least = min(least, 1/(1+*t.More))
			}
		}
	case Waste:
		least = 1 / (1 + a.Slack)
	}
	return least
}

// share compares every tenant's throughput with that of its share.
func (c Cell) share(q cluster.AllocationRequest) float64 {
	d := preset.Divide(q)
	weights, seen := 0, map[string]bool{}
	for i := range q.Bids {
		if b := &q.Bids[i]; !seen[b.Tenant] {
			seen[b.Tenant] = true
			weights += int(b.Weight)
		}
	}
	least := math.Inf(1)
	for tenant := range seen {
		alone := q
		alone.Bids, alone.Pools = nil, append([]cluster.GPUs(nil), q.Pools...)
		has, promised := 0.0, 0.0
		for i := range q.Bids {
			if q.Bids[i].Tenant == tenant {
				has += c.worth(&q.Bids[i], d.Parts[i].GPUs)
				alone.Bids = append(alone.Bids, q.Bids[i])
			}
		}
		for p := range alone.Pools {
			alone.Pools[p].Count = alone.Pools[p].Count / weights * int(alone.Bids[0].Weight)
		}
		for i, part := range preset.Divide(alone).Parts {
			promised += c.worth(&alone.Bids[i], part.GPUs)
		}
		if promised > 0 {
			least = min(least, has/promised)
		}
	}
	return least
}

// worth gives the throughput of a bid, in GPUs of the reference; a policy that does not know models counts GPUs.
func (c Cell) worth(b *cluster.Bid, gpus []cluster.MicroGPU) float64 {
	sum := 0.0
	for p, g := range gpus {
		speed := b.Speeds[p]
		if speed > 0 && (c.Preset == "gavel:las-blind" || c.Preset == "drf") {
			speed = 1
		}
		sum += speed * float64(g) / float64(cluster.WholeGPU)
	}
	return sum
}
