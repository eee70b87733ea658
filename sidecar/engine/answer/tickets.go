package answer

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/trade"
)

// The minimum trade: a hundredth of a GPU, between parties with speedups that differ by a
// twentieth.
var worthwhile = trade.Rules{Least: cluster.WholeGPU / 100, Edge: 0.05}

// ByTickets gives every tenant the same share of every model by its tickets, less what it does
// not want (Gandiva_fair §2.1), and lets tenants trade models (§3.4).
func ByTickets(trades bool) Policy {
	return func(q *cluster.AllocationRequest, d *cluster.Allocation) error {
		divideTickets(q, trades, d)
		return nil
	}
}

func divideTickets(q *cluster.AllocationRequest, trades bool, d *cluster.Allocation) {
	order := fastestFirst(q)
	due := tickets(q, order)
	if trades {
		exchange(q, order, due, d)
	}
	for i := range q.Bids {
		part := cluster.Part{Party: q.Bids[i].Party, GPUs: make([]cluster.MicroGPU, len(q.Pools))}
		for m, p := range order {
			part.GPUs[p] = due[i][m]
			d.Objective += q.Bids[i].Speeds[p] * float64(due[i][m]) / float64(cluster.WholeGPU)
		}
		d.Parts = append(d.Parts, part)
	}
}

// fastestFirst orders the pools by speed: each is followed by those on which the jobs that can use both are slower, by the mean. Models that few jobs
// can use are so compared by those jobs alone.
func fastestFirst(q *cluster.AllocationRequest) (order []int) {
	n := len(q.Pools)
	faster := make([]float64, n*n) // by pool, then by another: by how much, as a logarithm and GPUs
	for i := range q.Bids {
		b := &q.Bids[i]
		if b.Pinned {
			continue
		}
		speeds := b.Terms().Speeds
		for p := range n {
			for o := range n {
				if speeds[p] > 0 && speeds[o] > 0 {
					faster[p*n+o] += math.Log(speeds[p]/speeds[o]) * float64(b.Demand)
				}
			}
		}
	}
	for len(order) < n {
		next, least := -1, math.Inf(1)
		for p := range n {
			if slices.Contains(order, p) {
				continue
			}
			slower := 0.0 // than those that are left
			for o := range n {
				if !slices.Contains(order, o) {
					slower = max(slower, -faster[p*n+o])
				}
			}
			if slower < least {
				next, least = p, slower
			}
		}
		order = append(order, next)
	}
	return order
}

// tickets gives each bid's entitlement to each pool, in their order, before trading.
func tickets(q *cluster.AllocationRequest, order []int) [][]cluster.MicroGPU {
	gpus := make([]cluster.MicroGPU, len(order))
	for m, p := range order {
		gpus[m] = cluster.MicroGPU(q.Pools[p].Count) * cluster.WholeGPU
	}
	var claims []policy.Claim
	of := make([][2]int, len(q.Bids)) // the claim and the want of each bid
	at := map[string]int{}            // the claim of each tenant
	for i := range q.Bids {
		b := &q.Bids[i]
		t, ok := at[b.Tenant]
		if !ok {
			t = len(claims)
			at[b.Tenant] = t
			claims = append(claims, policy.Claim{Weight: b.Weight})
		}
		want := policy.Want{GPUs: cluster.MicroGPU(b.Demand) * cluster.WholeGPU, May: make([]bool, len(order))}
		for m, p := range order {
			want.May[m] = b.Speeds[p] > 0
		}
		of[i] = [2]int{t, len(claims[t].Wants)}
		claims[t].Wants = append(claims[t].Wants, want)
	}
	parts := policy.Tickets(gpus, claims)
	due := make([][]cluster.MicroGPU, len(q.Bids))
	for i := range due {
		for m := range order {
			due[i] = append(due[i], parts[of[i][0]][m].For[of[i][1]])
		}
	}
	return due
}

// exchange lets bids without a fixed model trade entitlements, and updates due.
func exchange(q *cluster.AllocationRequest, order []int, due [][]cluster.MicroGPU, d *cluster.Allocation) {
	models := make([]string, len(order))
	for m, p := range order {
		models[m] = q.Pools[p].Model
	}
	var parties []trade.Party
	var bids []int
	for i := range q.Bids {
		b := &q.Bids[i]
		if b.Pinned {
			continue
		}
		party := trade.Party{Name: trade.Name{Tenant: b.Tenant, Kind: b.Party}, GPUs: due[i],
			Demand: cluster.MicroGPU(b.Demand) * cluster.WholeGPU, Speed: make([]trade.Speed, len(order)), Declared: make([]bool, len(order))}
		by := b.Terms()
		for m, p := range order {
			sure := by.Basis == nil || by.Basis[p] == cluster.Declared || by.Basis[p] == cluster.Observed // an estimate prices no trade
			party.Declared[m] = by.Basis != nil && by.Basis[p] == cluster.Declared
			if f := by.Margins[p]; f > 0 && sure {
				party.Speed[m] = trade.Speed{Low: by.Speeds[p] / f, High: by.Speeds[p] * f}
			}
		}
		parties, bids = append(parties, party), append(bids, i)
	}
	o := trade.Decide(models, parties, q.Trades, worthwhile)
	d.Trades, d.Undone = o.Kept, o.Undone
	for _, t := range o.New {
		d.NextTrade++
		t.ID = d.NextTrade
		d.Trades = append(d.Trades, t)
	}
	for k, i := range bids {
		due[i] = o.GPUs[k]
	}
}
