package entitle

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/eligible"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/speeds"
)

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
	r := &bidder{in: x.in, found: x.found, speeds: x.speeds, parties: x.due.Parties, weights: x.weights, several: severalUsers(x), jobsQueue: x.due.JobsQueue, tradable: x.in.Snapshot.Cells.Tradable(), known: map[offerKey]*offer{}}
	demands, digests := x.due.demands[:0], make([]digest, 0, len(x.due.Parties))
	for i := range x.due.Queued { // in the order in which cases are in memory
		k := x.due.Queued[i].Party
		if k < 0 || x.due.Parties[k].Cases[0] != i {
			continue
		}
		if d, ok := r.demand(int(k)); ok {
			demands, digests = append(demands, d), append(digests, r.digest(&d))
		}
	}
	x.due.demands = demands
	epoch := int64(0)
	if x.in.Settings.DivideEvery > 0 {
		epoch = x.in.Snapshot.Round / x.in.Settings.DivideEvery
	}
	q.Digest = digestOf(&q, epoch, digests)
	if d := x.in.Snapshot.Allocation; d != nil && d.Digest == q.Digest {
		return nil
	}
	slices.SortFunc(demands, func(a, b demand) int { return a.party - b.party })
	q.Bids = make([]cluster.Bid, len(demands))
	for n := range demands {
		q.Bids[n] = r.bid(&demands[n])
	}
	q.Together, q.Pairs = together(x.in, q.Bids), r.pairs(q.Bids)
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

// bidder makes the bids of a round.
type bidder struct {
	in        *round.Facts
	found     *eligible.Found
	speeds    *speeds.Speeds
	parties   []round.Claimant
	weights   []int64 // by tenant
	several   []bool  // by tenant: its active jobs are of several users
	jobsQueue bool
	tradable  bool // tenants trade cells
	known     map[offerKey]*offer
}

// demand is what a party wants.
type demand struct {
	party    int
	offer    *offer
	user     string
	weight   int64 // inside its tenant, in thousandths
	gang     int   // the largest
	gpus     int   // of all its jobs, each part of one counted as one
	wants    cluster.MicroGPU
	deadline cluster.Instant
}

// offer is what GPUs are worth to a party.
type offer struct {
	terms, priced cluster.Terms // priced has no speeds where prices go by terms
	digest        digest        // of terms
}

// offerKey is all that the offer of a single job comes from. A bit of may is a pool.
type offerKey struct {
	number, gpus, home int
	may                uint64
}

// demand returns what a party wants; false = none of its jobs is active.
func (x *bidder) demand(k int) (demand, bool) {
	party := &x.parties[k]
	d := demand{party: k, user: x.userOf(party)}
	for _, i := range party.Cases {
		if len(x.found.Can[i].May) > 0 {
			wants := x.found.Wants(i)
			gpus := wants.Devices()
			d.gang, d.gpus, d.wants = max(d.gang, gpus), d.gpus+gpus, d.wants+wants
			d.weight += eligible.Weight(x.in, i) * int64(gpus)
		}
	}
	if d.gpus == 0 {
		return d, false
	}
	d.weight /= int64(d.gpus)
	d.offer = x.offer(party.Cases, d.gpus)
	if x.in.Settings.DivideJobs {
		d.deadline = x.deadline(party.Cases[0], &d)
	}
	return d, true
}

// offer returns what GPUs are worth to jobs that want so many together.
func (x *bidder) offer(cases []int, gpus int) *offer {
	if len(cases) > 1 || len(x.in.Pools) > 64 {
		return x.offerOf(cases, gpus)
	}
	i := cases[0]
	key := offerKey{x.speeds.Types.Of(i), gpus, x.home(i), 0}
	for _, p := range x.may(i) {
		key.may |= 1 << p
	}
	o := x.known[key]
	if o == nil {
		o = x.offerOf(cases, gpus)
		x.known[key] = o
	}
	return o
}

// offerOf works out what GPUs are worth to jobs that want so many together.
func (x *bidder) offerOf(cases []int, gpus int) *offer {
	o := &offer{terms: x.terms()}
	priced := slices.ContainsFunc(cases, func(i int) bool { return len(x.found.Can[i].May) > 0 && x.speeds.Priced(i) != nil })
	if priced {
		o.priced = x.terms()
	}
	for _, i := range cases {
		if len(x.found.Can[i].May) == 0 {
			continue
		}
		speeds, may, wants := x.speeds.Speedups(i), x.may(i), x.found.Wants(i).Devices()
		count(&o.terms, rooted(speeds, x.home(i)), may, wants)
		if priced {
			if sure := x.speeds.Priced(i); sure != nil {
				speeds = sure
			}
			count(&o.priced, speeds, may, wants)
		}
	}
	mean(&o.terms, gpus)
	mean(&o.priced, gpus)
	o.digest = digestOfTerms(&o.terms)
	return o
}

// digest returns that of what a party wants.
func (x *bidder) digest(d *demand) digest {
	party, sum := &x.parties[d.party], d.offer.digest
	sum.text(party.Name)
	sum.number(int64(party.Tenant))
	sum.text(d.user)
	for _, n := range [...]int64{x.weights[party.Tenant], d.weight, int64(d.gang), int64(d.wants.Devices()), int64(d.deadline)} {
		sum.number(n)
	}
	if x.in.Settings.DivideJobs {
		if t := x.typeOf(party.Cases[0]); t != "" { // changes of pairs wait for the next epoch, like those of speeds
			sum.text(t)
		}
		for p, part := range apart(x, party.Cases[0]) {
			if part > 0 { // its changes wait for the next epoch, like those of speeds
				sum.number(int64(p))
			}
		}
	}
	return sum
}

// bid returns the bid of a party.
func (x *bidder) bid(d *demand) cluster.Bid {
	party, o := &x.parties[d.party], d.offer
	b := cluster.Bid{Party: party.Name, Tenant: x.in.Tenants[party.Tenant], User: d.user, Weight: x.weights[party.Tenant], Milli: d.weight,
		Gang: d.gang, Demand: d.wants.Devices(), Deadline: d.deadline}
	b.Speeds, b.Margins, b.Basis = slices.Clone(o.terms.Speeds), slices.Clone(o.terms.Margins), slices.Clone(o.terms.Basis)
	if o.priced.Speeds != nil {
		b.Priced = &cluster.Terms{Speeds: slices.Clone(o.priced.Speeds), Margins: slices.Clone(o.priced.Margins), Basis: slices.Clone(o.priced.Basis)}
	}
	for _, i := range slices.Backward(party.Cases) {
		if len(x.found.Can[i].May) > 0 {
			b.Pinned = x.in.Snapshot.Cases[i].Job.Request.Model != ""
			break
		}
	}
	if x.in.Settings.DivideJobs {
		i := party.Cases[0]
		b.Job, b.Type = x.in.Records[i].Key, x.typeOf(i)
		b.Elapsed = max(x.in.Now.Sub(x.found.Can[i].First), 0)
		b.Steps, b.Did, b.Apart = x.speeds.Steps(i), x.speeds.Did(i), apart(x, i)
	}
	return b
}

// userOf returns the user of all active jobs of a party, where users share equally; "" = several, or users do not matter, as where a
// tenant has only one.
func (x *bidder) userOf(party *round.Claimant) string {
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

// home returns the pool in which a job should stay, because its speed is learnt there; -1 = anywhere.
func (x *bidder) home(i int) int {
	if !x.in.Settings.DivideJobs {
		return -1
	}
	return x.speeds.Home(i)
}

// rooted returns the speeds of a job. While its speed at home is unknown, other models are worth a little less to it: only run times of jobs that stay on
// a model tell how fast it is, and without known speeds nothing is gained by moves.
func rooted(speeds []profile.Speedup, home int) []profile.Speedup {
	const away = 0.95
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
func (x *bidder) terms() cluster.Terms {
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
func (x *bidder) may(i int) []int {
	l, can := x.found.Leases[i], &x.found.Can[i]
	if !x.tradable || l == nil || l.State != cluster.Granted || x.in.Snapshot.Cases[i].Job.Request.Model != "" {
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
func (x *bidder) deadline(i int, d *demand) cluster.Instant {
	last := x.in.Snapshot.Cases[i].Job.Deadline
	if last == 0 {
		return 0
	}
	fastest := slices.Max(d.offer.terms.Speeds) * float64(max(d.gang, 1))
	if ahead := last.Add(-x.in.Settings.Term); x.speeds.Steps(i)*float64(cluster.Second) <= fastest*float64(ahead.Sub(x.in.Now)) {
		return ahead
	}
	return last
}
