package entitle

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// market sets what parties are due by the last division, and gives what that makes for every
// tenant. Parties that the division does not know yet have their part of what
// their tenant is due by weight, as far as there is room; so have all where there is no
// division. What nobody is due is its tenants' by weight. capacity is the GPUs by pool, base what
// tenants are due by weight.
func (x *shares) market(capacity []int, base byTenant) byTenant {
	n := len(x.Pools)
	due := round.NewTable[round.PartyIndex, cluster.MicroGPU](len(x.Parties), n)
	known := x.divided(due)
	entitled := round.NewTable[round.TenantIndex, cluster.MicroGPU](len(x.Tenants), n)
	weights := make([]int64, len(x.Tenants))
	for t, name := range x.Tenants {
		weights[t] = x.Weight(name)
	}
	for p := range x.Pools {
		room := cluster.MicroGPU(capacity[p]) * cluster.WholeGPU
		fit(due, p, room)
		for k := range due.Rows() {
			room -= *due.At(k, p)
		}
		x.blind(due, p, known, base, room)
		left := cluster.MicroGPU(capacity[p]) * cluster.WholeGPU
		for k := range due.Rows() {
			*entitled.At(x.Parties[k].Tenant, p) += *due.At(k, p)
			left -= *due.At(k, p)
		}
		for t, q := range policy.Quota(max(left, 0), weights) {
			*entitled.At(round.TenantIndex(t), p) += q
		}
	}
	ledger := cluster.Ledger{Tenants: x.PartyRows.Cells}
	ltgf.Settle(&ledger, due.Cells, due.Cells, x.debts(due), make([]int, len(due.Cells)), x.Settings, true)
	return entitled
}

// divided fills in what the division says, and tells which parties it knows.
func (x *shares) divided(due byParty) (known []bool) {
	known = make([]bool, len(x.Parties))
	d := x.Snapshot.Allocation
	if d == nil || d.Policy != x.Settings.Divide {
		return known
	}
	pools := make([]int, len(d.Pools))
	for i, name := range d.Pools {
		pools[i] = x.Pool(name)
	}
	k := round.PartyIndex(0)
	for i := range d.Parts {
		part := &d.Parts[i]
		for k < due.Rows() && x.Parties[k].Name < part.Party {
			k++
		}
		if k == due.Rows() || x.Parties[k].Name != part.Party {
			continue // it has left
		}
		known[k] = true
		for at, gpus := range part.GPUs {
			if p := pools[at]; p >= 0 {
				*due.At(k, p) = gpus
			}
		}
	}
	return known
}

// fit shrinks what is due of pool p to what there is, everything alike.
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

// blind gives those whom the division does not know their part of what their tenant is due by weight,
// by what they ask for.
func (x *shares) blind(due byParty, p int, known []bool, base byTenant, room cluster.MicroGPU) {
	asked := make([]int64, len(x.Tenants))
	for k := range due.Rows() {
		asked[x.Parties[k].Tenant] += int64(x.demand(k))
	}
	var sum cluster.MicroGPU
	for k := range due.Rows() {
		if known[k] {
			continue
		}
		t, d := x.Parties[k].Tenant, due.At(k, p)
		*d = cluster.MicroGPU(cluster.MulDiv(int64(*base.At(t, p)), int64(x.demand(k)), max(asked[t], 1)))
		sum += *d
	}
	for k := range due.Rows() {
		if d := due.At(k, p); !known[k] && sum > room {
			*d = cluster.MicroGPU(cluster.MulDiv(int64(*d), int64(max(room, 0)), int64(sum)))
		}
	}
}

// demand gives the GPUs that all jobs of a party ask for.
func (x *shares) demand(k round.PartyIndex) int {
	gpus := 0
	for _, i := range x.Parties[k].Cases {
		gpus += x.Wants(i)
	}
	return gpus
}

// debts gives, by party and pool, the GPUs that the party may owe a term of.
func (x *shares) debts(due byParty) []int {
	gangs := round.NewTable[round.PartyIndex, int](len(x.Parties), len(x.Pools))
	for k := range gangs.Rows() {
		gang := x.gang(k)
		for p := range x.Pools {
			*gangs.At(k, p) = gang
		}
	}
	return owe(gangs.Cells, due.Cells)
}

// owe gives, by row, the GPUs that somebody may owe a term of: his largest gang, and twice what he is due, for by the threshold
// he is ahead or behind by a term of that in the turn of things. Who could owe less would be forgiven what
// he has too much round after round.
func owe(gangs []int, due []cluster.MicroGPU) []int {
	for at := range gangs {
		gangs[at] += 2 * int((due[at]+cluster.WholeGPU-1)/cluster.WholeGPU)
	}
	return gangs
}

// gang gives the largest gang of a party.
func (x *shares) gang(k round.PartyIndex) int {
	largest := 0
	for _, i := range x.Parties[k].Cases {
		largest = max(largest, x.Wants(i))
	}
	return largest
}

// ask puts the question of the division together, if it is another than the one that was answered; else nil.
func (x *shares) ask(capacity []int) *cluster.AllocationRequest {
	q := cluster.AllocationRequest{Policy: x.Settings.Divide, At: x.Now}
	for p, name := range x.Pools {
		q.Pools = append(q.Pools, cluster.GPUs{Model: name, Count: capacity[p]})
	}
	if d := x.Snapshot.Allocation; d != nil && d.Policy == x.Settings.Divide {
		q.Trades, q.NextTrade = d.Trades, d.NextTrade
	}
	if len(x.Settings.Prices) > 0 {
		q.Prices = slices.Repeat([]float64{1}, len(x.Pools))
		for _, price := range x.Settings.Prices {
			if p := x.Pool(price.Model); p >= 0 {
				q.Prices[p] = price.Price
			}
		}
	}
	for k := range x.Parties {
		if bid, ok := x.bid(k); ok {
			q.Bids = append(q.Bids, bid)
		}
	}
	epoch := int64(0)
	if x.Settings.DivideEvery > 0 {
		epoch = x.Snapshot.Round / x.Settings.DivideEvery
	}
	q.Digest = digest(&q, epoch)
	if d := x.Snapshot.Allocation; d != nil && d.Digest == q.Digest {
		return nil
	}
	return &q
}

// bid puts together what a party asks; false = none of its jobs is active.
func (x *shares) bid(k int) (cluster.Bid, bool) {
	party := &x.Parties[k]
	n := len(x.Pools)
	b := cluster.Bid{Party: party.Name, Tenant: x.Tenants[party.Tenant], Weight: x.Weight(x.Tenants[party.Tenant]),
		Speeds: make([]float64, n), Margins: make([]float64, n)}
	for range b.Speeds {
		b.Basis = append(b.Basis, cluster.Observed)
	}
	weight := int64(0)
	for _, i := range party.Cases {
		st := &x.Jobs[i]
		if len(st.May) == 0 {
			continue
		}
		gpus := x.Wants(i)
		b.Gang, b.Demand = max(b.Gang, gpus), b.Demand+gpus
		weight += eligible.Weight(x.Books, i) * int64(gpus)
		b.Pinned = x.Snapshot.Cases[i].Job.Request.Model != ""
		speeds := x.speeds.Speedups(i)
		for _, p := range st.May {
			// Of several jobs the mean, by GPUs: one that cannot run there has nothing of it.
			s := &speeds[p]
			b.Speeds[p] += s.Value * float64(gpus)
			b.Basis[p] = lessSure(b.Basis[p], s.Source)
			if s.Source != "" && s.Low > 0 {
				b.Margins[p] = max(b.Margins[p], s.High/s.Value)
			}
		}
	}
	if b.Demand == 0 {
		return b, false
	}
	for p := range b.Speeds {
		b.Speeds[p] /= float64(b.Demand)
	}
	b.Milli = weight / int64(b.Demand)
	if x.Settings.DivideJobs {
		i := party.Cases[0]
		b.Job = x.Records[i].Key
		b.Elapsed = max(x.Now.Sub(x.Records[i].First), 0)
		b.Steps, b.Did = x.speeds.Steps(i), x.speeds.Did(i)
		b.Deadline = x.deadline(i, &b)
	}
	return b, true
}

// lessSure gives the one of two sources that is to be trusted less.
func lessSure(a, b cluster.Source) cluster.Source {
	for _, s := range []cluster.Source{"", cluster.Estimated, cluster.Declared} {
		if a == s || b == s {
			return s
		}
	}
	return cluster.Observed
}

// deadline gives by when a job is to be done; 0 = whenever. It aims a term ahead of what its user says as long as
// that can be: whose turn it is comes round by terms.
func (x *shares) deadline(i int, b *cluster.Bid) cluster.Instant {
	last := x.Snapshot.Cases[i].Job.Deadline
	if last == 0 {
		return 0
	}
	fastest := slices.Max(b.Speeds) * float64(max(b.Gang, 1))
	if ahead := last.Add(-x.Settings.Term); b.Steps*float64(cluster.Second) <= fastest*float64(ahead.Sub(x.Now)) {
		return ahead
	}
	return last
}

// digest tells questions apart that are to be answered anew: somebody or something has come or gone, or is known now. What
// goes by, and what reports change of speeds that were known, is for the next epoch.
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
	for i := range q.Pools {
		text(q.Pools[i].Model)
		number(int64(q.Pools[i].Count))
	}
	for _, price := range q.Prices {
		number(int64(math.Float64bits(price)))
	}
	for i := range q.Bids {
		b := &q.Bids[i]
		text(b.Party)
		text(b.Tenant)
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
