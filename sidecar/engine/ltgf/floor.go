package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Floor gives the part of its entitlement that a tenant keeps in a pool while it repays others: repay.floor percent of what it
// wants of its due; 0 = it repays nothing. Some of a debt may be in a creditor's deficit, too: it counts before Repays moves any entitlement.
func Floor(t *cluster.TenantPool, s *cluster.Settings) cluster.MicroGPU {
	if t.Owed >= 0 || !t.Repaying && t.Repays >= 0 || s.RepayFloorPercent <= 0 {
		return 0
	}
	return cluster.MicroGPU(cluster.MulDiv(int64(max(min(t.Own(), t.Demand), 0)), int64(min(s.RepayFloorPercent, 100)), 100))
}

// Lacks gives what a tenant that repays will lack of its floor in the hour, or the longer term, that ends at end, if it holds nothing
// from now on; negative = it has held more. GPU time beyond its floor in one term counts as at most a gang: else it would be left
// without GPUs for as long as it held twice its floor, and then need twice its floor, which leases in force may not leave it.
func Lacks(t *cluster.TenantPool, gang int, now, end cluster.Instant, s *cluster.Settings) cluster.GPUTime {
	sum := Credit(Floor(t, s), end.Sub(now))
	for _, lot := range t.Lacks {
		if lot.Start >= end.Add(-floorSpan(s)) {
			sum += max(lot.Time, -cluster.Times(gang, s.Term))
		}
	}
	return sum
}

func floorSpan(s *cluster.Settings) cluster.Span { return max(cluster.Hour, s.Term) }

// lack advances by an interval dt what tenants lack of their floors, in lots of a term, at least five minutes. The order of tenants goes
// by deficits: without this account, a creditor that is far behind would take all GPUs of one that repays.
func (a *accounts) lack(dt cluster.Span) {
	begin := a.now.Add(-dt)
	start := begin - begin%cluster.Instant(max(a.settings.Term, 5*cluster.Minute))
	for i := range a.rows {
		t := &a.rows[i]
		floor := Floor(t, a.settings)
		if floor == 0 {
			t.Lacks = t.Lacks[:0]
			continue
		}
		t.Lacks = slices.DeleteFunc(t.Lacks, func(l cluster.Lot) bool { return l.Start < a.now.Add(-floorSpan(a.settings)) })
		more := Credit(floor, dt) - a.used[i] - a.granted[i] - a.kept[i]
		if n := len(t.Lacks); n > 0 && t.Lacks[n-1].Start >= start {
			t.Lacks[n-1].Time += more
		} else {
			t.Lacks = append(t.Lacks, cluster.Lot{Start: start, Time: more})
		}
	}
}
