package entitle

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
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
func part(gpus cluster.MicroGPU, demand int, asked int64) cluster.MicroGPU {
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
func (x *shares) demand(k round.PartyIndex) int {
	gpus := 0
	for _, i := range x.due.Parties[k].Cases {
		gpus += x.found.Wants(i)
	}
	return gpus
}

// owe returns, by row, how far ahead a tenant or party may be, in GPUs for one term: its largest gang plus
// twice its entitlement. It changes gangs. The threshold allows a lead or lag of one term. A lower limit
// would forgive the excess round after round.
func owe(gangs []int, due []cluster.MicroGPU) []int {
	for at := range gangs {
		gangs[at] += 2 * int((due[at]+cluster.WholeGPU-1)/cluster.WholeGPU)
	}
	return gangs
}

// largestGang returns the largest gang of all parties.
func (x *shares) largestGang() int {
	largest := 0
	for k := range x.due.Parties {
		largest = max(largest, x.gang(k))
	}
	return largest
}

// gang returns the largest gang of a party.
func (x *shares) gang(k int) int {
	largest := 0
	for _, i := range x.due.Parties[k].Cases {
		largest = max(largest, x.found.Wants(i))
	}
	return largest
}

// ask builds the allocation request; nil = the last allocation answers the same request.
func (x *shares) ask(capacity []int, own *round.Owned) *cluster.AllocationRequest {
	q := cluster.AllocationRequest{Policy: x.in.Settings.Divide, At: x.in.Now, MostKinds: x.in.Settings.MostKinds, Cells: x.cells(own)}
	for p, name := range x.in.Pools {
		q.Pools = append(q.Pools, cluster.GPUs{Model: name, Count: capacity[p]})
	}
	if d := x.in.Snapshot.Allocation; d != nil && d.Policy == x.in.Settings.Divide {
		q.Trades, q.CellTrades, q.NextTrade = d.Trades, d.CellTrades, d.NextTrade
	}
	if len(x.in.Settings.Prices) > 0 {
		q.Prices = slices.Repeat([]float64{1}, len(x.in.Pools))
		for _, price := range x.in.Settings.Prices {
			if p := x.in.Pool(price.Model); p >= 0 {
				q.Prices[p] = price.Price
			}
		}
	}
	x.several = severalUsers(x)
	for k := range x.due.Parties {
		if bid, ok := x.bid(k); ok {
			q.Bids = append(q.Bids, bid)
		}
	}
	epoch := int64(0)
	if x.in.Settings.DivideEvery > 0 {
		epoch = x.in.Snapshot.Round / x.in.Settings.DivideEvery
	}
	q.Digest = digest(&q, epoch)
	if d := x.in.Snapshot.Allocation; d != nil && d.Digest == q.Digest {
		return nil
	}
	return &q
}

// cells returns the GPUs in the cells of each tenant that has some.
func (x *shares) cells(own *round.Owned) (out []cluster.CellGPUs) {
	if own == nil {
		return nil
	}
	for t, name := range x.in.Tenants {
		c, some := cluster.CellGPUs{Tenant: name}, false
		for p := range x.in.Pools {
			c.GPUs = append(c.GPUs, own.GPUs[p][t])
			some = some || own.GPUs[p][t] > 0
		}
		if own.Lots != nil {
			c.Lots = own.Lots[t]
			for p := range x.in.Pools {
				c.Base = append(c.Base, own.Base[p][t])
			}
		}
		if some {
			out = append(out, c)
		}
	}
	return out
}

// bid returns the demand of a party; false = none of its jobs is active.
func (x *shares) bid(k int) (cluster.Bid, bool) {
	party := &x.due.Parties[k]
	b := cluster.Bid{Party: party.Name, Tenant: x.in.Tenants[party.Tenant], User: userOf(x, party), Weight: x.weights[party.Tenant]}
	terms, weight := x.terms(), int64(0)
	var priced *cluster.Terms
	if slices.ContainsFunc(party.Cases, func(i int) bool { return len(x.found.Can[i].May) > 0 && x.speeds.Priced(i) != nil }) {
		t := x.terms()
		priced = &t
	}
	for _, i := range party.Cases {
		can := &x.found.Can[i]
		if len(can.May) == 0 {
			continue
		}
		gpus := x.found.Wants(i)
		b.Gang, b.Demand = max(b.Gang, gpus), b.Demand+gpus
		weight += eligible.Weight(x.in, i) * int64(gpus)
		b.Pinned = x.in.Snapshot.Cases[i].Job.Request.Model != ""
		speeds, may := x.speeds.Speedups(i), x.may(i)
		count(&terms, x.rooted(i, speeds), may, gpus)
		if priced != nil {
			if sure := x.speeds.Priced(i); sure != nil {
				speeds = sure
			}
			count(priced, speeds, may, gpus)
		}
	}
	if b.Demand == 0 {
		return b, false
	}
	mean(&terms, b.Demand)
	b.Speeds, b.Margins, b.Basis = terms.Speeds, terms.Margins, terms.Basis
	if priced != nil {
		mean(priced, b.Demand)
		b.Priced = priced
	}
	b.Milli = weight / int64(b.Demand)
	if x.in.Settings.DivideJobs {
		i := party.Cases[0]
		b.Job = x.in.Records[i].Key
		b.Elapsed = max(x.in.Now.Sub(x.found.Can[i].First), 0)
		b.Steps, b.Did = x.speeds.Steps(i), x.speeds.Did(i)
		b.Deadline = x.deadline(i, &b)
	}
	return b, true
}

// userOf returns the user of all active jobs of a party, where users share equally; "" = several, or users do not matter, as where a
// tenant has only one.
func userOf(x *shares, party *round.Claimant) string {
	if x.in.Settings.Users != cluster.UsersEqual || !x.several[party.Tenant] {
		return ""
	}
	user := ""
	for _, i := range party.Cases {
		if len(x.found.Can[i].May) == 0 {
			continue
		}
		if u := x.in.Records[i].User; user == "" {
			user = u
		} else if u != user {
			return ""
		}
	}
	return user
}

// severalUsers reports for each tenant whether its active jobs are of several users.
func severalUsers(x *shares) []bool {
	several, first := make([]bool, len(x.in.Tenants)), make([]string, len(x.in.Tenants))
	for i := range x.in.Cases {
		st, can := &x.in.Cases[i], &x.found.Can[i]
		if st.Tenant < 0 || len(can.May) == 0 {
			continue
		}
		switch user := x.in.Records[i].User; first[st.Tenant] {
		case "":
			first[st.Tenant] = user
		case user:
		default:
			several[st.Tenant] = true
		}
	}
	return several
}

// rooted returns the speeds of a job. While its speed at home is unknown, other models are worth a little less to it: only run times of jobs that stay on a model tell how fast it is, and without known speeds nothing is gained by moves.
func (x *shares) rooted(i int, speeds []profile.Speedup) []profile.Speedup {
	const away = 0.95
	home := -1
	if x.in.Settings.DivideJobs {
		home = x.speeds.Home(i)
	}
	if home < 0 || speeds[home].Shown() {
		return speeds
	}
	out := slices.Clone(speeds)
	for p := range out {
		if p != home {
			out[home].Value = max(out[home].Value, out[p].Value/away)
		}
	}
	return out
}

// terms returns empty terms.
func (x *shares) terms() cluster.Terms {
	n := len(x.in.Pools)
	return cluster.Terms{Speeds: make([]float64, n), Margins: make([]float64, n), Basis: slices.Repeat([]cluster.Source{cluster.Observed}, n)}
}

// count adds the speeds of a job to terms. Several jobs average by GPUs. A job that cannot run somewhere counts as zero.
func count(t *cluster.Terms, speeds []profile.Speedup, may []int, gpus int) {
	for _, p := range may {
		s := &speeds[p]
		t.Speeds[p] += s.Value * float64(gpus)
		t.Basis[p] = lessSure(t.Basis[p], s.Source)
		if s.Source != "" && s.Low > 0 {
			t.Margins[p] = max(t.Margins[p], s.High/s.Value)
		}
	}
}

// mean divides the sums of terms by all GPUs.
func mean(t *cluster.Terms, gpus int) {
	for p := range t.Speeds {
		t.Speeds[p] /= float64(gpus)
	}
}

// may returns the pools that a job may use. A job that starts is bound to the nodes of its grant, for seconds: where
// tenants trade cells, it counts as before that, so that the grants of a term's start undo no trade.
func (x *shares) may(i int) []int {
	l, can := x.found.Leases[i], &x.found.Can[i]
	if l == nil || l.State != cluster.Granted || x.in.Snapshot.Cases[i].Job.Request.Model != "" || !x.in.Snapshot.Cells.Tradable() {
		return can.May
	}
	var all []int
	for p := range x.in.Pools {
		all = append(all, p)
	}
	return all
}

// lessSure returns the less reliable of two sources.
func lessSure(a, b cluster.Source) cluster.Source {
	for _, s := range []cluster.Source{"", cluster.Estimated, cluster.Declared} {
		if a == s || b == s {
			return s
		}
	}
	return cluster.Observed
}

// deadline returns the time by which a job should finish; 0 = any time. It aims one term before the user's
// deadline if that is still possible, because jobs take turns by terms.
func (x *shares) deadline(i int, b *cluster.Bid) cluster.Instant {
	last := x.in.Snapshot.Cases[i].Job.Deadline
	if last == 0 {
		return 0
	}
	fastest := slices.Max(b.Speeds) * float64(max(b.Gang, 1))
	if ahead := last.Add(-x.in.Settings.Term); b.Steps*float64(cluster.Second) <= fastest*float64(ahead.Sub(x.in.Now)) {
		return ahead
	}
	return last
}

// digest identifies requests that need the same allocation. It changes when jobs or GPUs come or go, or when
// speeds become known. Elapsed time, and new reports on known speeds, wait for the next epoch.
func digest(q *cluster.AllocationRequest, epoch int64) string {
	sum := fnv.New128a()
	var word [8]byte
	number := func(n int64) {
		binary.LittleEndian.PutUint64(word[:], uint64(n))
		sum.Write(word[:])
	}
	text := func(s string) {
		number(int64(len(s)))
		sum.Write([]byte(s))
	}
	text(q.Policy)
	number(epoch)
	if q.MostKinds > 0 {
		number(int64(q.MostKinds))
	}
	for i := range q.Pools {
		text(q.Pools[i].Model)
		number(int64(q.Pools[i].Count))
	}
	for i := range q.Cells {
		c := &q.Cells[i]
		text(c.Tenant)
		for _, gpus := range append(c.GPUs[:len(c.GPUs):len(c.GPUs)], c.Base...) {
			number(int64(gpus))
		}
		for _, l := range c.Lots {
			text(l.Chain)
			text(l.Type)
			number(int64(l.GPUs))
			number(int64(l.Cells))
		}
	}
	for _, price := range q.Prices {
		number(int64(math.Float64bits(price)))
	}
	for i := range q.Bids {
		b := &q.Bids[i]
		text(b.Party)
		text(b.Tenant)
		if b.User != "" {
			text(b.User)
		}
		number(b.Weight)
		number(b.Milli)
		number(int64(b.Gang))
		number(int64(b.Demand))
		number(int64(b.Deadline))
		for p, s := range b.Speeds {
			if text(string(b.Basis[p])); b.Basis[p] == cluster.Declared || s == 0 {
				number(int64(math.Float64bits(s)))
			}
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
