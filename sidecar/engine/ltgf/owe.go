package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// accounts computes the debts between tenants at the end of an interval.
type accounts struct {
	settings *cluster.Settings
	now      cluster.Instant
	rows     []cluster.TenantPool // the ledger's: tenant by tenant, one per pool
	pools    int
	usage
	lists *lists
	lent  []cluster.GPUTime // by row: debt to tenants at the last look for GPUs that they had left idle
}

// accounts opens the accounts of a ledger without bookings of the interval.
func (b *books) accounts() *accounts {
	a := &accounts{settings: b.settings, now: b.now, rows: b.ledger.Tenants, pools: len(b.ledger.Pools), usage: b.usage, lists: &b.lists}
	a.lent = a.zeros()
	for i := range a.rows {
		t := &a.rows[i]
		a.lent[i] = max(t.Deficit-max(t.Owed, 0), 0)
	}
	return a
}

// settle books the use of each other's entitlements in an interval dt. In each pool, with the
// shortfalls s = max(0, min(E, demand)·dt - used), the surpluses u = max(0, used - E·dt), their
// sums S and U, and T = min(S, U), tenant j is owed s_j·T/S more and tenant i owes u_i·T/U more.
// So the accounts of a pool sum to 0, to the GPU-millisecond. No tenant owes a shortfall without
// a surplus (S > U: hand-overs, GPUs on which nothing fits). A surplus without a shortfall (U >
// S) is no debt, but makes up for what its tenant is owed: see even. Neither is a surplus with which a tenant gets back what it lent while it was
// idle (the deficit, up to credit.cap, beyond its debt). E is the entitlement without repayments.
//
// If a policy divides the models, a tenant may want GPUs of several pools at a time: then its
// shortfalls in all of them are at most its unmet demand.
func (a *accounts) settle(dt cluster.Span) {
	lacks, over, owed := a.zeros(), a.zeros(), a.zeros()
	had := a.had()
	for i := range a.rows {
		t, used := &a.rows[i], had[i]
		var due cluster.GPUTime
		due, t.OwedCarry = cluster.Accrue(t.Own(), dt, t.OwedCarry)
		wants := due
		if demand := a.demand(i); demand < t.Own() {
			wants, _ = cluster.Accrue(demand, dt, 0)
		}
		lacks[i], over[i] = max(wants-used, 0), max(used-due-a.lent[i], 0)
	}
	a.limit(lacks, had, dt)
	for p := range a.pools {
		var short, more cluster.GPUTime
		for i := p; i < len(lacks); i += a.pools {
			short, more = short+lacks[i], more+over[i]
		}
		moved := min(short, more)
		share(owed[p:], lacks[p:], a.pools, short, moved)
		share(owed[p:], over[p:], a.pools, more, -moved)
		a.even(p, owed, over, more, moved)
	}
	start := a.lotStart()
	for i := range owed {
		owe(&a.rows[i], owed[i], start)
	}
	a.forgive(dt)
}

// even books the rest of the surpluses in a pool, which nobody lacked, against what their tenants are owed: who was denied GPUs and then
// had as much beyond its due at nobody's cost needs it from nobody. Else a tenant that asked for more than it used would be repaid by others what it already has.
// The debts shrink by as much, in proportion. owed is the changes in the interval so far, over the surpluses, more their sum, moved the part that became debts.
func (a *accounts) even(p int, owed, over []cluster.GPUTime, more, moved cluster.GPUTime) {
	if more == moved {
		return
	}
	offs, debts := a.zeros(), a.zeros()
	var off, debt cluster.GPUTime
	for i := p; i < len(owed); i += a.pools {
		now := a.rows[i].Owed + owed[i]
		if rest := over[i] - cluster.GPUTime(cluster.MulDiv(int64(over[i]), int64(moved), int64(more))); now > 0 {
			offs[i] = min(now, rest)
		}
		debts[i] = max(-now, 0)
		off, debt = off+offs[i], debt+debts[i]
	}
	share(owed[p:], offs[p:], a.pools, off, -min(off, debt))
	share(owed[p:], debts[p:], a.pools, debt, min(off, debt))
}

// had gives, by row, the GPU time of tenants in an interval: used by their jobs, granted to them
// or gathered for them, less destroyed work. Destroyed work is subtracted at most at the rate at
// which the tenant uses GPUs again: booked at once, a single stop would outweigh the shortfalls
// of all other tenants in that interval. T is at most U, so destroyed work makes a debt only if
// another tenant exceeds its entitlement meanwhile.
func (a *accounts) had() []cluster.GPUTime {
	out := a.zeros()
	for i := range out {
		t := &a.rows[i]
		off := min(t.Destroyed, a.used[i])
		t.Destroyed -= off
		out[i] = a.used[i] - off + a.kept[i] + a.granted[i]
	}
	return out
}

// demand gives the demand of a row's tenant in its pool. If a policy divides the models, a job is
// entitled to parts of several pools at a time: then the tenant's whole demand counts in each.
func (a *accounts) demand(i int) cluster.MicroGPU {
	if !a.settings.Divides() {
		return a.rows[i].Demand
	}
	n, sum := a.pools, cluster.MicroGPU(0)
	for _, t := range a.rows[i-i%n : i-i%n+n] {
		sum += t.Demand
	}
	return sum
}

// limit reduces each tenant's shortfalls to its unmet demand, if a policy divides the models.
func (a *accounts) limit(lacks, had []cluster.GPUTime, dt cluster.Span) {
	n := a.pools
	if !a.settings.Divides() || n < 2 {
		return
	}
	for first := 0; first < len(lacks); first += n {
		var sum, used cluster.GPUTime
		for i := first; i < first+n; i++ {
			sum, used = sum+lacks[i], used+had[i]
		}
		wants, _ := cluster.Accrue(a.demand(first), dt, 0)
		if left := max(wants-used, 0); left < sum {
			for i := first; i < first+n; i++ {
				lacks[i] = cluster.GPUTime(cluster.MulDiv(int64(lacks[i]), int64(left), int64(sum)))
			}
		}
	}
}

// lotStart gives the start of the lot for new debts. The time for which debts matter is cut into
// lots; debts without a time limit are one lot.
func (a *accounts) lotStart() cluster.Instant {
	span := cluster.Instant(max(a.settings.Window, a.settings.HalfLife))
	if span <= 0 {
		return 0
	}
	return a.now - a.now%max(span/cuts, 1)
}

// share distributes an amount over every step-th row, in proportion to own over sum. The parts sum
// to the amount.
func share(to, own []cluster.GPUTime, step int, sum, amount cluster.GPUTime) {
	if amount == 0 {
		return
	}
	var seen, given cluster.GPUTime
	for i := 0; i < len(own); i += step {
		if own[i] > 0 {
			seen += own[i]
			upTo := cluster.GPUTime(cluster.MulDiv(int64(max(amount, -amount)), int64(seen), int64(sum)))
			if amount < 0 {
				upTo = -upTo
			}
			to[i], given = to[i]+upTo-given, upTo
		}
	}
}

func (a *accounts) zeros() []cluster.GPUTime { return a.lists.zeros(len(a.rows)) }

// owe changes a tenant's debt account: repayments reduce its oldest lots, new debts go to the
// newest.
func owe(t *cluster.TenantPool, change cluster.GPUTime, start cluster.Instant) {
	t.Owed += change
	gone := 0
	for ; change != 0 && gone < len(t.Lots) && (t.Lots[gone].Time > 0) != (change > 0); gone++ {
		if left := t.Lots[gone].Time + change; left != 0 && (left > 0) != (change > 0) {
			t.Lots[gone].Time, change = left, 0
			break
		}
		change += t.Lots[gone].Time
	}
	t.Lots = slices.Delete(t.Lots, 0, gone)
	if n := len(t.Lots); change != 0 && n > 0 && t.Lots[n-1].Start >= start { // later: the window has changed
		t.Lots[n-1].Time += change
	} else if change != 0 {
		t.Lots = append(t.Lots, cluster.Lot{Start: start, Time: change})
	}
}

// forgive drops what is older than the window from the accounts of each pool: equal amounts of
// credits and debts, oldest first, so that the accounts still sum to 0. With a half-life nothing
// is dropped by age; every account halves in that time.
func (a *accounts) forgive(dt cluster.Span) {
	n := a.pools
	for p := range n {
		switch {
		case a.settings.HalfLife > 0:
			var owed cluster.GPUTime
			for i := p; i < len(a.rows); i += n {
				owed += max(a.rows[i].Owed, 0)
			}
			kept := weight(dt, a.settings.HalfLife)
			a.drop(p, cluster.GPUTime(cluster.MulDiv(int64(owed), weightOne-kept, weightOne)), false)
		case a.settings.Window > 0:
			a.drop(p, a.expired(p), true)
		}
	}
}

// expired gives the expired amount of a pool's accounts, on the side where it is larger.
func (a *accounts) expired(p int) cluster.GPUTime {
	var credits, debts cluster.GPUTime
	oldest := a.now - cluster.Instant(a.settings.Window)
	for i := p; i < len(a.rows); i += a.pools {
		for _, lot := range a.rows[i].Lots {
			if lot.Start > oldest {
				break
			}
			credits, debts = credits+max(lot.Time, 0), debts+max(-lot.Time, 0)
		}
	}
	return max(credits, debts)
}

// drop reduces the credits and the debts of a pool by an amount: the oldest lots first, or all
// accounts in proportion.
func (a *accounts) drop(p int, much cluster.GPUTime, oldest bool) {
	for _, sign := range []cluster.GPUTime{1, -1} {
		if oldest {
			a.dropOldest(p, sign, much)
		} else {
			a.dropEvenly(p, sign, much)
		}
	}
}

func (a *accounts) dropOldest(p int, sign, much cluster.GPUTime) {
	for much > 0 {
		first := -1
		for i := p; i < len(a.rows); i += a.pools {
			if lots := a.rows[i].Lots; len(lots) > 0 && sign*lots[0].Time > 0 && (first < 0 || lots[0].Start < a.rows[first].Lots[0].Start) {
				first = i
			}
		}
		if first < 0 {
			return
		}
		off := min(much, sign*a.rows[first].Lots[0].Time)
		owe(&a.rows[first], -sign*off, 0)
		much -= off
	}
}

func (a *accounts) dropEvenly(p int, sign, much cluster.GPUTime) {
	if much <= 0 {
		return
	}
	own, off := a.zeros(), a.zeros()
	var sum cluster.GPUTime
	for i := p; i < len(a.rows); i += a.pools {
		own[i] = max(sign*a.rows[i].Owed, 0)
		sum += own[i]
	}
	share(off[p:], own[p:], a.pools, sum, min(much, sum))
	for i := p; i < len(a.rows); i += a.pools {
		owe(&a.rows[i], -sign*off[i], 0)
	}
}
