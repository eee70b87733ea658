package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// lend advances the deficits, which rank tenants, by an interval dt: by the entitlement (eq. 16),
// less the GPU time that its jobs used, or that was granted to them or gathered for them. The deficit of a tenant that
// lacks GPUs grows by all of them, also by GPUs that no job could use. A tenant that wants less
// than its entitlement lends the rest. It is owed only what other tenants took of that: their use
// beyond their own entitlements, less the shortfalls of waiting tenants. Unused GPU time gives no
// credit. No deficit exceeds credit.cap.
func (a *accounts) lend(dt cluster.Span) {
	lacks, lends, over := a.zeros(), a.zeros(), a.zeros()
	for i := range a.rows {
		t := &a.rows[i]
		rate := t.Entitlement
		if a.settings.RhoSelect == 8 {
			rate = min(t.Entitlement, t.Demand)
		}
		var entitled cluster.GPUTime
		entitled, t.SelCarry = cluster.Accrue(rate, dt, t.SelCarry)
		wanted := entitled
		if demand := a.demand(i); demand < rate {
			wanted, _ = cluster.Accrue(demand, dt, 0)
		}
		had := a.used[i] + a.granted[i] + a.kept[i]
		lacks[i] = max(wanted-had, 0)
		lends[i], over[i] = max(entitled-had, 0)-lacks[i], max(had-entitled, 0)
	}
	n := a.pools
	for p := range n {
		var lacking, lent, taken cluster.GPUTime
		for i := p; i < len(lends); i += n {
			lacking, lent, taken = lacking+lacks[i], lent+lends[i], taken+over[i]
		}
		taken = max(taken-lacking, 0)
		for i := p; i < len(lends); i += n {
			t := &a.rows[i]
			more := lends[i]
			if taken < lent {
				more = cluster.GPUTime(cluster.MulDiv(int64(more), int64(taken), int64(lent)))
			}
			more += lacks[i]
			t.Deficit += more - over[i] + a.wasted[i]
			if ceiling := Credit(t.Entitlement, a.settings.CreditCap); t.Deficit > ceiling {
				t.Deficit = max(ceiling, t.Deficit-more)
			}
		}
	}
}
