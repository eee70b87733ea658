package engine

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
)

// market sets what parties are due by the last division, and gives what that makes for every
// tenant, by row of the ledger. Parties that the division does not know yet have their part of what
// their tenant is due by weight, as far as there is room; so have all where there is no
// division. What nobody is due is its tenants' by weight. capacity is the GPUs by pool, base what
// tenants are due by weight.
func (h *hall) market(capacity []int, base []cluster.MicroGPU) []cluster.MicroGPU {
	n := len(h.Pools)
	due := make([]cluster.MicroGPU, len(h.PartyRows))
	known := h.divided(due)
	h.ask(capacity)
	entitled := make([]cluster.MicroGPU, len(h.Ledger.Tenants))
	weights := make([]int64, len(h.Tenants))
	for t, name := range h.Tenants {
		weights[t] = h.Weight(name)
	}
	h.explore()
	for p := range h.Pools {
		room := cluster.MicroGPU(capacity[p]) * cluster.WholeGPU
		fit(due, p, n, room)
		for at := p; at < len(due); at += n {
			room -= due[at]
		}
		h.blind(due, p, known, base, room)
		left := cluster.MicroGPU(capacity[p]) * cluster.WholeGPU
		for k := range h.Parties {
			entitled[h.Parties[k].Tenant*n+p] += due[k*n+p]
			left -= due[k*n+p]
		}
		for t, q := range policy.Quota(max(left, 0), weights) {
			entitled[t*n+p] += q
		}
	}
	ledger := cluster.Ledger{Tenants: h.PartyRows}
	ltgf.Settle(&ledger, due, due, h.debts(due), make([]int, len(due)), h.Settings, true)
	return entitled
}

// divided fills in what the division says, and tells which parties it knows.
func (h *hall) divided(due []cluster.MicroGPU) (known []bool) {
	known = make([]bool, len(h.Parties))
	d := h.Snapshot.Division
	if d == nil || d.Policy != h.Settings.Divide {
		return known
	}
	pools := make([]int, len(d.Pools))
	for i, name := range d.Pools {
		pools[i] = h.Pool(name)
	}
	k := 0
	for i := range d.Parts {
		part := &d.Parts[i]
		for k < len(h.Parties) && h.Parties[k].Name < part.Party {
			k++
		}
		if k == len(h.Parties) || h.Parties[k].Name != part.Party {
			continue // it has left
		}
		known[k] = true
		for at, gpus := range part.GPUs {
			if p := pools[at]; p >= 0 {
				due[k*len(h.Pools)+p] = gpus
			}
		}
	}
	return known
}

// fit shrinks what is due of pool p to what there is, everything alike.
func fit(due []cluster.MicroGPU, p, n int, room cluster.MicroGPU) {
	var sum cluster.MicroGPU
	for at := p; at < len(due); at += n {
		sum += due[at]
	}
	if sum <= room {
		return
	}
	for at := p; at < len(due); at += n {
		due[at] = cluster.MicroGPU(cluster.MulDiv(int64(due[at]), int64(room), int64(sum)))
	}
}

// blind gives those whom the division does not know their part of what their tenant is due by weight,
// by what they ask for.
func (h *hall) blind(due []cluster.MicroGPU, p int, known []bool, base []cluster.MicroGPU, room cluster.MicroGPU) {
	n := len(h.Pools)
	asked := make([]int64, len(h.Tenants))
	for k := range h.Parties {
		asked[h.Parties[k].Tenant] += int64(h.demand(k))
	}
	var sum cluster.MicroGPU
	for k := range h.Parties {
		if known[k] {
			continue
		}
		t := h.Parties[k].Tenant
		due[k*n+p] = cluster.MicroGPU(cluster.MulDiv(int64(base[t*n+p]), int64(h.demand(k)), max(asked[t], 1)))
		sum += due[k*n+p]
	}
	for k := range h.Parties {
		if !known[k] && sum > room {
			due[k*n+p] = cluster.MicroGPU(cluster.MulDiv(int64(due[k*n+p]), int64(max(room, 0)), int64(sum)))
		}
	}
}

// demand gives the GPUs that all jobs of a party ask for.
func (h *hall) demand(k int) int {
	gpus := 0
	for _, i := range h.Parties[k].Cases {
		gpus += h.wants(i)
	}
	return gpus
}

// wants gives the GPUs that a job holds or asks for.
func (h *hall) wants(i int) int {
	if st := &h.Jobs[i]; st.Runs {
		return st.Held
	}
	return h.Jobs[i].GPUs
}

// debts gives, by row, the GPUs that its party may owe a term of.
func (h *hall) debts(due []cluster.MicroGPU) []int {
	gangs := make([]int, len(due))
	n := len(h.Pools)
	for k := range h.Parties {
		gang := h.gang(k)
		for at := k * n; at < (k+1)*n; at++ {
			gangs[at] = gang
		}
	}
	return owe(gangs, due)
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
func (h *hall) gang(k int) int {
	largest := 0
	for _, i := range h.Parties[k].Cases {
		largest = max(largest, h.wants(i))
	}
	return largest
}

// ask puts the question of the division together, if it is another than the one that was answered.
func (h *hall) ask(capacity []int) {
	q := cluster.Question{Policy: h.Settings.Divide, At: h.Now}
	for p, name := range h.Pools {
		q.Pools = append(q.Pools, cluster.GPUs{Model: name, Count: capacity[p]})
	}
	if d := h.Snapshot.Division; d != nil && d.Policy == h.Settings.Divide {
		q.Trades, q.NextTrade = d.Trades, d.NextTrade
	}
	if len(h.Settings.Prices) > 0 {
		q.Prices = slices.Repeat([]float64{1}, len(h.Pools))
		for _, price := range h.Settings.Prices {
			if p := h.Pool(price.Model); p >= 0 {
				q.Prices[p] = price.Price
			}
		}
	}
	for k := range h.Parties {
		if bid, ok := h.bid(k); ok {
			q.Bids = append(q.Bids, bid)
		}
	}
	epoch := int64(0)
	if h.Settings.DivideEvery > 0 {
		epoch = h.Snapshot.Round / h.Settings.DivideEvery
	}
	q.Digest = digest(&q, epoch)
	if h.Snapshot.Division == nil || h.Snapshot.Division.Digest != q.Digest {
		h.question = &q
	}
}

// bid puts together what a party asks; false = none of its jobs is active.
func (h *hall) bid(k int) (cluster.Bid, bool) {
	party := &h.Parties[k]
	n := len(h.Pools)
	b := cluster.Bid{Party: party.Name, Tenant: h.Tenants[party.Tenant], Weight: h.Weight(h.Tenants[party.Tenant]),
		Speeds: make([]float64, n), Margins: make([]float64, n)}
	for range b.Speeds {
		b.Basis = append(b.Basis, cluster.Observed)
	}
	weight := int64(0)
	for _, i := range party.Cases {
		st := &h.Jobs[i]
		if len(st.May) == 0 {
			continue
		}
		gpus := h.wants(i)
		b.Gang, b.Demand = max(b.Gang, gpus), b.Demand+gpus
		weight += eligible.Weight(h.Books, i) * int64(gpus)
		b.Pinned = h.Snapshot.Cases[i].Job.Request.Model != ""
		speeds := h.speeds.Speedups(i)
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
	if h.Settings.DivideJobs {
		i := party.Cases[0]
		b.Job = h.Records[i].Key
		b.Elapsed = max(h.Now.Sub(h.Records[i].First), 0)
		b.Steps, b.Did = h.steps(i), h.did(i)
		b.Deadline = h.deadline(i, &b)
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
func (h *hall) deadline(i int, b *cluster.Bid) cluster.Instant {
	last := h.Snapshot.Cases[i].Job.Deadline
	if last == 0 {
		return 0
	}
	fastest := slices.Max(b.Speeds) * float64(max(b.Gang, 1))
	if ahead := last.Add(-h.Settings.Term); b.Steps*float64(cluster.Second) <= fastest*float64(ahead.Sub(h.Now)) {
		return ahead
	}
	return last
}

// digest tells questions apart that are to be answered anew: somebody or something has come or gone, or is known now. What
// goes by, and what reports change of speeds that were known, is for the next epoch.
func digest(q *cluster.Question, epoch int64) string {
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

// endless is how long a job is taken to run that has no time limit.
const endless = 30 * cluster.Day

// steps gives the work that a job has left, in GPU-seconds on the model on which it is slowest: what it says
// of its steps, less those that it has reported; else what its time limit leaves on the fastest model.
func (h *hall) steps(i int) float64 {
	left := h.Limit(i)
	if left == 0 {
		left = endless
	}
	if st := &h.Jobs[i]; st.Runs {
		left -= h.Now.Sub(h.Snapshot.Cases[i].Job.Start)
	}
	book, gang := h.speeds.Book, max(h.wants(i), 1)
	fastest, slowest := 1.0, 0.0
	for p, s := range h.speeds.Speedups(i) {
		fastest = max(fastest, s.Value)
		if r, ok := book.Rate(h.speeds.Kinds[i], h.Pools[p], gang); ok && r.Rate > 0 && (slowest == 0 || r.Rate < slowest) {
			slowest = r.Rate
		}
	}
	seconds := float64(max(left, cluster.Minute)) / float64(cluster.Second) * fastest
	if steps, estimated := book.Remaining(h.Records[i].Key, h.speeds.Total[i], left, slowest); !estimated && slowest > 0 {
		seconds = max(steps/slowest, 1)
	}
	return seconds * float64(gang)
}

// did gives the work that a job has done, as steps gives what is left: by the time for which it had GPUs, at the mean of its
// speeds on the models on which it may run.
func (h *hall) did(i int) float64 {
	speeds, sum := h.speeds.Speedups(i), 0.0
	for _, p := range h.Jobs[i].May {
		sum += speeds[p].Value
	}
	return float64(h.Records[i].Alloc) / float64(cluster.Second) * sum / float64(max(len(h.Jobs[i].May), 1))
}
