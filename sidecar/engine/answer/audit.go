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
	auditPairs = 64 // up to this number of tenants all pairs are listed; beyond it, only the most envied of each
)

// Audit measures the fairness of the policy's answer to a question, by the mean throughput of
// GPUs for the tenants' jobs. It divides many times.
func Audit(q *cluster.AllocationRequest, by Policy, now cluster.Instant, misreports []profile.Misreport) cluster.Audit {
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
	of     []int // the tenant of every bid
	market policy.Market
}

func newFair(q *cluster.AllocationRequest, by Policy) *fair {
	f := &fair{q: q, by: by, of: make([]int, len(q.Bids))}
	f.market.Models, f.pools = models(q)
	var usable [][]float64 // by tenant and model: requested GPUs of bids that can use the model
	for i := range q.Bids {
		b := &q.Bids[i]
		if n := len(f.market.Tenants); n == 0 || f.market.Tenants[n-1].Name != b.Tenant { // bids are by tenant
			f.market.Tenants = append(f.market.Tenants, policy.Tenant{Name: b.Tenant, Weight: float64(b.Weight), Speedup: make([]float64, len(f.pools))})
			usable = append(usable, make([]float64, len(f.pools)))
		}
		l := len(f.market.Tenants) - 1
		f.of[i] = l
		t := &f.market.Tenants[l]
		t.Demand += float64(b.Demand)
		for m, p := range f.pools {
			if b.Speeds[p] > 0 {
				t.Speedup[m] += b.Speeds[p] * float64(b.Demand)
				usable[l][m] += float64(b.Demand)
			}
		}
	}
	for l := range f.market.Tenants {
		for m, asked := range usable[l] {
			f.market.Tenants[l].Speedup[m] /= max(asked, 1)
		}
	}
	return f
}

// divide gives the policy's answer if jobs' declared speeds deviated as those of the market
// deviate from the true one.
func (f *fair) divide(said policy.Market) (policy.Parts, error) {
	q := *f.q
	q.Bids = slices.Clone(q.Bids)
	for i := range q.Bids {
		b, l := &q.Bids[i], f.of[i]
		deviate := func(speeds []float64) []float64 {
			speeds = slices.Clone(speeds)
			for m, p := range f.pools {
				if is := f.market.Tenants[l].Speedup[m]; is > 0 {
					speeds[p] *= said.Tenants[l].Speedup[m] / is
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
	parts := policy.Parts{GPUs: make([][]float64, len(f.market.Tenants)), Objective: d.Objective, Why: d.Why}
	for l := range parts.GPUs {
		parts.GPUs[l] = make([]float64, len(f.pools))
	}
	for m, p := range f.pools {
		sum := cluster.MicroGPU(0)
		for i := range d.Parts {
			parts.GPUs[f.of[i]][m] += float64(d.Parts[i].GPUs[p])
			sum += d.Parts[i].GPUs[p]
		}
		// Millionths are rounded: together they may slightly exceed the GPUs.
		all := max(sum, cluster.MicroGPU(q.Pools[p].Count)*cluster.WholeGPU)
		for l := range parts.GPUs {
			parts.GPUs[l][m] *= f.market.Models[m].GPUs / float64(all)
		}
	}
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
