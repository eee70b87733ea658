package engine

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
)

// divide sets every tenant's entitlement: its quota by weight of every pool's
// GPUs (ASTRAEA eq. 6), less what jobs hold that belong to no tenant. Cells that a tenant
// has are its own; what is shared by weight is the rest (SEMANTICS §1).
func (h *hall) divide() {
	n := len(h.Pools)
	capacity := h.capacity()
	weights := make([]int64, len(h.Tenants))
	for t, name := range h.Tenants {
		weights[t] = h.Weight(name)
	}
	base := make([]cluster.MicroGPU, len(h.Ledger.Tenants))
	for p := range h.Pools {
		own := h.own(p)
		commons := capacity[p]
		for _, gpus := range own {
			commons -= gpus
		}
		for t, q := range policy.Quota(cluster.MicroGPU(max(commons, 0))*cluster.WholeGPU, weights) {
			base[t*n+p] = q
			if own != nil {
				base[t*n+p] += cluster.MicroGPU(own[t]) * cluster.WholeGPU
			}
		}
	}
	entitled, largest := base, h.largest()
	if h.Settings.Divide != "" {
		entitled = h.market(capacity, base)
		largest = owe(largest, entitled)
	}
	ltgf.Settle(&h.Ledger, base, entitled, largest, h.held(), h.Settings, h.Snapshot.Ledger.At/cluster.Instant(h.Settings.Term) != h.Now/cluster.Instant(h.Settings.Term))
}

// own gives the GPUs of a pool that each tenant has in cells of its own; nil = there are none.
func (h *hall) own(pool int) []int {
	if h.Snapshot.Cells == nil {
		return nil
	}
	plain, err := h.layout()
	if err != nil {
		return nil
	}
	own := make([]int, len(h.Tenants))
	for t, name := range h.Tenants {
		own[t] = plain.GPUs(name, h.Pools[pool])
	}
	for _, f := range h.Snapshot.Lost {
		if t, ok := slices.BinarySearch(h.Tenants, f.VC); ok {
			own[t] = max(own[t]-f.Cells*plain.Size(f.Chain, f.Type, h.Pools[pool]), 0)
		}
	}
	return own
}

// capacity counts the GPUs of every pool that tenants can share, and keeps the
// ledger's counts of all and of bad ones.
func (h *hall) capacity() []int {
	capacity := make([]int, len(h.Pools))
	for p := range h.Pools {
		row := &h.Ledger.Pools[p]
		row.GPUs, row.BadGPUs = h.field.Site.Count(p)
		capacity[p] = row.GPUs - row.BadGPUs
	}
	for i := range h.Snapshot.Cases {
		st := &h.Jobs[i]
		if !st.Live || st.Waits || h.Records[i].Payer() != "" {
			continue
		}
		for _, hold := range h.Snapshot.Cases[i].Job.Holds {
			if p := h.Pool(hold.Model); p >= 0 && !h.field.Site.Bad(hold.Node) {
				capacity[p] -= hold.GPUs
			}
		}
	}
	for p := range capacity {
		capacity[p] = max(capacity[p], 0)
	}
	return capacity
}

// largest gives the largest gang of the tenant of every row of the ledger.
func (h *hall) largest() []int {
	byTenant := make([]int, len(h.Tenants))
	for i := range h.Snapshot.Cases {
		if st := &h.Jobs[i]; st.Tenant >= 0 && !h.Snapshot.Cases[i].Gone {
			byTenant[st.Tenant] = max(byTenant[st.Tenant], st.GPUs, st.Held)
		}
	}
	out := make([]int, len(h.Ledger.Tenants))
	for i := range out {
		out[i] = byTenant[i/len(h.Pools)]
	}
	return out
}

// held gives the GPUs that tenants hold, by row of the ledger.
func (h *hall) held() []int {
	out := make([]int, len(h.Ledger.Tenants))
	for i := range h.Jobs {
		if st := &h.Jobs[i]; st.Live && !st.Waits && st.Tenant >= 0 && len(st.Pools) > 0 {
			out[st.Tenant*len(h.Pools)+st.Pools[0]] += st.Held
		}
	}
	return out
}
