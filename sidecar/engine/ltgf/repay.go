package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// repay moves entitlements from tenants that owe GPU time to those that are owed, in each pool. Repayment is bounded on
// both sides: who repays keeps RepayFloorPercent of what it wants of its due, who is repaid holds no more than burst.max
// times its own, and no more than it wants. What is left to repay in a term is spread over that term.
func repay(l *cluster.Ledger, holds []int, s *cluster.Settings, anew bool) {
	n := len(l.Pools)
	if n == 0 || s.RepayFloorPercent <= 0 && !anew {
		return
	}
	if !anew {
		return
	}
	for p := range n {
		var pays, gets []int64
		var sumPays, sumGets int64
		for i := p; i < len(l.Tenants); i += n {
			l.Tenants[i].Entitlement, l.Tenants[i].Repays = l.Tenants[i].Own(), 0
			pay, get := repayable(&l.Tenants[i], holds[i], s)
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

// repayable gives what a tenant could give of its due, or be given of others'.
func repayable(t *cluster.TenantPool, holds int, s *cluster.Settings) (pay, get cluster.MicroGPU) {
	due := t.Own()
	// What the deficit carries already settles itself.
	left := max(t.Owed, -t.Owed) - max(min(t.Deficit, t.Owed), min(-t.Deficit, -t.Owed), 0)
	if left <= 0 {
		t.Repaying = false
	} else if left > Credit(due, s.Term) {
		t.Repaying = true
	}
	if !t.Repaying || s.RepayFloorPercent <= 0 {
		return 0, 0
	}
	rate := cluster.MicroGPU(cluster.MulDiv(int64(left), int64(cluster.WholeGPU), int64(max(s.Term, 1))))
	if t.Owed < 0 {
		floor := cluster.MicroGPU(cluster.MulDiv(int64(min(due, t.Demand)), int64(s.RepayFloorPercent), 100))
		return min(due-floor, rate), 0
	}
	most := min(max(t.Demand-due, 0), cluster.MicroGPU(holds)*cluster.WholeGPU)
	if s.BurstMaxMilli > 0 {
		most = min(most, cluster.MicroGPU(cluster.MulDiv(int64(due), s.BurstMaxMilli, 1000))-due)
	}
	return 0, min(max(most, 0), rate)
}
