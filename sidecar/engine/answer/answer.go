// Package answer answers the questions of rounds: each party's entitlement to GPUs of each model.
package answer

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// Policy sets the entitlements of a question's bids: the parts of a division, by bid, and its
// other results. It fails if it has no answer.
type Policy func(q *cluster.AllocationRequest, d *cluster.Allocation) error

// Divide answers a question with a policy. If the policy fails all parties get weighted shares,
// and Why says why.
func Divide(q cluster.AllocationRequest, by Policy) cluster.Allocation {
	if len(q.Cells) > 0 {
		return divideCells(q, by)
	}
	bids := q.Bids
	q.Bids = weighty(bids)
	d := cluster.Allocation{Policy: q.Policy, Digest: q.Digest, NextTrade: q.NextTrade}
	for _, p := range q.Pools {
		d.Pools = append(d.Pools, p.Model)
	}
	if err := by(&q, &d); err != nil {
		d.Parts, d.Trades, d.Why = byWeight(&q), nil, err.Error()
	}
	d.Parts = withNothing(bids, d.Parts, len(q.Pools))
	return d
}

// weighty gives the bids of tenants with a weight: the others get idle GPUs only. If none has a
// weight, all count equally.
func weighty(bids []cluster.Bid) []cluster.Bid {
	out := slices.DeleteFunc(slices.Clone(bids), func(b cluster.Bid) bool { return b.Weight <= 0 })
	if len(out) > 0 {
		return out
	}
	out = slices.Clone(bids)
	for i := range out {
		out[i].Weight = 1
	}
	return out
}

// withNothing gives the parts of all bids, in their order: nothing for bids that took no part.
func withNothing(bids []cluster.Bid, parts []cluster.Part, pools int) []cluster.Part {
	out := make([]cluster.Part, len(bids))
	for i := range bids {
		out[i] = cluster.Part{Party: bids[i].Party, GPUs: make([]cluster.MicroGPU, pools)}
		if len(parts) > 0 && parts[0].Party == bids[i].Party {
			out[i], parts = parts[0], parts[1:]
		}
	}
	return out
}

// byWeight gives every tenant its weighted share of every pool, divided between its bids as a market does that has no answer.
func byWeight(q *cluster.AllocationRequest) []cluster.Part {
	m, at, rows := market(q)
	return spread(q, policy.Fixed(m), at, rows)
}

// models gives the pools with GPUs in the policies' form, with their indices among all pools.
func models(q *cluster.AllocationRequest) (out []policy.Model, at []int) {
	for p := range q.Pools {
		if q.Pools[p].Count <= 0 {
			continue
		}
		price := 1.0
		if p < len(q.Prices) {
			price = q.Prices[p]
		}
		m := policy.Model{Name: q.Pools[p].Model, GPUs: float64(q.Pools[p].Count), Price: price}
		if p < len(q.Together) && q.Together[p] < 1000 {
			m.Together = new(m.GPUs * float64(q.Together[p]) / 1000)
		}
		out = append(out, m)
		at = append(at, p)
	}
	return out, at
}

// ByTime divides with one of Gavel's policies that know jobs only.
func ByTime(objective string) Policy {
	return func(q *cluster.AllocationRequest, d *cluster.Allocation) error {
		return divideTime(q, d, func(p policy.Problem) (policy.Shares, error) {
			return policy.Gavel(objective, p, policy.Options{Eligible: true})
		})
	}
}

// ByTenants divides the time of jobs between tenants, then their users, then their jobs. Unless it is blind, gangs that are slower on more nodes
// than they need count at both speeds.
func ByTenants(ways policy.Ways) Policy {
	return func(q *cluster.AllocationRequest, d *cluster.Allocation) error {
		two, of := *q, []int(nil)
		if !ways.Blind {
			two, of = Halves(q)
		}
		if err := divideTime(&two, d, func(p policy.Problem) (policy.Shares, error) { return policy.Nested(p, ways) }); err != nil {
			return err
		}
		if of != nil {
			d.Parts = whole(d.Parts, of, len(q.Pools))
			for k := range d.Pairs {
				d.Pairs[k].GPUs = joined(d.Pairs[k].GPUs, of, len(q.Pools))
			}
		}
		return nil
	}
}

// divideTime divides the time of jobs: a job's entitlement is its fraction of time on a model, times its gang.
func divideTime(q *cluster.AllocationRequest, d *cluster.Allocation, divide func(policy.Problem) (policy.Shares, error)) error {
	var p policy.Problem
	var at []int
	p.Models, at = models(q)
	order := make([]int, len(q.Bids)) // by job: in order of arrival
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(q.Bids[a].Job, q.Bids[b].Job) })
	entities, urgency, weights := map[string]int{}, 0.0, 0.0
	for _, i := range order {
		b := &q.Bids[i]
		if _, ok := entities[b.Tenant]; !ok {
			entities[b.Tenant] = len(p.Entities)
			p.Entities = append(p.Entities, policy.Entity{Name: b.Tenant, Weight: float64(b.Weight)})
			weights += float64(b.Weight)
		}
		urgency += float64(max(b.Milli, 1))
	}
	for i := range p.Entities {
		p.Entities[i].Weight /= weights
	}
	for _, i := range order {
		b := &q.Bids[i]
		j := policy.Job{ID: int64(b.Job), Gang: b.Gang, Entity: entities[b.Tenant], User: b.User, Speed: make([]float64, len(at)), Steps: b.Steps,
			Weight:  float64(max(b.Milli, 1)) / urgency * float64(len(q.Bids)), // the mean is 1
			Elapsed: float64(b.Elapsed) / float64(cluster.Second)}
		if b.Deadline > 0 { // a past deadline cannot be met
			j.Within = float64(max(b.Deadline.Sub(q.At), cluster.Second)) / float64(cluster.Second)
		}
		for m, pool := range at {
			j.Speed[m] = b.Speeds[pool] * float64(b.Gang)
			if b.Apart != nil {
				j.Apart = append(j.Apart, j.Speed[m]*cmp.Or(b.Apart[pool], 1))
			}
		}
		j.ElapsedAlone = alone(&j, b.Did, p.Models, len(q.Bids))
		p.Jobs = append(p.Jobs, j)
	}
	p.Pairs = couples(q, at, order, p.Jobs)
	s, err := divide(p)
	if err != nil {
		return err
	}
	d.Objective, d.Why = s.Objective, s.Why
	for _, id := range s.Late {
		d.Late = append(d.Late, cluster.JobKey(id))
	}
	slices.Sort(d.Late)
	d.Parts = make([]cluster.Part, len(q.Bids))
	half := beside(q, d, at, order, p.Pairs, s.PairTime)
	for row, i := range order {
		part := cluster.Part{Party: q.Bids[i].Party, GPUs: make([]cluster.MicroGPU, len(q.Pools))}
		for m, pool := range at {
			time := s.Time[row][m]
			if s.Apart != nil {
				time += s.Apart[row][m]
			}
			if time *= float64(q.Bids[i].Gang); half != nil {
				time += half[row][m]
			}
			part.GPUs[pool] = micro(time)
		}
		d.Parts[i] = part
	}
	return nil
}

// alone gives the time that a job's past work would have taken with one nth of every model, for
// finish-time fairness (Gavel §4.2).
func alone(j *policy.Job, did float64, models []policy.Model, n int) float64 {
	rate, time := 0.0, 0.0
	for m, v := range j.Speed {
		part := models[m].GPUs / float64(n*max(j.Gang, 1))
		rate, time = rate+v*part, time+part
	}
	if rate == 0 {
		return j.Elapsed
	}
	return did / rate * max(1, time)
}

// ByMarket divides with one of OEF's programs: between tenants, and between the kinds of jobs of each (OEF §4.2.4), of at most
// MostKinds kinds of each tenant; see together.
func ByMarket(divide policy.Division) Policy {
	return func(q *cluster.AllocationRequest, d *cluster.Allocation) error {
		m, at, rows := market(q)
		p, err := divide(m)
		if err != nil {
			return err
		}
		d.Objective, d.Bound, d.Why = p.Objective, p.Bound, p.Why
		d.Parts = spread(q, p, at, rows)
		return nil
	}
}

// spread gives the parts of bids: those that are one kind share its part of each model by demand, if they can use it.
func spread(q *cluster.AllocationRequest, p policy.Parts, at []int, rows [][][]int) []cluster.Part {
	parts := make([]cluster.Part, len(q.Bids))
	for i := range parts {
		parts[i] = cluster.Part{Party: q.Bids[i].Party, GPUs: make([]cluster.MicroGPU, len(q.Pools))}
	}
	for l := range rows {
		for r, bids := range rows[l] {
			for j, pool := range at {
				usable := 0 // GPUs that those bids request that can use the model
				for _, i := range bids {
					if q.Bids[i].Speeds[pool] > 0 {
						usable += q.Bids[i].Demand
					}
				}
				for _, i := range bids {
					if b := &q.Bids[i]; b.Speeds[pool] > 0 {
						parts[i].GPUs[pool] = micro(p.Kinds[l][r][j] * float64(b.Demand) / float64(max(usable, 1)))
					}
				}
			}
		}
	}
	return parts
}

// market converts a question to a market; rows gives, for each tenant of it and each kind, the bids that it stands for.
func market(q *cluster.AllocationRequest) (m policy.Market, at []int, rows [][][]int) {
	tenants := tenants(q)
	most := mostKinds(tenants, q.MostKinds)
	for _, bids := range tenants {
		rows = append(rows, together(q, bids, most))
	}
	m, at = marketOf(q, rows)
	return m, at, rows
}

// tenants gives the bids of each tenant.
func tenants(q *cluster.AllocationRequest) (tenants [][]int) {
	for i := range q.Bids {
		if i == 0 || q.Bids[i].Tenant != q.Bids[i-1].Tenant { // bids are by tenant
			tenants = append(tenants, nil)
		}
		last := &tenants[len(tenants)-1]
		*last = append(*last, i)
	}
	return tenants
}

// marketOf gives the market of tenants and kinds, by their bids; at is the pools of its models.
func marketOf(q *cluster.AllocationRequest, rows [][][]int) (m policy.Market, at []int) {
	m.Models, at = models(q)
	for _, kinds := range rows {
		of := &q.Bids[kinds[0][0]]
		tenant := policy.Tenant{Name: of.Tenant, Weight: float64(of.Weight), Kind: kindOf(q, kinds[0], at)}
		for _, same := range kinds[1:] {
			tenant.Others = append(tenant.Others, kindOf(q, same, at))
		}
		m.Tenants = append(m.Tenants, tenant)
	}
	return m, at
}

// kindOf gives bids as one kind of jobs, with the mean of their speeds by GPUs.
func kindOf(q *cluster.AllocationRequest, bids, at []int) policy.Kind {
	kind := policy.Kind{User: q.Bids[bids[0]].User, Speedup: make([]float64, len(at))}
	for _, i := range bids {
		kind.Demand += float64(q.Bids[i].Demand)
		if q.Bids[i].User != kind.User {
			kind.User = ""
		}
	}
	for _, i := range bids {
		part := 1.0
		if len(bids) > 1 {
			part = float64(q.Bids[i].Demand) / max(kind.Demand, 1)
		}
		for j, pool := range at {
			kind.Speedup[j] += q.Bids[i].Speeds[pool] * part
		}
	}
	return kind
}

// mostRows is the maximum number of kinds of all tenants together, but one of each tenant is always there:
// the time for a program of OEF grows with the square of it, or faster.
const mostRows = 400

// mostKinds gives the largest number of kinds of a tenant, at most the setting (0 = any), with which all
// tenants have at most mostRows.
func mostKinds(tenants [][]int, setting int) int {
	if setting <= 0 {
		return math.MaxInt
	}
	for most := setting; most > 1; most-- {
		rows := 0
		for _, bids := range tenants {
			rows += min(len(bids), most)
		}
		if rows <= mostRows {
			return most
		}
	}
	return 1
}

// together groups a tenant's bids into at most so many kinds: those with the largest demands are kinds of
// their own, ties by name; the others are one, with the mean of their speeds by GPUs.
func together(q *cluster.AllocationRequest, bids []int, most int) [][]int {
	var groups [][]int
	if len(bids) <= most {
		for _, i := range bids {
			groups = append(groups, []int{i})
		}
		return groups
	}
	byDemand := slices.Clone(bids)
	slices.SortStableFunc(byDemand, func(a, b int) int { return cmp.Compare(q.Bids[b].Demand, q.Bids[a].Demand) })
	for _, i := range byDemand[:most-1] {
		groups = append(groups, []int{i})
	}
	slices.SortFunc(groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return append(groups, slices.Sorted(slices.Values(byDemand[most-1:])))
}

// micro rounds GPUs to millionths.
func micro(gpus float64) cluster.MicroGPU {
	return cluster.MicroGPU(math.Round(max(gpus, 0) * float64(cluster.WholeGPU)))
}
