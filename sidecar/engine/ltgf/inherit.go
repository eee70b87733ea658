package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Inherit moves deficits and debts along with weight that is divided anew among the tenants below one account
// (cluster.Tenant.Under): accounts that come, go, get other names, or other shares. A tenant that loses a part of its weight
// passes that part of its accounts to the tenants that gain it, so that a coordinator can neither drop debts nor make credit. A tenant that
// comes in a place that had weight before begins with what it takes over; others are ranked by Settle.
//
// tenants are the snapshot's, by name, and base is by row of the ledger.
func Inherit(l *cluster.Ledger, tenants []cluster.Tenant, base []cluster.MicroGPU) {
	n := len(l.Pools)
	var places []string
	for i := range l.Tenants {
		t := &l.Tenants[i]
		for len(tenants) > 0 && tenants[0].Name < t.Tenant { // both are by name
			tenants = tenants[1:]
		}
		if len(tenants) > 0 && tenants[0].Name == t.Tenant {
			t.Under = tenants[0].Under
		}
		if t.Under != "" && !slices.Contains(places, t.Under) {
			places = append(places, t.Under)
		}
	}
	for _, place := range places {
		for p := range n {
			inherit(l, place, p, n, base)
		}
	}
}

// inherit does so below one account and in one pool.
func inherit(l *cluster.Ledger, place string, p, n int, base []cluster.MicroGPU) {
	var was, is cluster.MicroGPU
	for i := p; i < len(l.Tenants); i += n {
		if l.Tenants[i].Under == place {
			was, is = was+l.Tenants[i].Base, is+base[i]
		}
	}
	if was == 0 || is == 0 {
		return
	}
	// Parts of the place's weight, in billionths. Quotas are rounded to a millionth of a GPU.
	const whole = 1_000_000_000
	rounding := 4*whole/int64(min(was, is)) + 1
	gains, all := make([]int64, len(l.Tenants)), int64(0)
	for i := p; i < len(l.Tenants); i += n {
		t := &l.Tenants[i]
		if t.Under != place {
			continue
		}
		gains[i] = cluster.MulDiv(int64(base[i]), whole, int64(is)) - cluster.MulDiv(int64(t.Base), whole, int64(was))
		if max(gains[i], -gains[i]) <= rounding {
			gains[i] = 0
		}
		all += max(gains[i], 0)
	}
	if all == 0 {
		return
	}
	for i := p; i < len(l.Tenants); i += n {
		if t := &l.Tenants[i]; gains[i] < 0 {
			had := max(cluster.MulDiv(int64(t.Base), whole, int64(was)), 1)
			lost := min(-gains[i], had)
			passOn(l, gains, all, Portion(int64(t.Deficit), lost, had), func(to int, time cluster.GPUTime) {
				t.Deficit -= time
				l.Tenants[to].Deficit += time
			})
			for _, lot := range slices.Clone(t.Lots) {
				passOn(l, gains, all, Portion(int64(lot.Time), lost, had), func(to int, time cluster.GPUTime) {
					shift(t, lot.Start, -time)
					shift(&l.Tenants[to], lot.Start, time)
				})
			}
		}
	}
	for i := p; i < len(l.Tenants); i += n {
		if t := &l.Tenants[i]; gains[i] > 0 && isNew(t) {
			t.Base = base[i] // it is no newcomer for Settle
		}
	}
}

// passOn divides an amount among the rows that gain, in proportion.
func passOn(l *cluster.Ledger, gains []int64, all, amount int64, give func(to int, time cluster.GPUTime)) {
	seen, given := int64(0), int64(0)
	for i := range l.Tenants {
		if gains[i] <= 0 {
			continue
		}
		seen += gains[i]
		upTo := Portion(amount, seen, all)
		if upTo != given {
			give(i, cluster.GPUTime(upTo-given))
		}
		given = upTo
	}
}
