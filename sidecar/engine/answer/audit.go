package answer

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// Limits of an audit: each misreport needs another division, and envy is between pairs.
const (
	auditLies  = 32 // tenants with computed misreports per audit; others have their turn on other days
	auditKinds = 32 // kinds of jobs of a tenant that are told apart
	auditPairs = 64 // up to this number of tenants all pairs are listed; beyond it, only the most envied of each
)

// Audit measures the fairness of the policy's answer to a question, by the mean throughput of
// GPUs for the tenants' jobs, which have these alone: pairs only add to that. It divides many times. Where there are no cells, gangs count at both
// speeds: see Halves.
func Audit(q *cluster.AllocationRequest, by Policy, now cluster.Instant, misreports []profile.Misreport) cluster.Audit {
	alone := *q
	if alone.Pairs = nil; len(q.Cells) == 0 {
		alone, _ = Halves(&alone)
	}
	q = &alone
	f := newFair(q, by)
	a := cluster.Audit{At: now, Policy: q.Policy, Slack: -1, Tenants: []cluster.AuditedTenant{}, Envy: []cluster.Envy{}, Misreports: []cluster.Misreport{}}
	for _, m := range misreports {
		a.Misreports = append(a.Misreports, cluster.Misreport(m))
	}
	honest, _ := f.divide(f.market)
	if fairness, err := policy.Audit(f.market, honest); err == nil {
		a.Slack = fairness.Slack
		f.tell(&a, fairness)
	}
	// A trade in force stays whatever is declared now: the gain of lies shows only from the
	// beginning.
	q.Trades = nil
	honest, _ = f.divide(f.market)
	n := len(a.Tenants)
	for k := range min(n, auditLies) {
		l := (int(int64(now)/int64(cluster.Day))*auditLies + k) % n
		a.Tenants[l].More = f.gain(honest, l, 1.2)
		a.Tenants[l].Less = f.gain(honest, l, 0.8)
	}
	return a
}

// fair is a question converted to a market between tenants.
type fair struct {
	q      *cluster.AllocationRequest
	by     Policy
	pools  []int // of the market's models
	of     []row // of every bid
	market policy.Market
}

// row is a tenant of the market, and one of its kinds.
type row struct{ tenant, kind int }

func newFair(q *cluster.AllocationRequest, by Policy) *fair {
	f := &fair{q: q, by: by, of: make([]row, len(q.Bids))}
	var rows [][][]int
	for l, bids := range tenants(q) {
		kinds := alike(q, bids)
		if q.Bids[bids[0]].Job == 0 { // types, as they are divided
			kinds = together(q, bids, auditKinds)
		}
		rows = append(rows, kinds)
		for k, same := range rows[l] {
			for _, i := range same {
				f.of[i] = row{l, k}
			}
		}
	}
	f.market, f.pools = marketOf(q, rows)
	return f
}

// alike gives a tenant's jobs with equal speeds as one kind each, in their order. Of more than auditKinds the last are one.
func alike(q *cluster.AllocationRequest, bids []int) (kinds [][]int) {
	for _, i := range bids {
		k := slices.IndexFunc(kinds, func(of []int) bool { return slices.Equal(q.Bids[of[0]].Speeds, q.Bids[i].Speeds) })
		if k < 0 && len(kinds) == auditKinds {
			k = auditKinds - 1
		}
		if k < 0 {
			kinds = append(kinds, []int{i})
		} else {
			kinds[k] = append(kinds[k], i)
		}
	}
	return kinds
}

// speedup gives the speedups of a kind.
func speedup(m *policy.Market, at row) []float64 {
	if at.kind == 0 {
		return m.Tenants[at.tenant].Speedup
	}
	return m.Tenants[at.tenant].Others[at.kind-1].Speedup
}

// divide gives the policy's answer if jobs' declared speeds deviated as those of the market
// deviate from the true one.
func (f *fair) divide(said policy.Market) (policy.Parts, error) {
	q := *f.q
	q.Bids = slices.Clone(q.Bids)
	for i := range q.Bids {
		b, is, says := &q.Bids[i], speedup(&f.market, f.of[i]), speedup(&said, f.of[i])
		deviate := func(speeds []float64) []float64 {
			speeds = slices.Clone(speeds)
			for m, p := range f.pools {
				if is[m] > 0 {
					speeds[p] *= says[m] / is[m]
				}
			}
			return speeds
		}
		b.Speeds = deviate(b.Speeds)
		if b.Priced != nil {
			priced := *b.Priced
			priced.Speeds = deviate(priced.Speeds)
			b.Priced = &priced
		}
	}
	d := Divide(q, f.by)
	sums := make([]cluster.MicroGPU, len(f.pools))
	for m, p := range f.pools {
		for i := range d.Parts {
			sums[m] += d.Parts[i].GPUs[p]
		}
		// Millionths are rounded: together they may slightly exceed the GPUs.
		sums[m] = max(sums[m], cluster.MicroGPU(q.Pools[p].Count)*cluster.WholeGPU)
	}
	parts := policy.None(f.market)
	for i := range d.Parts {
		for m, p := range f.pools {
			gpus := float64(d.Parts[i].GPUs[p]) / float64(sums[m]) * f.market.Models[m].GPUs
			parts.GPUs[f.of[i].tenant][m] += gpus
			parts.Kinds[f.of[i].tenant][f.of[i].kind][m] += gpus
		}
	}
	parts.Objective, parts.Why = d.Objective, d.Why
	return parts, nil
}

// gain gives a tenant's gain from declaring factor times its speedups; nil = unknown.
func (f *fair) gain(honest policy.Parts, l int, factor float64) *float64 {
	gain, err := policy.Misreport(f.divide, f.market, honest, l, factor)
	if err != nil {
		return nil
	}
	gain = min(gain, cluster.MaxRatio)
	return &gain
}

// tell reports how the division treats every tenant.
func (f *fair) tell(a *cluster.Audit, fairness policy.Fairness) {
	for i, t := range f.market.Tenants {
		a.Tenants = append(a.Tenants, cluster.AuditedTenant{Tenant: t.Name, Incentive: min(fairness.Incentive[i], cluster.MaxRatio)})
		most := -1
		for l, ratio := range fairness.Envy[i] {
			if l == i {
				continue
			}
			if len(f.market.Tenants) <= auditPairs {
				a.Envy = append(a.Envy, cluster.Envy{Tenant: t.Name, Of: f.market.Tenants[l].Name, Ratio: min(ratio, cluster.MaxRatio)})
			} else if most < 0 || ratio > fairness.Envy[i][most] {
				most = l
			}
		}
		if most >= 0 {
			a.Envy = append(a.Envy, cluster.Envy{Tenant: t.Name, Of: f.market.Tenants[most].Name, Ratio: min(fairness.Envy[i][most], cluster.MaxRatio)})
		}
	}
}
