package ltgf

import "github.com/fairlease/fairlease/sidecar/cluster"

// Want remembers how many GPUs of its entitlement each tenant wanted last: at once if it is more than what counts of
// the earlier want (see cluster.TenantPool.Lately). Demand and entitlements must be those of now. With quiet 0
// nothing is remembered.
func Want(l *cluster.Ledger, now cluster.Instant, quiet cluster.Span) {
	for i := range l.Tenants {
		t := &l.Tenants[i]
		if quiet == 0 {
			t.Wanted, t.WantedAt = 0, 0
			continue
		}
		if wants := min(t.Demand, t.Own()); wants > 0 && wants >= t.Lately(now, quiet) {
			t.Wanted, t.WantedAt = wants, now
		} else if t.Wanted > 0 && now.Sub(t.WantedAt) >= quiet {
			t.Wanted, t.WantedAt = 0, 0
		}
	}
}
