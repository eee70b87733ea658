package forecast

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// phase is the state of a job in a run.
type phase uint8

const (
	away phase = iota // not there yet
	waits
	runs
	over
)

// life is a job in a run.
type life struct {
	*job
	id        int32
	gpus      int32   // that it holds or wants: a part of its GPU while it takes turns
	mate      int32   // the next of the jobs on its GPU, in a ring; -1 = it takes no turns
	turn      float64 // so much more than its part of the GPU it counts in accounts, by its part of the turns
	half      bool    // it takes turns, or did before the others left
	phase     phase
	version   int32           // grows whenever it starts, stops or ends, or goes on at another pace
	left      cluster.Span    // work left since then, as time on the reference model
	speed     float64         // since then
	lag       cluster.Span    // start cost, since then
	since     cluster.Instant // when its pace last changed
	worked    cluster.Span    // time of its attempt before that, without its start
	start     cluster.Instant // of its attempt
	began     cluster.Span    // run time of earlier attempts
	spent     cluster.Span
	got       float64 // unit-ms received before its attempt
	owed      float64 // unit-ms: due less received, less the tenant's clock when it was set
	served    bool
	first     bool // its present lease is its first
	holds     []hold
	listed    int32 // in its tenant's running jobs
	candidate bool  // its lease ends at this boundary and is undecided: what it uses of Slurm's limits is not in use
	line      *line // where it waits
	lent      bool  // it holds GPUs beyond the cells of its tenant: their owner takes them at once
}

// run is one run.
type run struct {
	*site
	*history
	number  uint64
	rng     *rand.Rand
	now     cluster.Instant
	horizon cluster.Instant
	lives   []*life
	ends    queueOf[ending]
	comes   arrivals
	gone    []closure
	changed bool // something may start

	free   []int32
	closed []bool
	on     [][]int32 // lives by node
	soft   []int32   // GPUs by node whose lease is undecided
	idle   []int32   // by pool
	rooms  [][]level // by pool: nodes by their number of free GPUs
	taken  [][]level // likewise, by the GPUs that are free or whose lease is undecided
	// undecided is the leases that end, by node.
	undecided [][]undecided
	accounts  []account // by tenant, then pool
	clocks    []clock   // by tenant
	stops     []float64 // by pool
	inUse     []int64   // of Slurm's limits
	charged   cluster.Instant
	claims    []int32
	bound     cluster.Instant // the next boundary
	scratch   turnRoom
	check     func() // of tests, after each step; nil = none

	startAt, endAt []uint32 // of the site's jobs, in seconds from the beginning; beyond = not within the horizon
}

// beyond is a time after the horizon.
const beyond = math.MaxUint32

// account is a tenant's account in a pool in a run.
type account struct {
	deficit float64
	holds   float64
	waiting float64 // GPUs that its waiting jobs want within Slurm's limits; counted in the first pool that serves them
	free    float64 // those of jobs that use nothing of Slurm's limits
	firsts  int32   // GPUs of first leases
}

// clock is what is due to the jobs of a tenant, by their size.
type clock struct {
	at      cluster.Instant
	active  int32
	due     []due
	lines   []*line
	running []int32
	fresh   []int32 // waiting jobs that never had a lease
}

// due is the unit-ms due to a job of so many units since the beginning.
type due struct {
	gpus int32
	time float64
}

// ending is the end of a job's work.
type ending struct {
	at      cluster.Instant
	id      int32
	version int32
}

func (a ending) before(b ending) bool { return a.at < b.at || a.at == b.at && a.id < b.id }

// arrivals is the next arrivals of a run: its own jobs that come later, and days of the past.
type arrivals struct {
	later []int32 // lives by first
	day   []arrival
	from  cluster.Instant
	open  bool // there are days
}

// closure is nodes that are not used for a time.
type closure struct {
	nodes       []int32
	from, until cluster.Instant
	shut        bool
}

// newRun prepares a run.
func newRun(s *site, h *history, number, seed uint64, horizon cluster.Span, closures []closure) *run {
	r := &run{site: s, history: h, number: mix(seed ^ mix(number)), rng: rand.New(rand.NewPCG(seed, number)), now: s.now, horizon: s.now.Add(horizon), charged: s.now}
	r.gone = slices.Clone(closures)
	r.free, r.closed, r.on, r.soft = make([]int32, len(s.nodes)), make([]bool, len(s.nodes)), make([][]int32, len(s.nodes)), make([]int32, len(s.nodes))
	r.idle, r.rooms, r.stops = make([]int32, len(s.pools)), levelsOf(s), slices.Clone(s.stops)
	r.inUse = slices.Clone(s.inUse)
	r.taken = levelsOf(s)
	r.undecided, r.scratch.seen = make([][]undecided, len(s.nodes)), make([]int32, len(s.nodes))
	for i := range s.nodes {
		n := &s.nodes[i]
		r.free[i] = n.size
		r.idle[n.pool] += n.size
		r.rooms[n.pool][n.size].add(int32(i))
		r.taken[n.pool][n.size].add(int32(i))
	}
	r.accounts, r.clocks = make([]account, len(s.tenants)*len(s.pools)), make([]clock, len(s.tenants))
	for t := range s.tenants {
		r.clocks[t] = clock{at: s.now}
		for p := range s.pools {
			r.account(int32(t), int32(p)).deficit = s.tenants[t].shares[p].deficit
		}
	}
	r.startAt, r.endAt = make([]uint32, len(s.jobs)), make([]uint32, len(s.jobs))
	r.bound = r.next(s.now)
	all := make([]life, len(s.jobs))
	r.lives = make([]*life, 0, 2*len(s.jobs))
	for i := range s.jobs {
		j := &s.jobs[i]
		r.startAt[i], r.endAt[i] = beyond, beyond
		all[i] = life{job: j, id: int32(i), gpus: j.gpus, mate: j.mate, began: j.began, spent: j.spent, got: j.received, served: j.served, owed: j.due, listed: -1}
		if j.running {
			all[i].gpus, all[i].half = j.held, j.half
		}
		r.lives = append(r.lives, &all[i])
	}
	for i := range all {
		countTurns(r, &all[i])
	}
	for i := range s.jobs {
		j, l := &s.jobs[i], &all[i]
		total := j.known
		if total == 0 {
			total = h.total(r.rng, r.number, &j.like, j.ran)
		}
		if j.limit > 0 {
			total = min(total, j.limit)
		}
		l.left = max(total-j.ran, cluster.Second)
		switch {
		case j.running:
			r.startAt[i] = 0
			here := l.counts() * float64(s.now.Sub(j.start)) // received in this attempt, which owes and rank add
			l.start, l.owed, l.got = j.start, j.due+here, max(j.received-here, 0)
			r.join(l)
			l.holds = append(l.holds, j.holds...)
			l.left += cluster.Span(float64(s.now.Sub(j.start)) * paceOf(r, l))
			r.begin(l)
		case j.first > s.now:
			r.comes.later = append(r.comes.later, l.id)
		default:
			r.join(l)
			r.wait(l)
		}
	}
	slices.SortStableFunc(r.comes.later, func(a, b int32) int { return int(r.lives[a].job.first - r.lives[b].job.first) })
	r.comes.open, r.comes.from = len(h.days) > 0, s.now
	if r.comes.open {
		r.comes.day = h.days[r.rng.IntN(len(h.days))]
	}
	return r
}

func (r *run) account(t, p int32) *account { return &r.accounts[int(t)*len(r.pools)+int(p)] }

// next gives the next boundary of leases after a moment, coarser from six hours and from a day on.
func (r *run) next(t cluster.Instant) cluster.Instant {
	step := cluster.Instant(max(r.set.Term, cluster.Minute))
	switch gone := t.Sub(r.site.now); {
	case gone >= cluster.Day:
		step *= 4
	case gone >= 6*cluster.Hour:
		step *= 2
	}
	return t - t%step + step
}

// round gives the first moment after now at which a change is acted on: half a minute, two minutes from six hours on, and five from
// a day on.
func (r *run) round(now cluster.Instant) cluster.Instant {
	switch gone := now.Sub(r.site.now); {
	case gone >= cluster.Day:
		return now.Add(5 * cluster.Minute)
	case gone >= 6*cluster.Hour:
		return now.Add(2 * cluster.Minute)
	}
	return now.Add(max(r.set.Interval, 30*cluster.Second))
}

// do makes the run.
func (r *run) do() {
	r.turn(false)
	tick, due := r.now.Add(r.set.Term/3), r.round(r.now)
	for r.now < r.horizon {
		at := min(r.bound, tick, r.horizon)
		if r.changed {
			at = min(at, max(due, r.now))
		}
		if len(r.ends) > 0 {
			at = min(at, r.ends[0].at)
		}
		if c := r.comes.next(r); c > 0 {
			at = min(at, c)
		}
		for i := range r.gone {
			if c := &r.gone[i]; !c.shut && c.from > r.now {
				at = min(at, c.from)
			} else if c.shut && c.until > r.now {
				at = min(at, c.until)
			}
		}
		r.now = at
		for i := range r.gone {
			r.close(&r.gone[i])
		}
		for len(r.ends) > 0 && r.ends[0].at <= r.now {
			e := r.ends.pop()
			if l := r.lives[e.id]; l.phase == runs && l.version == e.version {
				r.end(l)
			}
		}
		for c := r.comes.next(r); c > 0 && c <= r.now; c = r.comes.next(r) {
			r.come()
		}
		switch {
		case r.now >= r.bound:
			r.bound = r.next(r.now)
			r.turn(true)
			due, r.changed = r.round(r.now), false
		case r.changed && r.now >= due:
			r.turn(false)
			due, r.changed = r.round(r.now), false
		}
		if r.now >= tick {
			r.recalls()
			tick = r.now.Add(max(r.bound.Sub(r.now)/2, r.set.Term/3))
		}
		if r.check != nil {
			r.check()
		}
	}
}

// next gives the next arrival; 0 = none.
func (a *arrivals) next(r *run) cluster.Instant {
	at := cluster.Instant(0)
	if len(a.later) > 0 {
		at = r.lives[a.later[0]].job.first
	}
	for a.open && len(a.day) == 0 {
		if a.from = a.from.Add(r.day); a.from >= r.horizon {
			a.open = false
			break
		}
		a.day = r.days[r.rng.IntN(len(r.days))]
	}
	if a.open {
		if c := max(a.from.Add(a.day[0].at), r.now); at == 0 || c < at {
			at = c
		}
	}
	return at
}

// come lets the next job arrive.
func (r *run) come() {
	a := &r.comes
	if len(a.later) > 0 && r.lives[a.later[0]].job.first <= r.now {
		l := r.lives[a.later[0]]
		a.later = a.later[1:]
		r.join(l)
		r.wait(l)
		r.changed = true
		return
	}
	x := &a.day[0]
	a.day = a.day[1:]
	total := x.ran
	if !x.over {
		total = r.total(r.rng, r.number, &x.job.like, x.ran)
	}
	if x.job.limit > 0 {
		total = min(total, x.job.limit)
	}
	l := &life{job: &x.job, id: int32(len(r.lives)), gpus: x.job.gpus, mate: -1, left: max(total, cluster.Second), listed: -1}
	r.lives = append(r.lives, l)
	r.join(l)
	r.wait(l)
	r.changed = true
}

// join makes a job active: from now on it is due a part of what its tenant is due.
func (r *run) join(l *life) {
	if l.tenant >= 0 {
		r.clocks[l.tenant].tick(r, l.tenant)
		r.clocks[l.tenant].active++
		l.owed -= r.clocks[l.tenant].of(l.job.gpus)
	}
}

// of gives what has been due to a job of so many GPUs since the beginning.
func (c *clock) of(gpus int32) float64 {
	for i := range c.due {
		if c.due[i].gpus == gpus {
			return c.due[i].time
		}
	}
	c.due = append(c.due, due{gpus: gpus})
	return 0
}

// tick brings a tenant's clock up to now.
func (c *clock) tick(r *run, t int32) {
	gone := float64(r.now.Sub(c.at))
	c.at = r.now
	if gone <= 0 || c.active == 0 {
		return
	}
	entitled, demand := 0.0, 0.0
	for p := range r.pools {
		a := r.account(t, int32(p))
		entitled += r.tenants[t].shares[p].own
		demand += a.holds + a.waiting
	}
	each := min(entitled, demand) / float64(c.active)
	for i := range c.due {
		c.due[i].time += min(each, float64(c.due[i].gpus)) * gone
	}
}

// owes gives what a job is owed now, in unit-ms; its tenant's clock must be up to date.
func (r *run) owes(l *life) float64 {
	if l.tenant < 0 {
		return 0
	}
	out := l.owed + r.clocks[l.tenant].of(l.job.gpus)
	if l.phase == runs {
		out -= l.counts() * float64(r.now.Sub(l.start))
	}
	return out
}

// begin lets a job run on its holds.
func (r *run) begin(l *life) {
	pool := r.nodes[l.holds[0].node].pool
	l.phase, l.version, l.speed, l.since, l.worked = runs, l.version+1, paceOf(r, l), l.start, 0
	use(r.inUse, r.quotas[l.quota], 1)
	for _, h := range l.holds {
		r.fill(h.node, -h.gpus)
		r.on[h.node] = append(r.on[h.node], l.id)
	}
	if l.tenant >= 0 {
		r.account(l.tenant, pool).holds += l.counts()
		if l.first {
			r.account(l.tenant, pool).firsts += l.gpus
		}
		c := &r.clocks[l.tenant]
		l.listed = int32(len(c.running))
		c.running = append(c.running, l.id)
	}
	r.ends.push(ending{max(l.start.Add(l.lag+cluster.Span(float64(l.left)/l.speed)), r.now), l.id, l.version})
}

// fill changes the free GPUs of a node.
func (r *run) fill(n, by int32) {
	pool := r.nodes[n].pool
	move(r.rooms[pool], n, r.free[n], by)
	move(r.taken[pool], n, r.free[n]+r.soft[n], by)
	r.free[n] += by
	r.idle[pool] += by
}

// soften changes the GPUs of a node whose lease is undecided.
func (r *run) soften(n, by int32) {
	move(r.taken[r.nodes[n].pool], n, r.free[n]+r.soft[n], by)
	r.soft[n] += by
}

// leave takes a job off its GPUs.
func (r *run) leave(l *life) {
	pool := r.nodes[l.holds[0].node].pool
	for _, h := range l.holds {
		r.fill(h.node, h.gpus)
		list := r.on[h.node]
		at := slices.Index(list, l.id)
		list[at] = list[len(list)-1]
		r.on[h.node] = list[:len(list)-1]
	}
	if l.candidate {
		r.decide(l)
	} else {
		use(r.inUse, r.quotas[l.quota], -1)
	}
	if l.tenant >= 0 {
		r.account(l.tenant, pool).holds -= l.counts()
		if l.first {
			r.account(l.tenant, pool).firsts -= l.gpus
		}
		c := &r.clocks[l.tenant]
		last := c.running[len(c.running)-1]
		c.running[l.listed], r.lives[last].listed = last, l.listed
		c.running = c.running[:len(c.running)-1]
		l.listed = -1
	}
	l.holds, l.first = l.holds[:0], false
	l.version++
	part(r, l)
	r.changed = true
}

// end ends a job for good.
func (r *run) end(l *life) {
	r.charge()
	if l.tenant >= 0 {
		r.clocks[l.tenant].tick(r, l.tenant)
		r.clocks[l.tenant].active--
	}
	r.leave(l)
	l.phase = over
	if int(l.id) < len(r.endAt) {
		r.endAt[l.id] = r.since()
	}
}

// since gives the time since the beginning, in seconds.
func (r *run) since() uint32 { return uint32(r.now.Sub(r.site.now) / cluster.Second) }

// attempt gives the stop budget's view of a running job.
func (l *life) attempt() stop.Job {
	return stop.Job{Saving: &l.manner.saving, Start: l.start, Ran: l.began, Spent: l.spent, Begin: l.manner.begin}
}

// mayStop tells whether a running job may be stopped at a moment.
func (r *run) mayStop(l *life, at cluster.Instant) bool {
	if l.fixed || l.alone || l.tenant < 0 {
		return false
	}
	a := l.attempt()
	return a.May(r.rule, at, r.set.Notice)
}

// halt stops a running job; it waits again.
func (r *run) halt(l *life) {
	a := l.attempt()
	cost, lost := a.Cost(r.now, r.set.Notice), cluster.Span(0)
	if from, _ := a.Destroys(r.now, r.set.Notice); from > 0 {
		lost = r.now.Sub(from)
	}
	ran := r.now.Sub(l.start)
	worked := min(max(r.now.Sub(l.since)-l.lag-lost, 0), cluster.Span(float64(l.left)/l.speed))
	l.left = max(l.left-cluster.Span(float64(worked)*l.speed), cluster.Second)
	l.began += ran
	l.got += l.counts() * float64(l.worked+worked)
	l.owed -= l.counts() * float64(l.worked+worked)
	l.spent += cost
	pool := r.nodes[l.holds[0].node].pool
	r.stops[pool] -= float64(l.gpus) * float64(cost)
	r.leave(l)
	r.wait(l)
}

// start starts a waiting job on its holds.
func (r *run) start(l *life, holds []hold) {
	c := &r.clocks[l.tenant]
	c.tick(r, l.tenant)
	r.unwait(l)
	l.holds = append(l.holds[:0], holds...)
	l.start, l.first, l.lag = r.now, !l.served, 0
	if l.served {
		l.lag = l.manner.begin
	}
	l.served = true
	if int(l.id) < len(r.startAt) && r.startAt[l.id] == beyond {
		r.startAt[l.id] = r.since()
	}
	r.begin(l)
}

// close shuts nodes, and opens them again.
func (r *run) close(c *closure) {
	switch {
	case !c.shut && c.from <= r.now && c.until > r.now:
		c.shut = true
		r.charge()
		for _, n := range c.nodes {
			for len(r.on[n]) > 0 {
				l := r.lives[r.on[n][0]]
				if l.tenant < 0 || l.alone || l.fixed {
					r.end(l)
				} else {
					r.halt(l)
				}
			}
			r.closed[n] = true
			r.fill(n, -r.nodes[n].size)
		}
	case c.shut && c.until <= r.now:
		c.shut, c.until = false, 0
		for _, n := range c.nodes {
			r.closed[n] = false
			r.fill(n, r.nodes[n].size)
		}
		r.changed = true
	}
}

// charge brings the deficits and the budgets for stops up to now, as package ltgf does.
func (r *run) charge() {
	gone := float64(r.now.Sub(r.charged))
	r.charged = r.now
	if gone <= 0 {
		return
	}
	for p := range r.pools {
		lacking, lent, taken, held := 0.0, 0.0, 0.0, 0.0
		rate := func(t int) (entitled, wanted, holds float64) {
			a := r.account(int32(t), int32(p))
			entitled = r.tenants[t].shares[p].entitled
			demand := a.holds + a.waiting
			if r.set.RhoSelect == 8 {
				entitled = min(entitled, demand)
			}
			return entitled, min(entitled, demand), a.holds
		}
		for t := range r.tenants {
			entitled, wanted, holds := rate(t)
			lacks := max(wanted-holds, 0)
			lacking, lent, taken, held = lacking+lacks, lent+max(entitled-holds, 0)-lacks, taken+max(holds-entitled, 0), held+holds
		}
		taken = max(taken-lacking, 0)
		for t := range r.tenants {
			entitled, wanted, holds := rate(t)
			lacks := max(wanted-holds, 0)
			more := max(entitled-holds, 0) - lacks
			if taken < lent {
				more *= taken / lent
			}
			more += lacks
			a := r.account(int32(t), int32(p))
			a.deficit += (more - max(holds-entitled, 0)) * gone
			if ceiling := r.tenants[t].shares[p].entitled * float64(r.set.CreditCap); a.deficit > ceiling {
				a.deficit = max(ceiling, a.deficit-more*gone)
			}
		}
		if r.set.StopTotalMilli > 0 {
			most := float64(r.idle[p]) + held
			r.stops[p] = min(r.stops[p]+held*gone*float64(r.set.StopTotalMilli)/1000, most*float64(max(r.set.StopAllowance, r.set.StartCost)))
		}
	}
}
