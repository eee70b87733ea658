package lease

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// chooser is the state of one Choose.
type chooser struct {
	in       Input
	memory   *Memory
	board    Board
	choice   Choice
	settled  []bool               // by candidate: it has a lease
	kept     []Room               // by candidate, with limits: when there is room that is kept for it, without a lease; Never = there is none
	served   []served             // by pool
	claimed  [][]cluster.MicroGPU // of claims, by tenant and pool
	reclaims int
	burst    bool
	rest     bool // denied candidates have their turn
	anySpent bool // a tenant has used up its budget
	bound    bindings
	denied   []denial
	before   keptBefore
}

// keptBefore is what keptFor found out since a candidate was last settled, which changes it.
type keptBefore struct {
	settled int
	found   map[keptAsk]cluster.JobKey
}

// keptAsk is what keptFor depends on besides the settled candidates.
type keptAsk struct {
	shape, pool, with int
	stops             bool
}

// served is the last tenant served in a pool.
type served struct {
	name    string
	behind  cluster.Span
	renewed bool // for a running job
}

// payment is a charge to a tenant for a lease given before the walk.
type payment struct {
	tenant, pool int
	gpus         cluster.MicroGPU
	span         cluster.Span
}

// Choose gives the GPUs of the coming term to the tenants furthest behind, job by job (ASTRAEA Algorithm 1).
// Running jobs whose leases end count as pending, and their GPUs as free. npools is the number of pools.
func Choose(in Input, board Board, npools int) Choice {
	m := in.Memory
	if m == nil {
		m = new(Memory)
	}
	m.numbers.used, m.gpus.used = 0, 0
	m.passed, m.settled, m.claimed = zeroed(m.passed, len(in.Candidates)), zeroed(m.settled, len(in.Candidates)), zeroed(m.claimed, len(in.Tenants))
	c := &chooser{in: in, memory: m, board: board, burst: true,
		settled: m.settled, served: make([]served, npools), claimed: m.claimed,
		anySpent: slices.ContainsFunc(in.Tenants, func(t Tenant) bool { return t.Spent }),
	}
	for t := range c.claimed {
		c.claimed[t] = m.gpus.zeros(npools)
	}
	c.choice.Passed = m.passed
	if in.Stops != nil {
		m.waits = zeroed(m.waits, len(in.Candidates))
	}
	if in.Together != nil {
		m.together = zeroed(m.together, len(in.Candidates))
	}
	if in.Limits != nil {
		c.kept = slices.Repeat([]Room{Never}, len(in.Candidates))
	}
	c.bound = openBindings(&in, m, npools)
	paid := c.serveClaims(c.in.Claims)
	paid = append(paid, c.serveTrials(c.in.Trials)...)
	queues := c.open(npools, paid)
	serveFloors(c, queues)
	c.servePicks(queues, npools)
	later := c.walk(queues)
	// The rest goes to tenants that have reached their burst limit.
	c.burst = false
	c.walk(later)
	c.bindRest(c.denied)
	c.choice.Renewed = renewResting(c, c.choice.Renewed)
	c.choice.Renewed = c.better(c.choice.Renewed)
	// A gang may have got its lease in another pool, or in another way.
	c.choice.Due, c.choice.Scattered = c.without(c.choice.Due), c.without(c.choice.Scattered)
	m.kept = m.kept[:0]
	for k := range c.in.Claims {
		if cl := &c.in.Claims[k]; !c.settled[cl.Candidate] {
			m.kept = append(m.kept, cl.Claim)
		}
	}
	c.choice.Kept, c.choice.by = m.kept, c
	return c.choice
}

// Owners of leases that may be displaced, for Ask.Displace; see place.Nobodys.
const (
	ofNobody = iota
	ofAnybody
	ofOwner
)

// open returns a queue for every tenant in every pool, and charges the payments to them.
func (c *chooser) open(npools int, paid []payment) []*queue {
	m := c.memory
	m.queues, m.open = zeroed(m.queues, len(c.in.Tenants)*npools), m.open[:0]
	all := m.open
	for t := range c.in.Tenants {
		tenant, of, qs := &c.in.Tenants[t], m.queues[t*npools:(t+1)*npools], make([]*queue, npools)
		tenant.Each(c.in.Candidates, func(i, p, at int) {
			k := &c.in.Candidates[i]
			if k.Priority.Resting {
				return
			}
			if qs[p] == nil {
				sh := &tenant.Shares[p]
				qs[p] = &of[p]
				of[p] = queue{tenant: t, pool: p, boost: tenant.Boost, spent: tenant.Spent,
					behind: sh.Behind, lacks: sh.Lacks, owed: float64(sh.Owed) / float64(max(sh.Entitlement, 1)), entitled: sh.Entitlement, holds: sh.Holds, jobs: m.numbers.list(len(tenant.Jobs))}
				all = append(all, qs[p])
			}
			switch {
			case k.idles(p):
				qs[p].idlers = append(qs[p].idlers, i)
			case k.Running && at > 0:
				qs[p].movers = append(qs[p].movers, i)
			default:
				qs[p].jobs = append(qs[p].jobs, i)
				if k.Running {
					qs[p].running++
				}
			}
		})
		for _, q := range qs {
			if q != nil { // jobs that run in another pool come after jobs without GPUs
				q.jobs = append(append(q.jobs, q.movers...), q.idlers...)
			}
		}
	}
	m.open = all
	for _, p := range paid {
		for _, q := range all {
			if q.tenant == p.tenant && q.pool == p.pool {
				c.charge(q, p.gpus, p.span)
			}
		}
	}
	return all
}

// renewResting renews the leases of resting jobs whose GPUs nobody took, unless a gang waits in their pool, or they would bind the GPUs
// and may not. It adds them to the renewed ones.
func renewResting(c *chooser, renewed []int) []int {
	for i := range c.in.Candidates {
		k := &c.in.Candidates[i]
		if !k.Priority.Resting || c.settled[i] {
			continue
		}
		gang := slices.ContainsFunc(c.choice.Due, func(d Due) bool { return d.Pool == k.Pools[0] && !c.settled[d.Candidate] })
		if limit, may := admits(c, k, k.Pools[0]); !may {
			c.choice.Passed[i] = unbound(c, k.Pools[0], limit)
			continue
		}
		if gang || !renewable(c, k) {
			c.choice.Passed[i].Code = cluster.ReasonNotice
			continue
		}
		c.settled[i] = true
		counts(c, k)
		c.bound.take(k, k.Pools[0])
		renewed = append(renewed, i)
	}
	return renewed
}

// walk serves queues until no job fits any more, and returns the queues that reached their burst limit.
func (c *chooser) walk(all []*queue) (later []*queue) {
	h := newQueues(all, c.in.Settings.Threshold)
	for len(h.all) > 0 {
		q := h.all[0]
		switch i, ok := c.next(q); {
		case !ok:
			h.pop()
		case c.burst && c.overBurst(q, i):
			q.at--
			later = append(later, h.pop())
		default:
			c.serve(h, q, i)
			h.sink(0)
		}
	}
	return later
}

// next returns the queue's next candidate. Deferred candidates return when the tenant has no running jobs
// left to decide.
func (c *chooser) next(q *queue) (int, bool) {
	for {
		if q.running == 0 && len(q.deferred) > 0 {
			q.jobs, q.at, q.deferred = append(q.deferred, q.jobs[q.at:]...), 0, nil
		}
		if q.at >= len(q.jobs) {
			return 0, false
		}
		i := q.jobs[q.at]
		q.at++
		if !c.settled[i] {
			return i, true
		}
		if k := &c.in.Candidates[i]; k.Running && k.Pools[0] == q.pool && !k.idles(q.pool) {
			q.running-- // it moves
		}
	}
}

// overBurst reports whether a job would take its tenant above the burst limit. A tenant that holds nothing
// may have one job of any size, unless its entitlement is zero; one that holds no more than its entitlement may have a job that alone is
// above the limit, so that its small jobs do not hold its large ones back. Jobs that are due by their party's share may
// exceed the limit too. Repayments do not lower the limit, for the tenant that pays or the one that receives.
func (c *chooser) overBurst(q *queue, i int) bool {
	k := &c.in.Candidates[i]
	most := cluster.MulDiv(int64(max(c.in.Tenants[q.tenant].Shares[q.pool].Own, q.entitled)), c.in.Settings.BurstMaxMilli, 1000)
	switch {
	case q.entitled == 0 || k.idles(q.pool):
		return true
	case c.in.Settings.BurstMaxMilli == 0 || q.holds == 0 || slices.Contains(k.Due, q.pool):
		return false
	case int64(k.In(q.pool)) > most:
		return q.holds > q.entitled
	}
	return int64(q.holds+k.In(q.pool)) > most
}

// serve gives one candidate a lease or passes over it.
func (c *chooser) serve(h *queues, q *queue, i int) {
	k := &c.in.Candidates[i]
	if k.Running && q.pool != k.Pools[0] {
		c.move(q, i)
		return
	}
	if k.Running && !k.idles(q.pool) {
		q.running--
	}
	if c.bound.binds(k, q.pool) != Unbound && (k.Barred || !c.mayBind(k, q.pool)) {
		c.denied = append(c.denied, denial{q, i})
		return
	}
	c.lease(h, q, i)
}

// lease gives one candidate a lease, or records why it gets none.
func (c *chooser) lease(h *queues, q *queue, i int) {
	k := &c.in.Candidates[i]
	if k.Running {
		if renewable(c, k) {
			c.renew(q, i)
			return
		}
		c.choice.Passed[i].Code = cluster.ReasonNotice
		return
	}
	displace, spares := ofAnybody, 0
	switch {
	case c.rest && q.entitled > 0 && !q.spent && !k.IdleOnly:
		// also the GPUs of ending leases whose jobs were denied, too
	case !c.burst && !q.spent && !k.IdleOnly && c.anySpent:
		displace = ofOwner + len(c.in.Tenants) // only what has no owner
	case !c.burst || k.IdleOnly:
		displace = ofNobody
	case q.holding() && !h.leads(q):
		displace = ofOwner + q.tenant
	case c.in.Keeps(q.tenant, q.pool):
		spares = 1 + q.tenant
	}
	if g, ok := c.try(i, k.Shape, q.pool, displace, spares); ok {
		c.charge(q, k.In(q.pool), g.End.Sub(g.At))
		return
	}
	if q.holding() {
		q.deferred = append(q.deferred, i)
		return
	}
	code := cluster.ReasonBehind
	if !c.burst && q.entitled > 0 {
		code = cluster.ReasonBurst
	}
	if k.IdleOnly {
		code = cluster.ReasonFailed
	}
	c.passOver(q, i, code)
	if c.burst && c.in.Mechanism == nil && !k.IdleOnly && !chooses(c, i) && c.isDue(q, k) {
		c.choice.Due = append(c.choice.Due, Due{i, q.pool})
		c.claimed[q.tenant][q.pool] += k.In(q.pool)
	}
}

// move gives a running job GPUs of another pool, in which its party is entitled to more. The job moves when
// its lease ends. If it gets none, its own pool decides on it.
func (c *chooser) move(q *queue, i int) {
	k := &c.in.Candidates[i]
	if !c.burst || q.entitled == 0 {
		return
	}
	if g, ok := c.try(i, k.Shape, q.pool, ofAnybody, 0); ok {
		c.charge(q, k.In(q.pool), g.End.Sub(g.At))
	}
}

// better moves jobs with renewed leases to idle GPUs on which they get more done, largest gain first. It
// returns the jobs that do not move.
func (c *chooser) better(renewed []int) []int {
	type way struct{ candidate, at int }
	var ways []way
	for _, i := range renewed {
		for at := range c.in.Candidates[i].Better {
			ways = append(ways, way{i, at})
		}
	}
	gain := func(w way) cluster.Span { return c.in.Candidates[w.candidate].Better[w.at].Gain }
	slices.SortStableFunc(ways, func(a, b way) int {
		return cmp.Or(cmp.Compare(gain(b), gain(a)), cmp.Compare(c.in.Candidates[a.candidate].Key, c.in.Candidates[b.candidate].Key))
	})
	moved := map[int]bool{}
	for _, w := range ways {
		k := &c.in.Candidates[w.candidate]
		if !moved[w.candidate] {
			_, moved[w.candidate] = c.try(w.candidate, k.Shape, k.Better[w.at].Pool, ofNobody, 0)
		}
	}
	return slices.DeleteFunc(renewed, func(i int) bool { return moved[i] })
}

// isDue reports whether a gang that fits nowhere is due in a pool. It is due if one term of it takes its
// tenant at most as far ahead as the tenant is behind now. It is also due if its tenant lacks GPUs of its
// floor, or if the same holds for the job within its tenant, because small jobs would starve it otherwise. With turns by party, Due marks such jobs,
// and the tenant may be ahead by at most the cost of the gang; so with turns by user for a user that is that far behind.
// A gang is not due if its user is that far ahead. The claims of a tenant cover at most its
// entitlement, but always one gang.
func (c *chooser) isDue(q *queue, k *Candidate) bool {
	if k.GPUs <= cluster.WholeGPU || q.entitled == 0 {
		return false
	}
	claimed := c.claimed[q.tenant][q.pool]
	if claimed > 0 && claimed+k.In(q.pool) > q.entitled {
		return false
	}
	cost := Cost(q.entitled, k.In(q.pool), c.in.Settings.Term)
	if k.Priority.UserSide < 0 {
		return false
	}
	if misses(c, q, claimed) {
		return true
	}
	if q.behind >= cost/2 || q.behind >= -cost && (k.Priority.UserSide > 0 || slices.Contains(k.Due, q.pool)) {
		return true
	}
	// The second case needs a tenant that is about even, because the coming term's leases are charged
	// already. A starving job is exempt.
	even := q.behind >= -c.in.Settings.Term/2
	return (even || k.starves(c.in.Settings.Term)) && k.Priority.Owed >= k.In(q.pool).Over(c.in.Settings.Term)/2
}

// passOver records why a candidate has got nothing so far.
func (c *chooser) passOver(q *queue, i int, code cluster.Code) {
	k := &c.in.Candidates[i]
	s := c.served[q.pool]
	p := round.Passed{Code: code, Pool: q.pool, Free: c.board.Idle(q.pool),
		Behind: q.behind, Other: s.name, OtherBehind: s.behind}
	if s.name == c.in.Tenants[q.tenant].Name { // no other went first: its place in the queue says all
		p.Other, p.OtherBehind = "", 0
	}
	switch {
	case chooses(c, i):
		p.Code, p.Until = cluster.ReasonTogether, c.memory.together[i]
	case code != cluster.ReasonBehind:
	case c.in.Stops != nil && (c.memory.waits[i] || cluster.Micro(p.Free) < k.GPUs && (c.in.Stops.Shut() || (q.behind > c.in.Settings.Threshold || lacks(c, q)) && c.in.Stops.Held(q.pool))):
		p.Code, p.Until = cluster.ReasonStops, c.in.Stops.Until()
	case cluster.Micro(p.Free) >= k.GPUs:
		p.Code = cluster.ReasonShape
		if p.For = c.keptFor(k, q.pool); p.For != 0 {
			p.Code = cluster.ReasonClaimed
		}
	case c.in.Settings.MaxReclaims > 0 && c.reclaims >= c.in.Settings.MaxReclaims:
		p.Code = cluster.ReasonLimit
	case s.renewed && s.name != c.in.Tenants[q.tenant].Name && q.behind > s.behind && q.behind <= s.behind+c.in.Settings.Threshold:
		p.Code = cluster.ReasonThreshold
	}
	c.choice.Passed[i] = p
	if cluster.Micro(p.Free) >= k.GPUs && k.GPUs > cluster.WholeGPU && !k.Running && k.Binds == Unbound && !k.IdleOnly {
		c.choice.Scattered = append(c.choice.Scattered, Due{i, q.pool})
	}
}

// keptFor returns the job whose claim alone keeps a candidate off idle GPUs that it fits; 0 = it fits
// nowhere.
func (c *chooser) keptFor(k *Candidate, pool int) cluster.JobKey {
	if len(c.in.Claims) == 0 {
		return 0
	}
	ask := keptAsk{k.Shape, pool, sharer(c, k), k.Binds == Unbound}
	if x, n := &c.before, len(c.choice.Grants)+len(c.choice.Renewed); x.found == nil || x.settled != n {
		x.settled, x.found = n, c.memory.keeping()
	}
	job, known := c.before.found[ask]
	if !known {
		job = keeper(c, ask)
		c.before.found[ask] = job
	}
	return job
}

// keeper is keptFor for a shape.
func keeper(c *chooser, ask keptAsk) cluster.JobKey {
	// Claims keep off only leases that end after them, so they keep off no lease that has ended.
	p, ok := c.board.Fit(Ask{Shape: ask.shape, Pool: ask.pool, Now: c.in.Now, Displace: ofNobody, Stops: ask.stops, Max: -1, Sharer: ask.with})
	if !ok {
		return 0
	}
	for _, cl := range c.in.Claims {
		if !c.settled[cl.Candidate] && slices.ContainsFunc(p.Nodes, func(h cluster.Holding) bool {
			return slices.ContainsFunc(cl.Nodes, func(o cluster.Holding) bool { return o.Node == h.Node })
		}) {
			return cl.Job
		}
	}
	return 0
}

// charge books a lease on its tenant before the next choice (lines 14-15).
func (c *chooser) charge(q *queue, gpus cluster.MicroGPU, span cluster.Span) {
	c.served[q.pool] = served{name: c.in.Tenants[q.tenant].Name, behind: q.behind}
	q.holds += gpus
	q.behind -= Cost(q.entitled, gpus, span)
	q.lacks -= gpus.Over(span)
}

// Cost returns a lease as time at the tenant's entitlement, at most 35 years (2^40 ms), so that sums stay in
// range.
func Cost(entitled, gpus cluster.MicroGPU, span cluster.Span) cluster.Span {
	if entitled <= 0 {
		return 0
	}
	return cluster.Span(min(cluster.MulDiv(int64(gpus.Over(span)), int64(cluster.WholeGPU), int64(entitled)), 1<<40))
}

// LastFirst returns the running candidates in the order in which they would be served if every candidate
// fitted, each charged to its tenant in turn. The last ones are displaced first.
func LastFirst(in *Input) []int {
	const least, most = -1 << 62, 1 << 62
	type place struct {
		candidate, tenant, at int // at: among all, before they are sorted
		behind                cluster.Span
	}
	running := 0
	for i := range in.Candidates {
		if in.Candidates[i].Running {
			running++
		}
	}
	if running == 0 {
		return nil
	}
	all := make([]place, 0, running)
	for t := range in.Tenants {
		charged := make([]cluster.Span, len(in.Tenants[t].Shares)) // by pool
		floors := make([]cluster.GPUTime, len(in.Tenants[t].Shares))
		in.Tenants[t].Each(in.Candidates, func(i, p, at int) {
			k, share := &in.Candidates[i], &in.Tenants[t].Shares[p]
			behind := share.Behind - charged[p]
			if k.idles(p) {
				behind = least
			} else {
				if share.Owed < 0 && share.Lacks > floors[p] {
					behind = most
				}
				charged[p] += Cost(share.Entitlement, k.In(p), in.Settings.Term)
				floors[p] += k.In(p).Over(in.Settings.Term)
			}
			if k.Running && at == 0 {
				all = append(all, place{i, t, len(all), behind})
			}
		})
	}
	slices.SortFunc(all, func(a, b place) int {
		switch {
		case a.behind != b.behind:
			return cmp.Compare(b.behind, a.behind)
		case a.tenant != b.tenant:
			return cmp.Compare(a.tenant, b.tenant)
		}
		return cmp.Compare(a.at, b.at)
	})
	line := make([]int, len(all))
	for at := range all {
		line[at] = all[at].candidate
	}
	return line
}

// Keeps reports whether a tenant is behind in a pool by more than a term. Its jobs then do not take turns at
// its own cost: no gang of its own is displaced for one of at most its size while others hold the tenant's
// share.
func (in *Input) Keeps(tenant, pool int) bool {
	return in.Tenants[tenant].Shares[pool].Behind > in.Settings.Term
}

// Held is a lease in force that can end.
type Held struct {
	Case, Pool int
	GPUs       cluster.MicroGPU
	Rho        cluster.Rho // of its job
	User       int         // its user's account; -1 = none
}

// Rank sets the ranks of one tenant's leases, by case, as LastFirst orders candidates. Each lease is charged
// to the tenant in turn, smallest rho first, or as the users take turns if users is set: those are used up. The further
// ahead the tenant is then, the higher the rank. Rank sorts held.
func Rank(ranks []int, held []Held, tenant *Tenant, users []UserTurn, term cluster.Span) {
	if len(held) == 0 {
		return
	}
	slices.SortFunc(held, func(a, b Held) int {
		if a.Rho != b.Rho {
			return cmp.Compare(a.Rho, b.Rho)
		}
		return cmp.Compare(a.Case, b.Case)
	})
	if users != nil {
		turns := make(map[int]cluster.GPUTime, len(held)) // by case
		for i := range held {
			turns[held[i].Case] = users[held[i].User].next(held[i].GPUs, term, 0)
		}
		slices.SortStableFunc(held, func(a, b Held) int { return cmp.Compare(turns[b.Case], turns[a.Case]) })
	}
	behind, lacks := make([]cluster.Span, len(tenant.Shares)), make([]cluster.GPUTime, len(tenant.Shares)) // by pool
	for p := range behind {
		behind[p], lacks[p] = tenant.Shares[p].Behind, tenant.Shares[p].Lacks
	}
	for i := range held {
		l := &held[i]
		if ranks[l.Case] = -int(behind[l.Pool]); tenant.Shares[l.Pool].Owed < 0 && lacks[l.Pool] > 0 {
			ranks[l.Case] = math.MinInt // of the floor of a tenant that repays
		}
		lacks[l.Pool] -= l.GPUs.Over(term)
		behind[l.Pool] -= Cost(tenant.Shares[l.Pool].Entitlement, l.GPUs, term)
	}
}
