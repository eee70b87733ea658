package budget

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// Stops that wait for budgets may cost all jobs of a pool together only a part of their run time
// (stop.total). Each job's own budget bounds its own loss. But if far more jobs wait than can run, every one
// of them has an allowance to lose. The pool's budget grows with run time, and is saved up to the allowance
// of a job on all GPUs. Stops that cannot wait (recalls of lent GPUs, orders) may exceed it.

// saveUp adds to each pool's budget for the time since the last round. A new pool begins with the maximum.
func saveUp(a *Account) {
	milli := cluster.GPUTime(a.in.Settings.StopTotalMilli)
	a.funds.pools = slices.Grow(a.funds.pools[:0], len(a.in.Pools))[:len(a.in.Pools)]
	for p := range a.funds.pools {
		now := &a.in.Ledger.Pools[p]
		if milli == 0 || a.Rule().Off() {
			a.funds.pools[p] = 0
			continue
		}
		most := mostOf(a, now)
		ran, known := now.Tenants+now.Untouchable, false
		for q := range a.in.Snapshot.Ledger.Pools {
			if was := &a.in.Snapshot.Ledger.Pools[q]; was.Pool == now.Pool {
				ran, known = ran-was.Tenants-was.Untouchable, was.Capacity > 0
			}
		}
		if a.funds.pools[p] = min(now.Stops+max(ran, 0)*milli/1000, most); !known {
			a.funds.pools[p] = most
		}
	}
}

// mostOf is the maximum that a pool saves for stops, and the maximum by which stops that cannot wait may overdraw it: else one of them
// would keep all other jobs from being stopped for days.
func mostOf(a *Account, pool *cluster.PoolAccount) cluster.GPUTime {
	return cluster.MicroGPU(pool.GPUs).Over(max(a.in.Settings.StopAllowance, a.in.Settings.StartCost))
}

// costOf returns what a stop of a running job at t costs its pool, for each GPU: at most the work of its attempt and a start, however long
// its owner says that a save takes. A job whose turn has not come, which is opened, costs nothing.
func costOf(j *stop.Job, t cluster.Instant, notice cluster.Span, opened bool) cluster.Span {
	if opened {
		return 0
	}
	return min(j.Cost(t, notice), max(t.Sub(j.Start), 0)+j.Begin)
}

// late returns the last moment at which a job is stopped whose lease ends at t: a round later.
func late(a *Account, t cluster.Instant) cluster.Instant { return t.Add(a.in.Settings.Interval) }

// payment is the stop of a lease that a pool may have to pay.
type payment struct {
	of, pool int32
	gpus     cluster.MicroGPU
	later    cluster.Span // from the notice's end to the lease's end
	cost     cluster.Span // for each GPU, after a notice from now on
	last     cluster.Span // at the lease's end
	kept     bool         // it may be needed at the lease's end: its job may be stopped then, and does not end soon by itself
	granted  bool         // its job has not started yet
	beyond   bool         // its tenant has more GPUs of the pool than it is due
}

// afford marks the jobs that their pools cannot afford to stop now, and those that they could not when their leases end. It
// returns the pools that can afford no stop, and what each pool has besides the stops that it can afford; nil = stops have no
// total. First money is kept for stops at the ends of leases: of those that end first, of these those of tenants that hold more than they
// are due, and of these the cheapest. The rest pays for stops now, first of leases that end now. No money is kept for a job that ends soon by
// itself, or that its own budget does not let be stopped when its lease ends.
func afford(a *Account) (broke []bool, left []cluster.GPUTime) {
	broke = make([]bool, len(a.in.Pools))
	if a.in.Settings.StopTotalMilli == 0 || a.Rule().Off() {
		return broke, nil
	}
	left = make([]cluster.GPUTime, len(a.in.Pools))
	copy(left, a.funds.pools)
	stops := payments(a, left)
	for p := range left {
		broke[p] = left[p] <= 0
	}
	if !enough(stops, left, func(x *payment) cluster.Span { return x.last }) {
		accounts := a.in.Accounts()
		for k := range stops {
			x := &stops[k]
			t, p := a.in.Cases[x.of].Tenant, int(x.pool)
			x.beyond = t >= 0 && *a.funds.held.At(t, p) > accounts.At(t, p).Own()
		}
		slices.SortFunc(stops, func(a, b payment) int {
			return cmp.Or(cmp.Compare(a.later, b.later), first(a.beyond, b.beyond), cmp.Compare(a.last, b.last), cmp.Compare(a.of, b.of))
		})
	}
	unpaid := stops[:0] // at the ends of leases: these stops may be paid now
	for k := range stops {
		x := &stops[k]
		if last := x.gpus.Over(x.last); x.kept && last <= left[x.pool] {
			left[x.pool] -= last
			continue
		}
		if a.Owes[x.of].Unpaid = !EndsSoon(a, int(x.of)); !x.granted {
			unpaid = append(unpaid, *x)
		}
	}
	stops = unpaid
	if !enough(stops, left, func(x *payment) cluster.Span { return x.cost }) {
		slices.SortFunc(stops, func(a, b payment) int {
			return cmp.Or(cmp.Compare(min(a.later, 1), min(b.later, 1)), cmp.Compare(a.cost, b.cost), cmp.Compare(a.of, b.of))
		})
	}
	for _, x := range stops {
		cost := x.gpus.Over(x.cost)
		if a.Owes[x.of].Dear = cost > left[x.pool]; !a.Owes[x.of].Dear {
			left[x.pool] -= cost
		}
	}
	return broke, left
}

// enough reports whether all pools have left what all stops cost together: their order does not matter then.
func enough(stops []payment, left []cluster.GPUTime, price func(*payment) cluster.Span) bool {
	rest := slices.Clone(left)
	for k := range stops {
		x := &stops[k]
		rest[x.pool] -= x.gpus.Over(price(x))
	}
	return !slices.ContainsFunc(rest, func(r cluster.GPUTime) bool { return r < 0 })
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// payments returns the stops that pools may have to pay. It takes those that are as good as made from what the pools have left.
func payments(a *Account, left []cluster.GPUTime) (stops []payment) {
	rule := a.Rule()
	a.funds.held, stops = a.funds.held.Zeroed(int(a.in.Accounts().Rows()), len(a.in.Pools)), a.funds.stops[:0]
	for i, l := range a.leases {
		st := &a.in.Cases[i]
		if l == nil {
			continue
		}
		pool := a.in.Pool(l.Pool)
		if pool < 0 {
			continue
		}
		if l.Behind == 0 && st.Tenant >= 0 {
			*a.funds.held.At(st.Tenant, pool) += l.Size.Amount()
		}
		granted := l.State == cluster.Granted && l.Behind == 0 && st.Waits
		if !st.Runs && !granted || st.Control != cluster.FullControl {
			continue
		}
		notice := a.Notice(i)
		soon := a.in.Now.Add(notice)
		x := payment{of: int32(i), pool: int32(pool), gpus: l.Size.Amount(), later: max(l.End.Sub(soon), 0), granted: granted}
		if granted {
			j := a.Attempt(i, a.in.Now)
			x.last, x.kept = j.Cost(late(a, l.End), notice), !EndsSoon(a, i) && j.May(rule, l.End, notice)
			stops = append(stops, x)
			continue
		}
		j, opened := a.Stop(i), a.Opened(i)
		x.cost = costOf(&j, soon, notice, opened)
		switch {
		case l.State == cluster.Noticed || l.Why == round.Recalled: // as good as stopped
			left[x.pool] -= l.Size.Over(x.cost)
		case l.State == cluster.Active:
			end := soon.Add(x.later)
			x.last, x.kept = costOf(&j, late(a, end), notice, opened), !EndsSoon(a, i) && (opened || j.May(rule, end, notice))
			stops = append(stops, x)
		}
	}
	a.funds.stops = stops
	return stops
}

// pay subtracts the cost of a stop from the pool's budget.
func pay(a *Account, l *cluster.Lease, cost cluster.Span) {
	if p := a.in.Pool(l.Pool); p >= 0 && a.in.Settings.StopTotalMilli > 0 {
		a.funds.pools[p] = max(a.funds.pools[p]-l.Size.Over(cost), -mostOf(a, &a.gpus[p]))
	}
}
