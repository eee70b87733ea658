package ltgf

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Claimant is an active job with what determines its entitlement: it runs or could run now
// (ASTRAEA's Active(J, t) = 1).
type Claimant struct {
	Case   int              // index into the snapshot's cases, which is also the record's
	GPUs   cluster.MicroGPU // demand, in devices
	Worths cluster.PoolWorths
	Weight int64
	// Pools are the pools that could serve it, as indices into the ledger's pools; a running job
	// has only its own.
	Pools []int
}

// In gives the claimant's demand in a pool.
func (c *Claimant) In(pool int) cluster.MicroGPU { return c.Worths.In(pool, c.GPUs) }

// Rate is at what rate a job is due GPU time until the next look, and its speedup; see cluster.Record.
type Rate struct {
	Due    cluster.MicroGPU
	Faster int64
}

// Due sets the rates until the next look: every tenant's demand per pool (eq. 7), and every
// active job's due rate (eq. 13 with eq. 8, capped by its demand as in eq. 14). A job that may
// use several pools counts in the one where its tenant has the most space left, so each GPU of
// demand counts once. The ledger's entitlements must be set; it is modified in place. rates are by case.
//
// It also sets the demand of users if users is set: by case, the account of the job's user in the ledger.
//
// claimants are by tenant, in the ledger's order: running jobs first, then by key.
//
// faster gives, by pool, the speedup of a case's job less 1, in millionths (cluster.Extra.Faster); nil = no policy divides
// GPU models, and work is GPU time.
func Due(l *cluster.Ledger, rates []Rate, byTenant [][]Claimant, users []int, faster func(i int) []int64) {
	for i := range l.Tenants {
		t := &l.Tenants[i]
		t.Demand, t.Usable, t.Extra.Faster = 0, 0, 0
	}
	clear(rates)
	for i := range l.Users {
		for k := range l.Users[i].Wants {
			l.Users[i].Wants[k].GPUs = 0
		}
	}
	npools := len(l.Pools)
	var in []int // by claimant of a tenant: the pool in which its demand counts
	weights := make([]int64, npools)
	for t, claimants := range byTenant {
		rows := l.Tenants[t*npools : (t+1)*npools]
		in = slices.Grow(in[:0], len(claimants))[:len(claimants)]
		dueOfTenant(rows, rates, claimants, in, weights)
		if faster != nil {
			priceWork(rows, rates, claimants, in, faster)
		}
		if users != nil {
			wantBy(l, users, claimants, in)
		}
	}
}

// dueOfTenant sets the rates of one tenant; rows are its accounts, one per pool. It sets in, by claimant, to the pool in
// which its demand counts, and weights, by pool, to their sum.
func dueOfTenant(rows []cluster.TenantPool, rates []Rate, claimants []Claimant, in []int, weights []int64) {
	clear(weights)
	for k, c := range claimants {
		best := c.Pools[0]
		for _, p := range c.Pools[1:] {
			if rows[p].Own()-rows[p].Demand > rows[best].Own()-rows[best].Demand {
				best = p
			}
		}
		in[k] = best
		rows[best].Demand += c.In(best)
		weights[best] += c.Weight
	}
	for k, c := range claimants {
		row := &rows[in[k]]
		share := min(row.Demand, row.Own()) // eq. 8
		rate := cluster.MulDiv(int64(share), c.Weight, max(weights[in[k]], 1))
		rates[c.Case].Due = min(cluster.MicroGPU(rate), c.In(in[k]))
	}
}

// priceWork sets the speedups at which work counts until the next look: of each job that of the pool in which its demand
// counts, and of the tenant in each pool the mean of all jobs that can use it, by GPUs. It also sets what the
// tenant could use of its base: as many GPUs as its jobs ask for, fastest models first.
func priceWork(rows []cluster.TenantPool, rates []Rate, claimants []Claimant, in []int, faster func(i int) []int64) {
	const one = int64(cluster.WholeGPU)
	sums, gpus := make([]int64, len(rows)), make([]int64, len(rows))
	for k, c := range claimants {
		more := faster(c.Case)
		rates[c.Case].Faster = more[in[k]]
		milli := int64(c.GPUs / 1000) // sums of millionths may not fit
		for p, m := range more {
			if m > -one {
				sums[p], gpus[p] = sums[p]+(m+one)*milli, gpus[p]+milli
			}
		}
	}
	best, demand := make([]int, len(rows)), cluster.MicroGPU(0)
	for p := range rows {
		best[p], demand = p, demand+rows[p].Demand
		if len(claimants) > 0 {
			rows[p].Extra.Faster = sums[p]/max(gpus[p], 1) - one
		}
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(rows[b].Extra.Faster, rows[a].Extra.Faster) })
	for _, p := range best {
		rows[p].Usable = min(rows[p].Base, demand)
		demand -= rows[p].Usable
	}
}

// Settle sets every tenant's base and entitlement for the next interval, and ranks new tenants
// (0/0 = first: as far behind as the furthest). It also limits how far ahead a tenant may be, so
// that GPU time that no other tenant wanted does not count against it for ever. When tenants
// alternate, one is ahead by its largest gang for one term, and by the GPUs of others that
// reclaim.threshold leaves it. A lower limit would forgive that again and again. A tenant that
// repays others may be ahead by its gang's term only, so that repay.floor holds. base and
// entitled are by row of the ledger's tenants; largest is the largest gang of each row's tenant.
//
// untraded is entitled without trades; nil = no trade is in force or was undone. It keeps trades
// from changing accounts: a tenant that sells its entitlement neither loses its debt, nor do the
// others lose what it owes.
func Settle(l *cluster.Ledger, base, entitled, untraded, largest, holds []cluster.MicroGPU, s *cluster.Settings, anew bool) {
	writeOff(l, entitled, untraded)
	limit := Most(entitled, untraded)
	n := len(l.Pools)
	furthest := make([]cluster.Span, n)
	for i := range l.Tenants {
		t := &l.Tenants[i]
		if !isNew(t) {
			furthest[i%n] = max(furthest[i%n], Behind(t.Deficit, t.Entitlement))
		}
	}
	for i := range l.Tenants {
		t := &l.Tenants[i]
		if isNew(t) {
			t.Deficit = Credit(entitled[i], min(furthest[i%n], s.CreditCap))
		}
		anew = anew || t.Own() != entitled[i]
		t.Base, t.Entitlement = base[i], entitled[i]+t.Repays
		t.Deficit = max(t.Deficit, -Ahead(t, largest[i], limit[i], s))
	}
	repay(l, holds, s, anew)
}

// Ahead gives how far ahead a tenant may be in a pool, by the largest gang and the larger of the entitlements with and without trades.
func Ahead(t *cluster.TenantPool, largest, limit cluster.MicroGPU, s *cluster.Settings) cluster.GPUTime {
	ahead := largest.Over(s.Term)
	if t.Repays >= 0 {
		ahead += Credit(limit, s.Threshold)
	}
	return ahead
}

// PartyAhead gives how far ahead a party may be in a pool, by the largest gang of all parties and as Ahead.
func PartyAhead(largest, limit cluster.MicroGPU, s *cluster.Settings) cluster.GPUTime {
	return 2 * (largest.Over(s.Term) + Credit(limit, s.Term))
}

// SettleParties does for the accounts of parties what Settle does for those of tenants. All parties that want
// their whole entitlement share what they lack together, in proportion to it, so that their accounts in a pool sum to 0. (If
// the party furthest ahead were set to 0, a small party with a large gang would lift all others beyond their limits.)
// entitled is by row; largest is the largest gang of any party, and a row may be ahead by twice that and twice its entitlement.
//
// untraded is that of Settle: what a party owes counts although it has sold its whole entitlement.
func SettleParties(rows []cluster.TenantPool, pools int, entitled, untraded []cluster.MicroGPU, largest cluster.MicroGPU, s *cluster.Settings) {
	limit := Most(entitled, untraded)
	for p := range pools {
		var late, due cluster.GPUTime
		furthest := cluster.Span(0)
		for i := p; i < len(rows); i += pools {
			r := &rows[i]
			if isNew(r) {
				continue
			}
			furthest = max(furthest, Behind(r.Deficit, r.Entitlement))
			if r.Entitlement > 0 && r.Demand >= r.Entitlement || soldOut(r, i, entitled, untraded) {
				late, due = late+r.Deficit, due+cluster.GPUTime(entitled[i])
			}
		}
		for i := p; i < len(rows); i += pools {
			r := &rows[i]
			if isNew(r) {
				r.Deficit = Credit(entitled[i], min(furthest, s.CreditCap))
			} else if due > 0 && entitled[i] > 0 {
				r.Deficit -= cluster.GPUTime(Portion(int64(late), int64(entitled[i]), int64(due)))
			}
			r.Base, r.Entitlement = entitled[i], entitled[i]
			r.Deficit = max(r.Deficit, -PartyAhead(largest, limit[i], s))
		}
	}
}

// Portion gives num/den of an amount of either sign.
func Portion(n, num, den int64) int64 {
	if n < 0 {
		return -cluster.MulDiv(-n, num, den)
	}
	return cluster.MulDiv(n, num, den)
}

// writeOff subtracts from all deficits the common part that even tenants that want their whole
// entitlement lack: hand-overs, and GPUs on which nothing fits. No tenant received that time, so
// no tenant owes it. Otherwise it would grow until all tenants reach the credit cap and are
// indistinguishable. Differences between tenants stay.
//
// A tenant that has sold its whole entitlement in a pool lacks no GPUs there, but it may owe GPU
// time. In such a pool the common part is at most the sum of all deficits: the rest is owed.
func writeOff(l *cluster.Ledger, entitled, untraded []cluster.MicroGPU) {
	n := len(l.Pools)
	least := make([]cluster.Span, n) // by pool
	for p := range least {
		least[p] = none
	}
	for i := range l.Tenants {
		if t := &l.Tenants[i]; t.Entitlement > 0 && wantsAll(t) {
			least[i%n] = min(least[i%n], Behind(t.Deficit, entitled[i]))
		}
	}
	for p := range least {
		if least[p] == none {
			least[p] = 0
		}
	}
	for i := range l.Tenants {
		if t := &l.Tenants[i]; soldOut(t, i, entitled, untraded) {
			least[i%n] = min(least[i%n], common(l, t.Pool, entitled))
		}
	}
	for i := range l.Tenants {
		l.Tenants[i].Deficit -= Credit(entitled[i], least[i%n])
	}
}

// none is more than any time by which a tenant may be behind.
const none cluster.Span = math.MaxInt64

// wantsAll tells whether a tenant wants its whole entitlement. Of a tenant below an account that follows from what it wants, where it wants
// little, so that it must want more.
func wantsAll(t *cluster.TenantPool) bool {
	return t.Demand > t.Entitlement || t.Demand == t.Entitlement && t.Under == ""
}

// soldOut tells whether the tenant of row i has sold its whole entitlement in a pool, or had until the last look.
func soldOut(t *cluster.TenantPool, i int, entitled, untraded []cluster.MicroGPU) bool {
	return untraded != nil && untraded[i] > 0 && min(entitled[i], t.Entitlement) == 0
}

// Most gives, by row, the larger of a tenant's entitlements with and without trades; untraded nil =
// there are no trades.
func Most(entitled, untraded []cluster.MicroGPU) []cluster.MicroGPU {
	if untraded == nil {
		return entitled
	}
	out := slices.Clone(entitled)
	for i := range out {
		out[i] = max(out[i], untraded[i])
	}
	return out
}

// common gives the sum of a pool's deficits as time at the sum of its entitlements.
func common(l *cluster.Ledger, pool string, entitled []cluster.MicroGPU) cluster.Span {
	var deficit cluster.GPUTime
	var all cluster.MicroGPU
	for i := range l.Tenants {
		if l.Tenants[i].Pool == pool {
			deficit, all = deficit+l.Tenants[i].Deficit, all+entitled[i]
		}
	}
	return Behind(deficit, all)
}

// Credit gives the GPU time of an entitlement over a span of any length.
func Credit(entitled cluster.MicroGPU, span cluster.Span) cluster.GPUTime {
	return cluster.GPUTime(cluster.MulDiv(int64(entitled), int64(max(span, 0)), int64(cluster.WholeGPU)))
}

func isNew(t *cluster.TenantPool) bool {
	return t.Base == 0 && t.Alloc == 0 && t.Due == 0 && t.Deficit == 0 && t.SelCarry == 0
}

// Behind gives a deficit as time at the tenant's own entitlement: how long it would have to hold
// twice that to be even. This orders tenants like the rho of eq. 12 with eq. 16 over equal time.
// Without an entitlement it is the minimum: such tenants only get idle GPUs.
func Behind(deficit cluster.GPUTime, entitlement cluster.MicroGPU) cluster.Span {
	if entitlement <= 0 {
		return cluster.DueNothing
	}
	if deficit < 0 {
		return -cluster.Span(cluster.MulDiv(int64(-deficit), int64(cluster.WholeGPU), int64(entitlement)))
	}
	return cluster.Span(cluster.MulDiv(int64(deficit), int64(cluster.WholeGPU), int64(entitlement)))
}
