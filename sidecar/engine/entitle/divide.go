// Package entitle computes the entitlement of every tenant: its quota by weight, or its allocation by a
// policy for heterogeneous GPUs. It also builds the requests to such a policy.
package entitle

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// shares computes the entitlements of tenants and parties.
type shares struct {
	b       *round.Books
	speeds  *speeds.Speeds
	weights []int64 // by tenant; those below one account as they divide its weight now
	several []bool  // by tenant: its active jobs are of several users
}

// Entitlements of tenants and parties, by pool.
type (
	byTenant = round.Table[round.TenantIndex, cluster.MicroGPU]
	byParty  = round.Table[round.PartyIndex, cluster.MicroGPU]
)

// Divide sets every tenant's entitlement: its quota by weight of every pool's GPUs (ASTRAEA eq. 6). GPUs held
// by jobs of no tenant do not count. A tenant's cells are its own; only the other GPUs are shared by weight
// (SEMANTICS §1). Tenants below one account (cluster.Tenant.Under) divide the sum of their quotas by what they want, so that it does
// not matter to others which of them want GPUs.
//
// active is the jobs that count as demand, by tenant. capacity is the number of GPUs by pool, as counted by Capacity. own is the GPUs that tenants have in cells of their
// own; nil = no cells. Divide returns the request for a new allocation; nil = the last allocation stays in force.
func Divide(b *round.Books, s *speeds.Speeds, active [][]ltgf.Claimant, capacity []int, own *round.Owned, kept *Quotas) *cluster.AllocationRequest {
	x := &shares{b: b, speeds: s, weights: make([]int64, len(b.In.Tenants))}
	for t := range x.b.In.Tenants {
		x.weights[t] = x.b.In.Weight(round.TenantIndex(t))
	}
	base := round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.b.In.Tenants), len(x.b.In.Pools))
	for p := range x.b.In.Pools {
		commons := capacity[p]
		if own != nil {
			for _, gpus := range own.Base[p] {
				commons -= gpus
			}
		}
		for t, q := range kept.of(p, cluster.MicroGPU(max(commons, 0))*cluster.WholeGPU, x.weights) {
			*base.At(round.TenantIndex(t), p) = q
		}
	}
	entitled, largest := x.nest(base, active, own), x.largest()
	withCells(base, own)
	withCells(entitled, own)
	var untraded []cluster.MicroGPU
	var question *cluster.AllocationRequest
	if x.b.In.Settings.Divide != "" {
		question = x.ask(capacity, own)
		entitled, untraded = x.market(capacity, entitled, own)
		largest = owe(largest, ltgf.Most(entitled.Cells, untraded))
	} else {
		x.convert(byParty{}, entitled, nil, nil)
	}
	ltgf.Inherit(&x.b.Ledger, x.b.In.Snapshot.Tenants, base.Cells)
	ltgf.Settle(&x.b.Ledger, base.Cells, entitled.Cells, untraded, largest, x.held(), x.b.In.Settings, x.b.In.Snapshot.Ledger.At/cluster.Instant(x.b.In.Settings.Term) != x.b.In.Now/cluster.Instant(x.b.In.Settings.Term))
	x.repay(entitled)
	return question
}

// Quotas are the last quotas by weight, by pool.
type Quotas []quotas

// quotas are the parts of a total by weight.
type quotas struct {
	total   cluster.MicroGPU
	weights []int64
	parts   []cluster.MicroGPU
}

// of returns policy.Quota of a pool. It must not be changed.
func (k *Quotas) of(pool int, total cluster.MicroGPU, weights []int64) []cluster.MicroGPU {
	for pool >= len(*k) {
		*k = append(*k, quotas{})
	}
	q := &(*k)[pool]
	if q.parts == nil || q.total != total || !slices.Equal(q.weights, weights) {
		*q = quotas{total, slices.Clone(weights), policy.Quota(total, weights)}
	}
	return q.parts
}

// withCells adds the GPUs of tenants' own cells; own nil = there are none.
func withCells(to byTenant, own *round.Owned) {
	if own == nil {
		return
	}
	for p, gpus := range own.Base {
		for t, n := range gpus {
			*to.At(round.TenantIndex(t), p) += cluster.MicroGPU(n) * cluster.WholeGPU
		}
	}
}

// repay gives the repayments of tenants to their parties, or takes them from these, in proportion to their entitlements.
func (x *shares) repay(entitled byTenant) {
	if x.b.JobsQueue {
		return
	}
	accounts := x.b.Accounts()
	for k := range x.b.Divided.PartyRows.Rows() {
		t := x.b.Divided.Parties[k].Tenant
		for p := range x.b.In.Pools {
			row, all := x.b.Divided.PartyRows.At(k, p), *entitled.At(t, p)
			if repays := accounts.At(t, p).Repays; repays != 0 && all > 0 {
				row.Repays = cluster.MicroGPU(ltgf.Portion(int64(repays), int64(row.Entitlement), int64(all)))
				row.Entitlement += row.Repays
				x.b.Divided.TenantRows.At(t, p).Entitlement += row.Repays
			}
		}
	}
}

// largest returns the largest gang of each tenant, by row of the ledger.
func (x *shares) largest() []int {
	largest := make([]int, len(x.b.In.Tenants))
	for i := range x.b.In.Snapshot.Cases {
		if st := &x.b.Jobs[i]; st.Is.Tenant >= 0 && (st.Is.Live || !x.b.In.Snapshot.Cases[i].Gone) {
			largest[st.Is.Tenant] = max(largest[st.Is.Tenant], st.Is.GPUs, st.Is.Held)
		}
	}
	out := round.NewTable[round.TenantIndex, int](len(x.b.In.Tenants), len(x.b.In.Pools))
	for t := range out.Rows() {
		for p := range x.b.In.Pools {
			*out.At(t, p) = largest[t]
		}
	}
	return out.Cells
}

// held returns the GPUs that tenants hold, by row of the ledger.
func (x *shares) held() []int {
	out := round.NewTable[round.TenantIndex, int](len(x.b.In.Tenants), len(x.b.In.Pools))
	for i := range x.b.Jobs {
		if st := &x.b.Jobs[i]; st.Is.Live && !st.Is.Waits && st.Is.Tenant >= 0 && len(st.Can.Pools) > 0 {
			*out.At(st.Is.Tenant, st.Can.Pools[0]) += st.Is.Held
		}
	}
	return out.Cells
}

// Capacity returns the number of GPUs in every pool that tenants can share. It also updates the ledger's
// counts of all GPUs and of bad ones.
func Capacity(b *round.Books, site *place.Site) []int {
	capacity := make([]int, len(b.In.Pools))
	for p := range b.In.Pools {
		row := &b.Ledger.Pools[p]
		row.GPUs, row.BadGPUs = site.Count(p)
		capacity[p] = row.GPUs - row.BadGPUs
	}
	for i := range b.In.Snapshot.Cases {
		st := &b.Jobs[i]
		if !st.Is.Live || st.Is.Waits || st.Is.Tenant >= 0 || b.Records[i].Payer() != "" {
			continue
		}
		for _, hold := range b.In.Snapshot.Cases[i].Job.Holds {
			if p := b.In.Pool(hold.Model); p >= 0 && !site.Bad(hold.Node) {
				capacity[p] -= hold.GPUs
			}
		}
	}
	for p := range capacity {
		capacity[p] = max(capacity[p], 0)
	}
	return capacity
}
