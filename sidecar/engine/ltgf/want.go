package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// Want remembers how many GPUs of its entitlement each tenant wanted last: at once if it is more than what counts of
// the earlier want (see cluster.TenantPool.Lately). Demand and entitlements must be those of now; last is the moment of
// the look before. With quiet 0 nothing is remembered.
func Want(l *cluster.Ledger, last, now cluster.Instant, quiet cluster.Span) {
	for i := range l.Tenants {
		t := &l.Tenants[i]
		if t.Wanted > 0 && t.WantedAt == 0 {
			t.WantedAt = last
		}
		wants := min(t.Demand, t.Own())
		switch {
		case quiet > 0 && wants > 0 && wants >= t.Lately(now, quiet):
			t.Wanted, t.WantedAt = wants, 0
		case now.Sub(t.WantedAt) >= quiet:
			t.Wanted, t.WantedAt = 0, 0
		}
	}
}
