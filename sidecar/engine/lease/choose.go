package lease

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Ask is one attempt to find GPUs for a gang; see place.Ask. Leases that may be displaced are identified by
// their cases.
type Ask struct {
	Shape, Pool int
	Now, End    cluster.Instant
	Displace    int  // owner of the leases: ofNobody, ofAnybody, or ofOwner + the tenant
	Spares      int  // 1 + the tenant whose gangs of at least this size stay; 0 = none
	Sharer      int  // with whom it may share a GPU; 0 = with anybody
	Stops       bool // its lease can be ended again
	Max         int
	Together    bool // only on as few nodes as it can be on
	Near        bool // only under as few switches as these need
}

// Placement is the nodes of a gang, the ending leases that it displaces, and the time at which it can start;
// see place.Placement.
type Placement struct {
	Nodes     []cluster.Holding
	Displaced []int // cases
	At        cluster.Instant
	Sharer    int // of the ask
}

// Board is the state of the cluster during a decision. Package place implements it.
type Board interface {
	Fit(Ask) (Placement, bool)
	Take(Placement)
	Renew(who int) bool
	Claim(nodes []cluster.Holding, at cluster.Instant)
	Idle(pool int) int
	Free(pool int) []int
	Prefer(who int)
}

// Room is when Slurm's limits leave room for a job.
type Room int

// Now, Later = when leases that end now have ended, Never = neither.
const (
	Now Room = iota
	Later
	Never
)

// Limits are Slurm's limits on what jobs use together. Jobs are cases. Package admit implements it.
type Limits interface {
	// Room tells when there is room for a job that waits, or that gives up its lease otherwise.
	Room(i int) Room
	// Take counts a job from now on, or from the time when leases that end now have ended.
	Take(i int, now bool)
	// Settle tells which leases end now. Before, all did that may.
	Settle(ends func(i int) bool)
}

// Stops limits what is stopped within an hour. Jobs and leases are cases. Package field implements it.
type Stops interface {
	// May reports whether leases may end for a job.
	May(who int, leases []int) bool
	// Count counts leases that end for it.
	Count(who int, leases []int)
	// Shut reports whether none may end for others any more.
	Shut() bool
	// Held reports whether leases in a pool go on only because no more may be stopped.
	Held(pool int) bool
	// Until is when more may end; 0 = unknown.
	Until() cluster.Instant
}

// Share is a tenant's entitlement in a pool, and its use of it.
type Share struct {
	Behind      cluster.Span // with every lease in force charged to its end
	Entitlement cluster.MicroGPU
	Own         cluster.MicroGPU // the entitlement without repayments; 0 = the same
	Siblings    cluster.MicroGPU // of both, what others below the same account leave to it for now: it must not be bound
	Holds       cluster.MicroGPU // GPUs of leases that do not end now
	Bound       cluster.MicroGPU // GPUs of leases that can never be ended
	Owed        cluster.GPUTime  // GPU time of its share that others received
	Lacks       cluster.GPUTime  // of its floor, if debts are repaid, in the hour until a lease that begins now ends, with every lease in force
	Lane        cluster.MicroGPU // GPUs kept for its young jobs
	Long        cluster.MicroGPU // of Bound, GPUs of jobs that do not end soon
	Wants       cluster.MicroGPU // of its share, if GPUs that others want may not be bound
	Away        Away
}

// Away is what a tenant wanted of its share lately and does not want now.
type Away struct {
	GPUs  cluster.MicroGPU
	Until cluster.Instant // the end of this, if it wants nothing until then
}

// Tenant is a tenant with its candidates, in the order of Order.
type Tenant struct {
	Name   string
	Boost  bool
	Spent  bool    // its budget is used up: it goes last, and the others may have the GPUs of its ending leases
	Shares []Share // by pool
	Jobs   []int   // indices of candidates
	// Turns lists, by pool, the candidates that may use it, in their order there; nil = the order of Jobs.
	Turns [][]int
	// Line is the turns of all pools in one order, if the tenant may have cells.
	Line []Turn
	Gang cluster.MicroGPU // of its largest job, in devices, where debts are repaid
}

// Turn is the turn of a candidate in a pool.
type Turn struct{ Candidate, Pool int }

// Each calls f for every candidate of the tenant and every pool that could serve it. at is the pool's index
// in the candidate's Pools. Within a pool, candidates come in order.
func (t *Tenant) Each(cs []Candidate, f func(i, pool, at int)) {
	if t.Turns == nil {
		for _, i := range t.Jobs {
			for at, p := range cs[i].Pools {
				f(i, p, at)
			}
		}
	}
	for p, turn := range t.Turns {
		for _, i := range turn {
			f(i, p, slices.Index(cs[i].Pools, p))
		}
	}
}

// Input is the input of Choose.
type Input struct {
	Now        cluster.Instant
	Settings   *cluster.Settings
	Candidates []Candidate
	Tenants    []Tenant
	// Claims of earlier rounds that still hold, with the candidate and the shape that asks for exactly the
	// claimed nodes.
	Claims    []Claimed
	Trials    []Trial
	Lanes     []Lane // by pool; nil = no lanes
	Worths    cluster.PoolWorths
	Limits    Limits          // nil = no limits
	Stops     Stops           // nil = no limit
	Mechanism Mechanism       // nil = tenants queue for all GPUs
	Parties   []int           // by candidate, with a mechanism
	Sharer    func(i int) int // with whom a case may be on one GPU; 0 = with anybody; nil = all may share
	// Together is until when a case that waits takes its fewest nodes of a pool only, and until when only such under as few switches as they need;
	// past = it takes any; nil = all do.
	Together func(i, pool int) (nodes, switches cluster.Instant)
	Memory   *Memory // of an earlier choice, which is void then; nil = none
}

// Claimed is a claim with its candidate, the pool's index, and the shape that asks for exactly its nodes.
type Claimed struct {
	cluster.Claim
	Candidate, InPool, Shape int
}

// Trial is a candidate that gets a lease in a pool before all others.
type Trial struct {
	Candidate, Pool int
	Even            bool // its tenant owes no time there; else it has the lease unless another tenant is much further behind
	Idle            bool // it takes only idle GPUs
}

// Grant is a new lease for a waiting job.
type Grant struct {
	Candidate, Pool int
	Placement
	End cluster.Instant
}

// Choice is the result of Choose.
type Choice struct {
	Grants  []Grant
	Renewed []int           // candidates
	Passed  []round.Passed  // by candidate
	Due     []Due           // gangs that are due but fit nowhere, furthest behind first
	Kept    []cluster.Claim // claims that go on
	// Scattered lists gangs without a lease for which idle GPUs suffice, but not on their nodes, in the order of turns.
	Scattered []Due
	by        *chooser // to decide on candidates after the choice
}

// Due is a gang that is due in a pool but fits nowhere in it.
type Due struct{ Candidate, Pool int }

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

// without drops the gangs that have a lease.
func (c *chooser) without(gangs []Due) []Due {
	return slices.DeleteFunc(gangs, func(d Due) bool { return c.settled[d.Candidate] })
}

// serveClaims gives leases to candidates with claims, and returns the charges to their tenants. A claim that
// is not served yet keeps longer leases off its nodes. A claim made when the displaced jobs got their notice
// is a promise for this boundary. A claim for a job's first lease is served even if its tenant is far ahead. None is
// served beyond the limit of bound GPUs. Claims of tenants that lack GPUs of their floors go first: one may find its GPUs taken.
func (c *chooser) serveClaims(claims []Claimed) (paid []payment) {
	if !slices.ContainsFunc(claims, func(cl Claimed) bool { return lacking(c, c.in.Candidates[cl.Candidate].Tenant, cl.InPool, nil) }) {
		return serveClaimsOf(c, claims, nil)
	}
	var later []Claimed
	for _, cl := range claims {
		if !lacking(c, c.in.Candidates[cl.Candidate].Tenant, cl.InPool, paid) {
			later = append(later, cl)
			continue
		}
		paid = serveClaimsOf(c, []Claimed{cl}, paid)
	}
	return serveClaimsOf(c, later, paid)
}

// serveClaimsOf serves claims in their order, and adds the charges to paid.
func serveClaimsOf(c *chooser, claims []Claimed, paid []payment) []payment {
	for at := range claims {
		cl := &claims[at]
		k := &c.in.Candidates[cl.Candidate]
		if !Promises(&cl.Claim, c.in.Settings) && !k.Priority.Unserved && !lacking(c, k.Tenant, cl.InPool, paid) && c.unfair(k, cl.InPool) {
			continue
		}
		if c.limitOf(k, cl.InPool) != nil {
			continue
		}
		g, ok := Grant{}, false
		if !k.Running {
			g, ok = c.try(cl.Candidate, k.Shape, cl.InPool, ofNobody, 0)
		}
		if !ok {
			g, ok = c.try(cl.Candidate, cl.Shape, cl.InPool, ofAnybody, 0)
		}
		if ok {
			paid = append(paid, payment{k.Tenant, cl.InPool, k.In(cl.InPool), g.End.Sub(g.At)})
			continue
		}
		keep(c, cl.Candidate) // from other jobs, as the nodes
		c.board.Claim(cl.Nodes, cl.At)
		c.claimed[k.Tenant][cl.InPool] += k.In(cl.InPool)
		c.choice.Passed[cl.Candidate] = round.Passed{Code: cluster.ReasonClaim, Pool: cl.InPool}
	}
	return paid
}

// Promises reports whether a claim was made when the jobs that make room for it got their notice, or later.
func Promises(cl *cluster.Claim, s *cluster.Settings) bool {
	return cl.Made.Add(max(s.Notice, s.NoticeMax)) >= cl.At
}

// serveTrials gives trials their leases, and returns the charges to their tenants, as for any lease.
func (c *chooser) serveTrials(trials []Trial) (paid []payment) {
	for _, t := range trials {
		k := &c.in.Candidates[t.Candidate]
		if c.settled[t.Candidate] || k.IdleOnly || !t.Even && c.unfair(k, t.Pool) || c.limitOf(k, t.Pool) != nil {
			continue
		}
		displace := ofAnybody
		if t.Idle {
			displace = ofNobody
		}
		if g, ok := c.try(t.Candidate, k.Shape, t.Pool, displace, 0); ok {
			paid = append(paid, payment{k.Tenant, t.Pool, k.In(t.Pool), g.End.Sub(g.At)})
		}
	}
	return paid
}

// unfair reports whether another tenant is further behind than the candidate's tenant by more than the cost
// of the lease. The candidate then waits for its tenant's turn.
func (c *chooser) unfair(k *Candidate, pool int) bool {
	own := &c.in.Tenants[k.Tenant].Shares[pool]
	for t := range c.in.Tenants {
		other := &c.in.Tenants[t]
		if t != k.Tenant && len(other.Jobs) > 0 && other.Shares[pool].Behind-own.Behind > Cost(own.Entitlement, k.In(pool), c.in.Settings.Term) {
			return true
		}
	}
	return false
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

// try looks for GPUs and takes them if they fit.
func (c *chooser) try(i, shape, pool, displace, spares int) (Grant, bool) {
	most := -1
	if c.in.Settings.MaxReclaims > 0 && c.reclaims > 0 {
		// The first gang of a round may displace as many leases as it needs. Otherwise a large one would
		// never get GPUs.
		if most = c.in.Settings.MaxReclaims - c.reclaims; most <= 0 {
			displace = ofNobody
		}
	}
	if c.in.Stops != nil && c.in.Stops.Shut() {
		displace = ofNobody
	}
	k := &c.in.Candidates[i]
	when := room(c, i)
	if when == Never {
		return Grant{}, false
	}
	p, ok := fit(c, i, Ask{Shape: shape, Pool: pool, Now: c.in.Now, End: max(k.Ends.By, Next(c.in.Now, c.in.Settings)),
		Displace: displace, Spares: spares, Stops: k.Binds == Unbound, Max: most, Sharer: sharer(c, k)})
	if !ok {
		return Grant{}, false
	}
	if c.in.Stops != nil && !c.in.Stops.May(k.Case, p.Displaced) {
		c.memory.waits[i] = true
		return Grant{}, false
	}
	if when == Later && !k.Running && p.At <= c.in.Now {
		keep(c, i) // a lease that ends now makes room for it, and is not renewed
		return Grant{}, false
	}
	if c.in.Limits != nil && !c.settled[i] && c.kept[i] == Never {
		c.in.Limits.Take(k.Case, !k.Running && p.At <= c.in.Now)
	}
	c.board.Take(p)
	if c.in.Stops != nil {
		c.in.Stops.Count(k.Case, p.Displaced)
	}
	c.reclaims += len(p.Displaced)
	g := Grant{Candidate: i, Pool: pool, Placement: p, End: Next(p.At, c.in.Settings)}
	c.settled[i] = true
	c.bound.take(k, pool)
	c.choice.Passed[i] = round.Passed{}
	c.choice.Grants = append(c.choice.Grants, g)
	return g, true
}

// fit finds GPUs for a candidate. One for which a move within its pool would pay moves to its fewest nodes. One that waits for its fewest nodes,
// or for few switches, takes no others, and it is noted if it could have these: it is then passed over by its own choice. A claim names its nodes.
func fit(c *chooser, i int, a Ask) (Placement, bool) {
	k := &c.in.Candidates[i]
	if a.Shape == k.Shape && k.stays(a.Pool) {
		at := slices.IndexFunc(k.Better, func(b Better) bool { return b.Pool == a.Pool })
		a.Together = at >= 0
		a.Near = a.Together && k.Better[at].Near
	}
	if c.in.Together == nil || k.Running || a.Shape != k.Shape {
		return c.board.Fit(a)
	}
	nodes, switches := c.in.Together(k.Case, a.Pool)
	a.Near = switches > c.in.Now
	a.Together = a.Near || nodes > c.in.Now
	p, ok := c.board.Fit(a)
	if ok || !a.Together {
		return p, ok
	}
	if a.Near {
		a.Near, a.Together = false, nodes > c.in.Now
		if _, could := c.board.Fit(a); could {
			c.memory.together[i] = switches
			return p, false
		}
	}
	if a.Together {
		a.Together = false
		if _, could := c.board.Fit(a); could {
			c.memory.together[i] = nodes
		}
	}
	return p, false
}

// chooses reports whether a candidate is without a lease because it waits for its fewest nodes.
func chooses(c *chooser, i int) bool { return c.in.Together != nil && c.memory.together[i] > 0 }

// sharer returns with whom a candidate may be on one GPU.
func sharer(c *chooser, k *Candidate) int {
	if c.in.Sharer == nil {
		return 0
	}
	return c.in.Sharer(k.Case)
}

// room tells when the limits have room for a candidate's new lease.
func room(c *chooser, i int) Room {
	switch {
	case c.in.Limits == nil || c.settled[i]: // a job that moves counts already
		return Now
	case c.kept[i] != Never:
		return c.kept[i]
	}
	return c.in.Limits.Room(c.in.Candidates[i].Case)
}

// keep keeps the limits' room for a waiting candidate without a lease.
func keep(c *chooser, i int) {
	if k := &c.in.Candidates[i]; c.in.Limits != nil && !k.Running && c.kept[i] == Never {
		if c.kept[i] = c.in.Limits.Room(k.Case); c.kept[i] != Never {
			c.in.Limits.Take(k.Case, c.kept[i] == Now)
		}
	}
}

// renewable renews a running candidate's lease on the board, if the limits leave it its part.
func renewable(c *chooser, k *Candidate) bool {
	return (c.in.Limits == nil || c.in.Limits.Room(k.Case) != Never) && c.board.Renew(k.Case)
}

// counts counts a renewed lease.
func counts(c *chooser, k *Candidate) {
	if c.in.Limits != nil {
		c.in.Limits.Take(k.Case, false)
	}
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
