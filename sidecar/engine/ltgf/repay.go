package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// repay moves entitlements from debtors to creditors, in each pool, once a term or when
// entitlements change (anew). Both sides have bounds. A debtor keeps RepayFloorPercent of its
// entitled demand. A creditor's entitlement is at most burst.max times its own, at most its
// demand, and exceeds its own by at most the GPUs that it holds. The remaining debt of a term is
// spread over that term.
func repay(l *cluster.Ledger, holds []cluster.MicroGPU, s *cluster.Settings, anew bool) {
	n := len(l.Pools)
	if n == 0 || !anew {
		return
	}
	for p := range n {
		creditors, debtors := begins(l, p, s)
		var pays, gets []int64
		var sumPays, sumGets int64
		for i := p; i < len(l.Tenants); i += n {
			l.Tenants[i].Entitlement, l.Tenants[i].Repays = l.Tenants[i].Own(), 0
			var pay, get cluster.MicroGPU
			if t := &l.Tenants[i]; t.Repaying || creditors && t.Owed < 0 || debtors && t.Owed > 0 {
				pay, get = repayable(t, holds[i], s)
			}
			pays, gets = append(pays, int64(pay)), append(gets, int64(get))
			sumPays, sumGets = sumPays+int64(pay), sumGets+int64(get)
		}
		moved := min(sumPays, sumGets)
		if moved == 0 {
			continue
		}
		var paid, got, seenPays, seenGets int64
		for k, i := 0, p; i < len(l.Tenants); k, i = k+1, i+n {
			t := &l.Tenants[i]
			seenPays, seenGets = seenPays+pays[k], seenGets+gets[k]
			upPaid, upGot := cluster.MulDiv(moved, seenPays, sumPays), cluster.MulDiv(moved, seenGets, sumGets)
			t.Repays = cluster.MicroGPU(upGot - got - (upPaid - paid))
			t.Entitlement += t.Repays
			paid, got = upPaid, upGot
		}
	}
}

// manyTerms is the size of an account, in terms of its tenant's entitlement, from which tenants
// on the other side take part whose own accounts are below one term.
const manyTerms = 4

// begins records which tenants take part in a pool's repayments: each from when its account
// exceeds one term of its entitlement until it is even. A tenant's credit may be owed by many
// tenants with less than that each. begins tells, of creditors and of debtors, whether one is so
// far from even that the whole other side takes part.
func begins(l *cluster.Ledger, p int, s *cluster.Settings) (creditors, debtors bool) {
	for i := p; i < len(l.Tenants); i += len(l.Pools) {
		t := &l.Tenants[i]
		left, term := unsettled(t), Credit(t.Own(), s.Term)
		switch {
		case left <= 0:
			t.Repaying = false
		case left > term:
			t.Repaying = true
		}
		far := t.Own() > 0 && left > manyTerms*term
		creditors, debtors = creditors || far && t.Owed > 0, debtors || far && t.Owed < 0
	}
	return creditors, debtors
}

// unsettled gives a tenant's debt less its deficit. If both have the same sign, the order of
// tenants, which follows deficits, settles that part by itself. If they contradict each other, as
// with gangs that alternate and leave GPUs idle in between, a debtor is behind nevertheless, and
// has nothing to give until it is not.
func unsettled(t *cluster.TenantPool) cluster.GPUTime {
	return max(t.Owed, -t.Owed) - max(t.Deficit, -t.Deficit)
}

// repayable gives how much of its entitlement a tenant could give, or how much of others' it
// could get. An entitlement that it does not want repays nothing: others get that anyway.
func repayable(t *cluster.TenantPool, holds cluster.MicroGPU, s *cluster.Settings) (pay, get cluster.MicroGPU) {
	due, left := t.Own(), unsettled(t)
	if left <= 0 || s.RepayFloorPercent <= 0 {
		return 0, 0
	}
	rate := cluster.MicroGPU(cluster.MulDiv(int64(left), int64(cluster.WholeGPU), int64(max(s.Term, 1))))
	if t.Owed < 0 {
		most := cluster.MulDiv(int64(min(due, t.Demand)), int64(100-min(s.RepayFloorPercent, 100)), 100)
		return min(cluster.MicroGPU(most), rate), 0
	}
	most := min(max(t.Demand-due, 0), holds)
	if s.BurstMaxMilli > 0 {
		most = min(most, cluster.MicroGPU(cluster.MulDiv(int64(due), s.BurstMaxMilli, 1000))-due)
	}
	return 0, min(max(most, 0), rate)
}
