package entitle

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// market sets the entitlements of parties by the last allocation, and returns the sums by tenant. A party
// that is new to the allocation gets its part of the tenant's weighted share, within the room left. Without
// an allocation, this holds for all parties. GPUs that belong to no party are shared between tenants by
// weight. capacity is the number of GPUs by pool; base is the weighted share of each tenant; own is the GPUs in tenants'
// cells (nil = no cells). market returns the tenants' entitlements, with trades and without them (nil = there are none).
func (x *shares) market(capacity []int, base byTenant, own *round.Owned) (entitled byTenant, untraded []cluster.MicroGPU) {
	n := len(x.in.Pools)
	due := round.NewTable[round.PartyIndex, cluster.MicroGPU](len(x.due.Parties), n)
	known := x.divided(due)
	entitled = round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.in.Tenants), n)
	asked := x.asked()
	for p := range x.in.Pools {
		room := cluster.MicroGPU(capacity[p]) * cluster.WholeGPU
		var cells, promised []int
		if own != nil {
			cells, promised = own.GPUs[p], own.Base[p]
			x.fitCells(due, p, known, asked, cells, room)
		} else {
			fit(due, p, room)
		}
		for k := range due.Rows() {
			room -= *due.At(k, p)
		}
		x.blind(due, p, known, asked, base, promised, room)
		left := cluster.MicroGPU(capacity[p]) * cluster.WholeGPU
		for k := range due.Rows() {
			*entitled.At(x.due.Parties[k].Tenant, p) += *due.At(k, p)
			left -= *due.At(k, p)
		}
		left -= idleCells(entitled, p, cells, left)
		for t, q := range policy.Quota(max(left, 0), x.weights) {
			*entitled.At(round.TenantIndex(t), p) += q
		}
	}
	parties, untraded := x.untraded(due, entitled)
	x.convert(due, entitled, parties, untraded)
	largest := x.largestGang()
	ltgf.SettleParties(x.due.PartyRows.Cells, n, due.Cells, parties, largest, x.in.Settings)
	ltgf.SettleParties(x.due.TenantRows.Cells, n, x.sums(due.Cells), x.sums(parties), largest, x.in.Settings)
	return entitled, untraded
}

// sums returns the sums of parties' entitlements by tenant; nil = nil.
func (x *shares) sums(parties []cluster.MicroGPU) []cluster.MicroGPU {
	if parties == nil {
		return nil
	}
	n := len(x.in.Pools)
	out := round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.in.Tenants), n)
	for at, gpus := range parties {
		*out.At(x.due.Parties[at/n].Tenant, at%n) += gpus
	}
	return out.Cells
}

// untraded returns the entitlements of parties and of tenants without the trades in force; nil = no trade is
// in force or was undone.
func (x *shares) untraded(due byParty, entitled byTenant) (parties, tenants []cluster.MicroGPU) {
	d := x.in.Snapshot.Allocation
	if d == nil || d.Policy != x.in.Settings.Divide || len(d.Trades)+len(d.Undone) == 0 {
		return nil, nil
	}
	parties, tenants = slices.Clone(due.Cells), slices.Clone(entitled.Cells)
	ofParty, ofTenant := round.TableOf[round.PartyIndex](parties, len(x.in.Pools)), round.TableOf[round.TenantIndex](tenants, len(x.in.Pools))
	give := func(party cluster.PartyName, model string, gpus cluster.MicroGPU) {
		k, ok := slices.BinarySearchFunc(x.due.Parties, party.Kind, func(c round.Claimant, name string) int { return cmp.Compare(c.Name, name) })
		if p := x.in.Pool(model); ok && p >= 0 {
			*ofParty.At(round.PartyIndex(k), p) += gpus
			*ofTenant.At(x.due.Parties[k].Tenant, p) += gpus
		}
	}
	for i := range d.Trades {
		t := &d.Trades[i]
		give(t.FastTo, t.Fast, -t.FastGPUs)
		give(t.FastTo, t.Slow, t.SlowGPUs)
		give(t.SlowTo, t.Fast, t.FastGPUs)
		give(t.SlowTo, t.Slow, -t.SlowGPUs)
	}
	return parties, tenants
}

// divided fills in the entitlements of the allocation, and returns the parties that it includes.
func (x *shares) divided(due byParty) (known []bool) {
	known = make([]bool, len(x.due.Parties))
	d := x.in.Snapshot.Allocation
	if d == nil || d.Policy != x.in.Settings.Divide {
		return known
	}
	pools := make([]int, len(d.Pools))
	for i, name := range d.Pools {
		pools[i] = x.in.Pool(name)
	}
	k := round.PartyIndex(0)
	for i := range d.Parts {
		part := &d.Parts[i]
		for k < due.Rows() && x.due.Parties[k].Name < part.Party {
			k++
		}
		if k == due.Rows() || x.due.Parties[k].Name != part.Party {
			continue // the party has left
		}
		known[k] = true
		if x.in.Spent(x.in.Tenants[x.due.Parties[k].Tenant]) != nil {
			continue // the answer is older than the end of its budget
		}
		for at, gpus := range part.GPUs {
			if p := pools[at]; p >= 0 {
				*due.At(k, p) = gpus
			}
		}
	}
	return known
}

// fit scales the entitlements in pool p down to the room, all by the same factor.
func fit(due byParty, p int, room cluster.MicroGPU) {
	var sum cluster.MicroGPU
	for k := range due.Rows() {
		sum += *due.At(k, p)
	}
	if sum <= room {
		return
	}
	for k := range due.Rows() {
		d := due.At(k, p)
		*d = cluster.MicroGPU(cluster.MulDiv(int64(*d), int64(room), int64(sum)))
	}
}

// fitCells fits the entitlements in pool p to a tenant's cells first. A party that is new to the allocation gets
// its part of its tenant's cells, at most the part that the tenant's other parties leave. The entitlements beyond cells
// are scaled down to the rest of the room.
func (x *shares) fitCells(due byParty, p int, known []bool, asked []int64, cells []int, room cluster.MicroGPU) {
	sum, free := make([]cluster.MicroGPU, len(cells)), make([]cluster.MicroGPU, len(cells))
	for k := range due.Rows() {
		sum[x.due.Parties[k].Tenant] += *due.At(k, p)
	}
	var beyond cluster.MicroGPU
	for t, gpus := range cells {
		free[t] = cluster.MicroGPU(gpus) * cluster.WholeGPU
		inside := min(sum[t], free[t])
		free[t] -= inside
		room -= inside
		beyond += sum[t] - inside
	}
	for k := range due.Rows() {
		if t := x.due.Parties[k].Tenant; !known[k] {
			gpus := min(part(cluster.MicroGPU(cells[t])*cluster.WholeGPU, x.demand(k), asked[t]), free[t])
			free[t] -= gpus
			room -= gpus
			*due.At(k, p) = gpus
		}
	}
	if beyond <= room {
		return
	}
	for k := range due.Rows() {
		t, d := x.due.Parties[k].Tenant, due.At(k, p)
		if over := sum[t] - cluster.MicroGPU(cells[t])*cluster.WholeGPU; known[k] && over > 0 {
			kept := sum[t] - over + cluster.MicroGPU(cluster.MulDiv(int64(over), int64(max(room, 0)), int64(beyond)))
			*d = cluster.MicroGPU(cluster.MulDiv(int64(*d), int64(kept), int64(sum[t])))
		}
	}
}

// idleCells gives back to tenants the GPUs in pool p of their own cells that no party is entitled to, and returns
// their number. If fewer are left all get the same part.
func idleCells(entitled byTenant, p int, cells []int, left cluster.MicroGPU) (back cluster.MicroGPU) {
	idle, sum := make([]cluster.MicroGPU, len(cells)), cluster.MicroGPU(0)
	for t, gpus := range cells {
		idle[t] = max(cluster.MicroGPU(gpus)*cluster.WholeGPU-*entitled.At(round.TenantIndex(t), p), 0)
		sum += idle[t]
	}
	for t, gpus := range idle {
		if gpus > 0 && sum > left {
			gpus = cluster.MicroGPU(cluster.MulDiv(int64(gpus), int64(max(left, 0)), int64(sum)))
		}
		*entitled.At(round.TenantIndex(t), p) += gpus
		back += gpus
	}
	return back
}

// blind gives each party that is not in the allocation its part of the tenant's weighted share of the GPUs in no
// cell, in proportion to demand.
func (x *shares) blind(due byParty, p int, known []bool, asked []int64, base byTenant, cells []int, room cluster.MicroGPU) {
	shares := make([]cluster.MicroGPU, len(x.due.Parties))
	var sum cluster.MicroGPU
	for k := range due.Rows() {
		if known[k] {
			continue
		}
		t := x.due.Parties[k].Tenant
		share := *base.At(t, p)
		if cells != nil {
			share -= cluster.MicroGPU(cells[t]) * cluster.WholeGPU
		}
		shares[k] = part(share, x.demand(k), asked[t])
		sum += shares[k]
	}
	for k, gpus := range shares {
		if sum > room {
			gpus = cluster.MicroGPU(cluster.MulDiv(int64(gpus), int64(max(room, 0)), int64(max(sum, 1))))
		}
		*due.At(round.PartyIndex(k), p) += gpus
	}
}

// part returns a party's part of its tenant's GPUs, in proportion to demand.
func part(gpus, demand cluster.MicroGPU, asked int64) cluster.MicroGPU {
	return cluster.MicroGPU(cluster.MulDiv(int64(gpus), int64(demand), max(asked, 1)))
}

// asked returns the GPUs that all parties of each tenant ask for.
func (x *shares) asked() []int64 {
	asked := make([]int64, len(x.in.Tenants))
	for k := range x.due.Parties {
		asked[x.due.Parties[k].Tenant] += int64(x.demand(round.PartyIndex(k)))
	}
	return asked
}

// demand returns the GPUs that all jobs of a party ask for.
func (x *shares) demand(k round.PartyIndex) cluster.MicroGPU { return x.due.wants[k] }

// owe returns, by row, how far ahead a tenant or party may be, in GPUs for one term: its largest gang plus
// twice its entitlement. It changes gangs. The threshold allows a lead or lag of one term. A lower limit
// would forgive the excess round after round.
func owe(gangs, due []cluster.MicroGPU) []cluster.MicroGPU {
	for at := range gangs {
		gangs[at] += 2 * cluster.Micro(due[at].Devices())
	}
	return gangs
}

// largestGang returns the largest gang of all parties.
func (x *shares) largestGang() (largest cluster.MicroGPU) {
	for k := range x.due.Parties {
		largest = max(largest, x.gang(k))
	}
	return largest
}

// gang returns the largest gang of a party.
func (x *shares) gang(k int) (largest cluster.MicroGPU) {
	for _, i := range x.due.Parties[k].Cases {
		largest = max(largest, x.found.Wants(i))
	}
	return largest
}
