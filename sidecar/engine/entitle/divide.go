// Package entitle computes the entitlement of every tenant: its quota by weight, or its allocation by a
// policy for heterogeneous GPUs. It also builds the requests to such a policy.
package entitle

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

// Due is what tenants and parties are due. It is valid until the next round's.
type Due struct {
	// Ledger is that of the facts with the entitlements of this round, and what tenants ask for.
	Ledger cluster.Ledger
	// Queues are the tenants that queue for GPUs, or the jobs if JobsQueue. Rows are their accounts, by
	// queue, then pool.
	Queues    []round.Claimant
	Rows      round.Table[round.QueueIndex, cluster.TenantPool]
	JobsQueue bool
	// Parties are those of a policy for heterogeneous GPUs, with the accounts of what it promises; empty = no policy.
	Parties    []round.Claimant
	PartyRows  round.Table[round.PartyIndex, cluster.TenantPool]
	TenantRows round.Table[round.TenantIndex, cluster.TenantPool] // of each tenant's parties together, with those that have left
	Queued     []round.Queued                                     // by case
	Rates      []ltgf.Rate                                        // by case
	// Request asks for a new allocation; nil = the last one stays in force.
	Request *cluster.AllocationRequest

	kept    Quotas
	demands []demand           // memory
	wants   []cluster.MicroGPU // by party: the GPUs that its jobs ask for
	labels  labels
}

// Accounts returns the accounts of tenants.
func (d *Due) Accounts() round.Table[round.TenantIndex, cluster.TenantPool] {
	return round.TableOf[round.TenantIndex](d.Ledger.Tenants, len(d.Ledger.Pools))
}

// UsersBehind returns by how much GPU time each user is behind an equal part of what its tenant receives, with every lease
// in force and claim charged to its end; nil = users do not matter. Where jobs queue, tenants have no turns that users
// could share.
func (d *Due) UsersBehind(in *round.Facts, taken round.Taken) []cluster.GPUTime {
	if in.Settings.Users != cluster.UsersEqual || d.JobsQueue {
		return nil
	}
	use, _ := round.Committed(in, d.Queued, taken, len(d.Ledger.Users), round.UserOf)
	out := make([]cluster.GPUTime, len(d.Ledger.Users))
	for u := range out {
		out[u] = d.Ledger.Users[u].Credit()
		for p := range in.Pools {
			out[u] -= *use.At(round.UserIndex(u), p)
		}
	}
	return out
}

// shares computes the entitlements of tenants and parties.
type shares struct {
	in      *round.Facts
	found   *eligible.Found
	speeds  *speeds.Speeds
	due     *Due
	weights []int64 // by tenant; those below one account as they divide its weight now
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
// capacity is the number of devices by pool, as counted by Open. own is the GPUs that tenants have in cells of their
// own; nil = no cells. users is the account of each case's user in the ledger; nil = there are none.
func (d *Due) Divide(in *round.Facts, found *eligible.Found, s *speeds.Speeds, capacity []int, own *round.Owned, users []int) {
	x := &shares{in: in, found: found, speeds: s, due: d, weights: make([]int64, len(in.Tenants))}
	for t := range x.in.Tenants {
		x.weights[t] = x.in.Weight(round.TenantIndex(t))
	}
	base := round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.in.Tenants), len(x.in.Pools))
	for p := range x.in.Pools {
		commons := capacity[p]
		if own != nil {
			for _, gpus := range own.Base[p] {
				commons -= gpus
			}
		}
		for t, q := range d.kept.of(p, x.in.Worths().In(p, cluster.Micro(max(commons, 0))), x.weights) {
			*base.At(round.TenantIndex(t), p) = q
		}
	}
	entitled, largest := x.nest(base, found.Claimants, own), x.largest()
	withCells(base, own)
	withCells(entitled, own)
	var untraded []cluster.MicroGPU
	d.Request = nil
	if x.in.Settings.Divides() {
		d.Request = x.ask(capacity, own)
		entitled, untraded = x.market(capacity, entitled, own)
		largest = owe(largest, ltgf.Most(entitled.Cells, untraded))
	} else {
		x.convert(byParty{}, entitled, nil, nil)
	}
	ltgf.Inherit(&x.due.Ledger, x.in.Snapshot.Tenants, base.Cells)
	ltgf.Settle(&x.due.Ledger, base.Cells, entitled.Cells, untraded, largest, x.held(), x.in.Settings, x.in.Snapshot.Ledger.At/cluster.Instant(x.in.Settings.Term) != x.in.Now/cluster.Instant(x.in.Settings.Term))
	x.repay(entitled)
	d.Rates = slices.Grow(d.Rates[:0], len(in.Cases))[:len(in.Cases)]
	ltgf.Due(&d.Ledger, d.Rates, found.Claimants, users, s.Faster())
	ltgf.Want(&d.Ledger, in.Snapshot.Ledger.At, in.Now, in.Settings.BindQuiet)
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
	if x.due.JobsQueue {
		return
	}
	accounts := x.due.Accounts()
	for k := range x.due.PartyRows.Rows() {
		t := x.due.Parties[k].Tenant
		for p := range x.in.Pools {
			row, all := x.due.PartyRows.At(k, p), *entitled.At(t, p)
			if repays := accounts.At(t, p).Repays; repays != 0 && all > 0 {
				row.Repays = cluster.MicroGPU(ltgf.Portion(int64(repays), int64(row.Entitlement), int64(all)))
				row.Entitlement += row.Repays
				x.due.TenantRows.At(t, p).Entitlement += row.Repays
			}
		}
	}
}

// largest returns the largest gang of each tenant, by row of the ledger.
func (x *shares) largest() []cluster.MicroGPU {
	largest := make([]cluster.MicroGPU, len(x.in.Tenants))
	for i := range x.in.Snapshot.Cases {
		if st, can := &x.in.Cases[i], &x.found.Can[i]; st.Tenant >= 0 && (st.Live || !x.in.Snapshot.Cases[i].Gone) {
			largest[st.Tenant] = max(largest[st.Tenant], can.GPUs, st.Held)
		}
	}
	out := round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.in.Tenants), len(x.in.Pools))
	for t := range out.Rows() {
		for p := range x.in.Pools {
			*out.At(t, p) = x.in.Worths().In(p, largest[t])
		}
	}
	return out.Cells
}

// held returns the GPUs that tenants hold, by row of the ledger.
func (x *shares) held() []cluster.MicroGPU {
	out := round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.in.Tenants), len(x.in.Pools))
	for i := range x.in.Cases {
		if st, can := &x.in.Cases[i], &x.found.Can[i]; st.Live && !st.Waits && st.Tenant >= 0 && len(can.Pools) > 0 {
			*out.At(st.Tenant, can.Pools[0]) += x.in.HeldIn(can.Pools[0], i)
		}
	}
	return out.Cells
}

// countPools returns the number of GPUs in every pool that tenants can share. It also updates the ledger's
// counts of all GPUs and of bad ones.
func countPools(x *shares) []int {
	site, capacity := x.found.Site, make([]int, len(x.in.Pools))
	for p := range capacity {
		row := &x.due.Ledger.Pools[p]
		all, bad := site.Count(p)
		capacity[p] = all - bad
		row.GPUs, row.BadGPUs = cluster.GPUCount(x.in.Worths().In(p, cluster.Micro(all))), cluster.GPUCount(x.in.Worths().In(p, cluster.Micro(bad)))
	}
	var shared map[cluster.Device]bool // those that have been taken off
	for i := range x.in.Snapshot.Cases {
		st := &x.in.Cases[i]
		if !st.Live || st.Waits || st.Tenant >= 0 || x.in.Records[i].Payer() != "" {
			continue
		}
		holds := x.in.Snapshot.Cases[i].Job.Holds
		for k := range holds {
			hold := &holds[k]
			p := x.in.Pool(hold.Model)
			if p < 0 || site.Bad(hold.Node) {
				continue
			}
			if hold.Size.IsWhole() {
				capacity[p] -= hold.Size.Devices
				continue
			}
			for at := range hold.Devices() {
				if shared == nil {
					shared = map[cluster.Device]bool{}
				}
				if !shared[at] {
					shared[at] = true
					capacity[p]--
				}
			}
		}
	}
	for p := range capacity {
		capacity[p] = max(capacity[p], 0)
	}
	return capacity
}
