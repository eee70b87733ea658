package why

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Tenants returns every tenant's status in every pool. Where a policy divides GPU models, rho is the tenant's over all
// pools: it may have given one model for another. Tenants reuses the memory of out.
func Tenants(b *Input, out []cluster.TenantStatus) []cluster.TenantStatus {
	out = slices.Grow(out[:0], len(b.Due.Ledger.Tenants))[:len(b.Due.Ledger.Tenants)]
	n := len(b.In.Pools)
	for i := range b.Due.Ledger.Tenants {
		t, pools := &b.Due.Ledger.Tenants[i], b.Due.Ledger.Tenants[i:i+1]
		if b.In.Settings.Divides() {
			pools = b.Due.Ledger.Tenants[i-i%n : i-i%n+n]
		}
		out[i] = cluster.TenantStatus{Tenant: t.Tenant, Pool: t.Pool, Weight: b.In.Weight(round.TenantIndex(i / n)),
			Base: t.Base, Entitlement: t.Entitlement, Demand: t.Demand, Deficit: t.Deficit,
			Behind: ltgf.Behind(t.Deficit, t.Entitlement), Owed: t.Owed, Repays: t.Repays,
			Rho: ltgf.Rho(pools, b.In.Now, b.In.Settings.HalfLife), RhoAll: ltgf.RhoAll(pools)}
	}
	rows := round.TableOf[round.TenantIndex](out, len(b.In.Pools))
	for i := range b.In.Snapshot.Cases {
		st, can := &b.In.Cases[i], &b.Found.Can[i]
		if st.Tenant < 0 || !st.Live {
			continue
		}
		for _, p := range can.Pools {
			if row := rows.At(st.Tenant, p); st.Runs || b.In.Configures(i) {
				row.Holds += cluster.GPUCount(b.In.HeldIn(p, i))
			} else if can.Eligible && b.Leases[i] == nil {
				row.Waiting++
			}
		}
	}
	for i := range out {
		st := &out[i]
		holds := cluster.MicroGPU(st.Holds)
		st.Borrowed = max(holds-st.Entitlement, 0)
		st.Lent = max(st.Entitlement-max(holds, min(st.Demand, st.Entitlement)), 0)
	}
	return out
}
