package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Repaid reports whether a tenant repays others in pool p. rows are tenant by tenant, one per pool. Some of a debt may be in a creditor's
// deficit: it counts before Repays moves any entitlement.
func Repaid(rows []cluster.TenantPool, pools, p int) bool {
	for i := p; i < len(rows); i += pools {
		if t := &rows[i]; t.Owed < 0 && (t.Repaying || t.Repays < 0) {
			return true
		}
	}
	return false
}

// Floor gives the part of its due that a tenant keeps in a pool while debts are repaid there, by itself or by others: repay.floor percent of
// what it wants of its due.
func Floor(t *cluster.TenantPool, s *cluster.Settings) cluster.MicroGPU {
	return cluster.MicroGPU(cluster.MulDiv(int64(max(min(t.Own(), t.Demand), 0)), int64(min(max(s.RepayFloorPercent, 0), 100)), 100))
}

// Lacks gives what a tenant will lack of its floor in the hour that ends at end, if it holds nothing from now on, or in four terms, if that is
// more; negative = it has held more. GPU time beyond its floor in one term counts as at most a gang: else it would be left
// without GPUs for as long as it held twice its floor, and then need twice its floor, which leases in force may not leave it.
func Lacks(t *cluster.TenantPool, gang cluster.MicroGPU, now, end cluster.Instant, s *cluster.Settings) cluster.GPUTime {
	lacks := func(span cluster.Span) (sum cluster.GPUTime) {
		for _, lot := range t.Lacks {
			if lot.Start >= end.Add(-span) {
				sum += max(lot.Time, -gang.Over(s.Term))
			}
		}
		return sum
	}
	return max(lacks(cluster.Hour), lacks(4*s.Term)) + Credit(Floor(t, s), end.Sub(now))
}

// lack advances by an interval dt what tenants lack of their floors, in lots of a term, at least five minutes. The order of tenants goes
// by deficits: without this account, a creditor that is far behind would take all GPUs of one that repays, and of others.
func (a *accounts) lack(dt cluster.Span) {
	begin := a.now.Add(-dt)
	start := begin - begin%cluster.Instant(max(a.settings.Term, 5*cluster.Minute))
	oldest := a.now.Add(-max(cluster.Hour, 4*a.settings.Term))
	for p := range a.pools {
		repaid := Repaid(a.rows, a.pools, p) && a.settings.RepayFloorPercent > 0
		for i := p; i < len(a.rows); i += a.pools {
			t := &a.rows[i]
			if !repaid {
				t.Lacks = t.Lacks[:0]
				continue
			}
			t.Lacks = slices.DeleteFunc(t.Lacks, func(l cluster.Lot) bool { return l.Start < oldest || l.Start > a.now })
			more := Credit(Floor(t, a.settings), dt) - a.used[i] - a.granted[i] - a.kept[i]
			if n := len(t.Lacks); n > 0 && t.Lacks[n-1].Start >= start {
				t.Lacks[n-1].Time += more
			} else {
				t.Lacks = append(t.Lacks, cluster.Lot{Start: start, Time: more})
			}
		}
	}
}
