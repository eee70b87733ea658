package ltgf

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Buffer holds the accounts after a look.
type Buffer struct {
	Ledger   cluster.Ledger
	Records  []cluster.Record // of all cases, in their order
	Stranded []cluster.Stranding
}

// Charge brings the accounts from Ledger.At to Now. The GPU time of every run goes to its job,
// its tenant and its pool; entitlements of tenants and jobs grow at the rates of the last look.
// Charge modifies none of its arguments, except that it reuses the lists of on for the new books, and m.
func Charge(s *cluster.Snapshot, on Buffer, m *Memory) Buffer {
	same := m.nodes.open(s)
	b := m.open(s, on.Ledger)
	records := slices.Grow(on.Records[:0], len(s.Cases))[:len(s.Cases)]
	attempts := attemptsByCase(s)
	leases, chained := s.Leases, openChains(s.Leases)
	steady := (b.badNode == nil || same) && m.worths.same(s.Settings.Worths) && len(b.ledger.Pools) == len(s.Ledger.Pools)
	b.turns = turns{sliced: b.turns.sliced[:0]}
	for i := range s.Cases { // in a loop of their own, in which one copy does not wait for the other
		records[i] = s.Cases[i].Record
		if records[i].Slice != nil {
			b.turns.sliced = append(b.turns.sliced, i)
		}
	}
	b.turns.look(s, records)
	for i := range s.Cases {
		c, r := &s.Cases[i], &records[i]
		for len(leases) > 0 && leases[0].Job < r.Key {
			leases = leases[1:]
		}
		l := &noLease
		if len(leases) > 0 && leases[0].Job == r.Key {
			l = &leases[0]
		}
		b.first, b.users.now, b.run.suspended, b.run.charged = m.Rows[i], b.users.at[i], 0, b.from
		chain := chained.of(l)
		if k := s.Before(i); k >= 0 && steady && chain == nil && m.last.courses[k] != unknown && len(attempts[i]) == 0 && r.Stopping == nil && r.Acted == 0 && l.State != cluster.Granted {
			m.courses[i] = m.last.courses[k]
			b.goOn(r, m.courses[i])
			continue
		}
		if l == &noLease && len(attempts[i]) == 0 && idles(r, c) {
			b.look(r, &c.Job)
			b.accrueJob(r, c)
			m.courses[i] = waits
			continue
		}
		had, was, on := r.Alloc, r.State, r.Held
		b.chargeJob(r, c, l, attempts[i])
		if chain != nil {
			chain.ran += r.Alloc - had
		}
		switch {
		case l == &noLease:
			b.reserveHeld(c, was, on, r.Alloc-had+b.run.suspended)
		case l.State == cluster.Granted || was == cluster.Running && l.State != cluster.Ending && finished(c):
			if chain == nil {
				b.reserve(l.Pool, l.Size, r.Alloc-had+b.run.suspended)
			} else if p := b.pool(l.Pool); p >= 0 && b.first >= 0 && l.Behind == 0 {
				chain.row, chain.pool, chain.user, chain.held = b.first, p, b.users.now, l.Size.Over(b.now.Sub(b.from))
			}
		}
		b.accrueJob(r, c)
		m.courses[i] = b.courseOf(r, c)
	}
	reserveChains(b, chained)
	b.turns.begin(s, records)
	b.keep(s, &m.nodes)
	strandings := count(withRests(s, records, &m.nodes, stranded(s, &m.nodes)), &s.Settings)
	b.chargeStranded(s, m.Rows, strandings)
	return Buffer{b.close(), records, strandings}
}

// finished tells whether a job ended by itself and is seen to have ended.
func finished(c *cluster.Case) bool {
	return !c.Gone && (c.Job.State == cluster.Done || c.Job.State == cluster.Completing)
}

// reserve adds what was held for a job since the last look beyond the GPU time charged to the job: before the job began,
// and after it had finished, until this look finds the GPUs free. Otherwise a tenant with short jobs would seem to lack
// its own GPUs, and take those of others instead.
func (b *books) reserve(pool string, size cluster.Size, charged cluster.GPUTime) {
	if p := b.pool(pool); p >= 0 && b.first >= 0 {
		kept := max(size.Over(b.now.Sub(b.from))-charged, 0)
		b.granted[b.first+p] += kept
		b.keptBy(b.users.now, p, kept)
	}
}

// reserveHeld does so for a job without a lease: one that fairlease does not place, or that still cleans up. was is its
// state at the last look, and on its GPUs if it ran.
func (b *books) reserveHeld(c *cluster.Case, was cluster.JobState, on []cluster.ModelSize, charged cluster.GPUTime) {
	if !finished(c) {
		return
	}
	switch {
	case was == cluster.Completing && c.Job.State == cluster.Completing:
		on = held(b.settings, c.Job.Holds, nil)
	case was != cluster.Running:
		return
	}
	for _, g := range on {
		b.reserve(g.Model, g.Size, charged)
		charged -= min(charged, g.Size.Over(b.now.Sub(b.from)))
	}
}

// keep charges gathered GPUs for gangs to their tenants' debt accounts if they are idle. GPUs
// that other or young jobs still hold are charged to those jobs' tenants. Gathered GPUs are taken off the idle ones.
func (b *books) keep(s *cluster.Snapshot, nodes *Nodes) {
	for k := range s.Claims {
		cl := &s.Claims[k]
		if !cl.Gathers {
			continue
		}
		i, ok := caseOf(s, cl.Job)
		p := b.pool(cl.Pool)
		if !ok || p < 0 {
			continue
		}
		if row := b.row(s.Cases[i].Record.Payer()); row >= 0 {
			for _, n := range cl.Nodes {
				gpus := cluster.MicroGPU(0)
				if slot := nodes.slot(nodes.find(n.Node), cl.Pool); slot >= 0 {
					gpus = min(n.Size.Amount(), max(nodes.idle[slot], 0))
					nodes.reserve(slot, gpus)
				}
				kept := gpus.At(b.settings.Worth(cl.Pool)).Over(b.now.Sub(b.from))
				b.kept[row+p] += kept
				b.keptBy(b.users.at[i], p, kept)
			}
		}
	}
}

// caseOf finds the case of a job.
func caseOf(s *cluster.Snapshot, job cluster.JobKey) (int, bool) {
	return sort.Find(len(s.Cases), func(i int) int { return cmp.Compare(job, s.Cases[i].Record.Key) })
}

// occupies tells whether a job holds its part of nodes now.
func occupies(c *cluster.Case) bool {
	return !c.Gone && c.Job.State != cluster.Done && c.Job.State != cluster.Waiting
}

// noLease is the lease of a job without one; read-only.
var noLease cluster.Lease

// books is the ledger during an update.
type books struct {
	last      cluster.Instant // look
	from, now cluster.Instant // from is last, or now if the clock went back
	boot      cluster.Instant // when slurmctld was started since the last look; 0 = it was not
	settings  *cluster.Settings
	ledger    cluster.Ledger
	asked     [64]int // cache: rows of recently queried tenants, + 1, by spot
	first     int     // the row of the tenant whose job is being charged; -1 = none
	run       run
	usage
	turns   turns
	lists   lists
	users   userBook
	pools   []spent         // by pool
	badNode map[string]bool // nil = none
}

// run is the state of the job that is being charged.
type run struct {
	charged   cluster.Instant // up to which it is
	suspended cluster.GPUTime // in which it kept its GPUs since the last look
}

// usage is the tenants' use since the last look, by row of the ledger.
type usage struct {
	used    []cluster.GPUTime // by their jobs
	kept    []cluster.GPUTime // gathered for gangs
	granted []cluster.GPUTime // held by leases for jobs that had not begun or had finished, or stranded
	wasted  []cluster.GPUTime // received GPU time that stops destroyed, recent or older
}

// spent divides a pool's GPU time since the last look by use.
type spent struct{ tenants, untouchable, overhead, onBad cluster.GPUTime }

// row gives the first row of a tenant, or -1. Rows are in order of tenants, one per pool. There are few tenants: comparing a cached name
// is faster than a search.
func (b *books) row(tenant string) int {
	spot := 0
	for i := max(len(tenant)-4, 0); i < len(tenant); i++ {
		spot = 10*spot + int(tenant[i])
	}
	asked := &b.asked[spot%len(b.asked)]
	if isRow(&b.ledger, *asked-1, tenant) {
		return *asked - 1
	}
	rows, n := b.ledger.Tenants, max(len(b.ledger.Pools), 1)
	at, ok := sort.Find(len(rows)/n, func(k int) int { return strings.Compare(tenant, rows[k*n].Tenant) })
	if !ok {
		return -1
	}
	*asked = at*n + 1
	return at * n
}

// isRow tells whether a row is the first one of a tenant.
func isRow(l *cluster.Ledger, row int, tenant string) bool {
	return row >= 0 && row < len(l.Tenants) && l.Tenants[row].Tenant == tenant && row%max(len(l.Pools), 1) == 0
}

// complete tells whether the ledger has its pools in order and a row for each tenant and pool, in
// order, and lacks none of the snapshot's. models are those of its nodes.
func complete(l *cluster.Ledger, s *cluster.Snapshot, models []string) bool {
	pools, rows := l.Pools, l.Tenants
	n := len(pools)
	if n == 0 || len(rows)%n != 0 {
		return false
	}
	for p := 1; p < n; p++ {
		if pools[p-1].Pool >= pools[p].Pool {
			return false
		}
	}
	for i := range rows {
		t := &rows[i]
		if t.Pool != pools[i%n].Pool || i%n > 0 && t.Tenant != rows[i-1].Tenant || i > 0 && i%n == 0 && t.Tenant <= rows[i-1].Tenant {
			return false
		}
	}
	for _, model := range models {
		if !slices.ContainsFunc(pools, func(p cluster.PoolAccount) bool { return p.Pool == model }) {
			return false
		}
	}
	k := 0
	for i := range s.Tenants { // sorted, as the rows are
		for k < len(rows) && rows[k].Tenant != s.Tenants[i].Name {
			k += n
		}
		if k == len(rows) {
			return false
		}
	}
	return true
}

// pool gives the index of a GPU model, or -1 if no node ever had it.
func (b *books) pool(model string) int {
	for p := range b.ledger.Pools {
		if b.ledger.Pools[p].Pool == model {
			return p
		}
	}
	return -1
}

type tenantPool struct{ tenant, pool string }

// addMissing opens an account for every pool, and for every tenant in every pool, also for
// tenants that left: their time stays in the accounts.
func addMissing(l *cluster.Ledger, s *cluster.Snapshot) {
	pools := map[string]bool{}
	for _, p := range l.Pools {
		pools[p.Pool] = true
	}
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			if !pools[g.Model] {
				pools[g.Model] = true
				l.Pools = append(l.Pools, cluster.PoolAccount{Pool: g.Model})
			}
		}
	}
	sort.Slice(l.Pools, func(i, j int) bool { return l.Pools[i].Pool < l.Pools[j].Pool })
	have := map[tenantPool]bool{}
	names := map[string]bool{}
	for _, t := range l.Tenants {
		have[tenantPool{t.Tenant, t.Pool}] = true
		names[t.Tenant] = true
	}
	for _, t := range s.Tenants {
		names[t.Name] = true
	}
	for name := range names {
		for _, p := range l.Pools {
			if !have[tenantPool{name, p.Pool}] {
				l.Tenants = append(l.Tenants, cluster.TenantPool{Tenant: name, Pool: p.Pool})
			}
		}
	}
	sort.Slice(l.Tenants, func(i, j int) bool {
		x, y := &l.Tenants[i], &l.Tenants[j]
		if x.Tenant != y.Tenant {
			return x.Tenant < y.Tenant
		}
		return x.Pool < y.Pool
	})
}

// chargeJob charges all runs of the job since its last charge. l is its lease at the last look,
// or empty.
func (b *books) chargeJob(r *cluster.Record, c *cluster.Case, l *cluster.Lease, attempts []cluster.Attempt) {
	j := &c.Job
	running := j.State == cluster.Running || j.State == cluster.Suspended
	over := j.State == cluster.Done || j.State == cluster.Completing && j.End > 0
	unseen := over && j.Start > 0 && startedSince(r, j, b.from)
	chargeConfiguring(b, r, c, l)
	for _, a := range attempts {
		unseen = unseen && a.Start != j.Start
		if r.Done > 0 && a.Start < r.Done {
			continue // charged when it was found to be over, whenever slurmdbd learnt of it
		}
		end := endOf(b, r, c, &a)
		// The current attempt is charged below, from Slurm's present report.
		if j.Started() && !c.Gone && (a.Start >= j.Start || a.End == 0 && r.Configured > 0) {
			continue
		}
		open := len(r.Held) > 0 && (a.Start == r.HeldSince || a.Start <= b.from && end > b.from)
		suspended, gpus := a.Suspend, counted(b.settings, a.GPUs)
		if open && len(r.Held) == 1 && !r.Held[0].Size.IsWhole() { // a part of a GPU may count otherwise than its shards
			gpus = r.Held
		}
		switch {
		case open: // at the last look: partly charged
			endStop(r, gpus, a.Start, end, a.Suspend)
			suspended = max(suspended-r.Suspend, 0)
			r.Held, r.HeldSince, r.Suspend = nil, 0, 0
		case end <= b.from:
			continue // charged long ago
		}
		b.charge(r, c, gpus, a.Start, end, suspended)
		r.Ran += max(end.Sub(a.Start)-a.Suspend, 0)
	}
	if len(r.Held) > 0 && (!running || c.Gone || j.Start > r.HeldSince) {
		end := b.endOfStretch(r, c, l)
		b.charge(r, c, r.Held, r.HeldSince, end, 0)
		endStop(r, r.Held, r.HeldSince, end, r.Suspend)
		r.Ran += max(end.Sub(r.HeldSince)-r.Suspend, 0)
		if !c.Gone && j.State == cluster.Completing {
			b.overhead(c, r.Held, end)
		}
		r.Held, r.HeldSince, r.Suspend = nil, 0, 0
	} else if !c.Gone && j.State == cluster.Completing && len(j.Holds) > 0 {
		since := b.run.charged
		if r.State != cluster.Completing { // started and requeued between two looks
			since = max(since, j.Start)
		}
		if unseen { // it ran until then, which is charged below
			since = max(since, j.End)
		}
		b.overhead(c, held(b.settings, j.Holds, nil), since)
	}
	switch {
	case c.Gone:
	case running:
		if r.HeldSince != j.Start {
			r.HeldSince, r.Suspend = j.Start, 0
		}
		suspended := max(j.Suspend-r.Suspend, 0)
		r.Suspend = j.Suspend
		was := r.Held
		had, less := b.turns.until(r, j)
		if r.Held = held(b.settings, had, was); less {
			was = r.Held
		}
		b.charge(r, c, asBefore(b.settings, was, r.Held), began(r, j), b.now, suspended)
	case unseen: // Slurm has forgotten its allocation: use that of the grant
		gpus := counted(b.settings, j.Had)
		if len(gpus) == 0 {
			gpus = held(b.settings, j.Holds, nil)
		}
		if len(gpus) == 0 {
			gpus = granted(b.settings, l, j)
		}
		b.charge(r, c, gpus, began(r, j), min(j.End, b.now), j.Suspend)
	}
	b.settleStop(r, c, l)
	b.look(r, j)
}

// idles tells whether a job without a lease has had no GPUs since the last look, apart from attempts of the history, and has none.
func idles(r *cluster.Record, c *cluster.Case) bool {
	return (c.Gone || c.Job.State == cluster.Waiting) && len(r.Held) == 0 && r.Stopping == nil && r.State != cluster.Configuring
}

// look records what a look shows of a job that is charged.
func (b *books) look(r *cluster.Record, j *cluster.Job) {
	r.Configured = r.ConfiguredIn(j.Restarts, j.State)
	r.Acted = 0
	r.State, r.Restarts, r.Submit = j.State, j.Restarts, j.Submit
}

// charge books GPUs over the part of [start, end] that is after the last look and not yet
// charged. Suspended time is overhead: the GPUs are neither used nor free. It is no GPU time that the job
// received, but its tenant keeps the GPUs from others, so it is no shortage either: an owner may suspend a job.
func (b *books) charge(r *cluster.Record, c *cluster.Case, gpus []cluster.ModelSize, start, end cluster.Instant, suspended cluster.Span) {
	start = max(start, b.run.charged)
	span := end.Sub(start)
	if span <= 0 {
		return
	}
	if suspended = min(suspended, span); r.Slice != nil { // half of a GPU all the time is a GPU half of the time
		suspended = 0
	}
	for _, g := range gpus {
		b.receive(r, b.pool(g.Model), g.Size, span-suspended, suspended)
	}
	b.chargeBad(c, span)
	b.run.charged = end
}

// receive books GPUs of a pool that a job used for some time, and kept while it was suspended.
func (b *books) receive(r *cluster.Record, p int, size cluster.Size, used, suspended cluster.Span) {
	ran, idle := size.Over(used), size.Over(suspended)
	r.Alloc += ran
	r.Extra.Alloc += r.Extra.Of(ran)
	if p < 0 {
		return
	}
	b.pools[p].overhead += idle
	if idle > 0 && b.first >= 0 {
		b.granted[b.first+p] += idle
		b.keptBy(b.users.now, p, idle)
		b.run.suspended += idle
	}
	if r.Payer() == "" {
		b.pools[p].untouchable += ran
		return
	}
	b.pools[p].tenants += ran
	if b.first >= 0 {
		b.used[b.first+p] += ran
		b.usedBy(p, ran)
	}
}

// chargeBad records GPU time on bad nodes: it is not idle.
func (b *books) chargeBad(c *cluster.Case, span cluster.Span) {
	if len(b.badNode) == 0 {
		return
	}
	for _, h := range c.Job.Holds {
		if p := b.pool(h.Model); p >= 0 && b.badNode[h.Node] {
			b.pools[p].onBad += h.Size.At(b.settings.Worth(h.Model)).Over(span)
		}
	}
}

// overhead books the GPUs of a job that cleans up: they are unusable.
func (b *books) overhead(c *cluster.Case, gpus []cluster.ModelSize, since cluster.Instant) {
	span := b.now.Sub(max(since, b.from))
	if span <= 0 {
		return
	}
	for _, g := range gpus {
		if p := b.pool(g.Model); p >= 0 {
			b.pools[p].overhead += g.Size.Over(span)
		}
	}
	b.chargeBad(c, span)
}

// accrueJob adds the job's entitlement since the last look (eq. 14).
func (b *books) accrueJob(r *cluster.Record, c *cluster.Case) {
	end := b.now
	if !c.Gone && c.Job.State == cluster.Done && c.Job.End > 0 {
		end = min(end, max(c.Job.End, b.from))
	}
	accrue(b, r, end)
	if c.Gone || c.Job.State == cluster.Done {
		r.DueRate = 0
		if r.Done == 0 {
			r.Done = b.now
		}
	}
}

// accrue makes the account of what a job is due one of this look. end is when it ended to be due at its rate.
func accrue(b *books, r *cluster.Record, end cluster.Instant) {
	switch {
	case r.DueRate == 0:
	case r.Extra.Faster == 0 && r.DueSince > 0 && b.from == b.last:
		r.Due, r.DueCarry = cluster.DueBy(r, end)
	default: // work is rounded in each look
		r.Due, r.DueCarry = cluster.DueBy(r, b.last)
		more, carry := cluster.Accrue(r.DueRate, end.Sub(b.from), r.DueCarry)
		r.Due, r.DueCarry = r.Due+more, carry
		r.Extra.Due += r.Extra.Of(more)
	}
	r.DueSince = b.now
	if r.ChargedTo == 0 {
		r.ChargedTo = b.now
	}
}

// course is what a job does until it changes: it runs on GPUs of one pool, or has none and waits. So it is charged without
// another look at it.
type course struct {
	pool  int32
	waits bool
	size  cluster.Size
}

var unknown, waits = course{}, course{waits: true}

// courseOf returns the course of a job that has been charged.
func (b *books) courseOf(r *cluster.Record, c *cluster.Case) course {
	if !c.Gone && c.Job.State == cluster.Running && len(r.Held) == 1 {
		bad := len(b.badNode) > 0 && slices.ContainsFunc(c.Job.Holds, func(h cluster.Holding) bool { return b.badNode[h.Node] })
		if p := b.pool(r.Held[0].Model); p >= 0 && !bad {
			return course{pool: int32(p), size: r.Held[0].Size}
		}
	}
	return unknown
}

// goOn charges a job that is as it was at the last look.
func (b *books) goOn(r *cluster.Record, c course) {
	if span := b.now.Sub(max(r.HeldSince, b.from)); c.size.Devices > 0 && span > 0 {
		b.receive(r, int(c.pool), c.size, span, 0)
	}
	accrue(b, r, b.now)
}

// close books use and entitlements per tenant and pool, and balances.
func (b *books) close() cluster.Ledger {
	dt := b.now.Sub(b.from)
	a := b.accounts()
	for i := range b.ledger.Tenants {
		t := &b.ledger.Tenants[i]
		used, wasted := b.used[i], b.wasted[i]
		var due cluster.GPUTime
		due, t.DueCarry = cluster.Accrue(min(t.Own(), t.Demand), dt, t.DueCarry) // eq. 8, 9
		got := cluster.Bucket{Alloc: used, Due: due, Extra: t.Extra.Of(used), ExtraDue: extraDue(t, due, dt)}
		t.Extra.Alloc += got.Extra - ofPart(t.Extra.Alloc+got.Extra, wasted, t.Alloc+used)
		t.Extra.Due += got.ExtraDue
		t.Alloc += used - wasted
		t.Due += due
		bucket(t, b.from, b.now, got, b.settings.Window)
		unbucket(t, wasted)
		t.Destroyed += wasted
	}
	a.lend(dt)
	a.lack(dt)
	a.settle(dt)
	b.settleUsers(dt)
	for i := range b.ledger.Pools {
		p := &b.ledger.Pools[i]
		all := cluster.MicroGPU(p.GPUs).Over(dt)
		sp := &b.pools[i]
		p.Capacity += all
		p.Tenants += sp.tenants
		p.Untouchable += sp.untouchable
		p.Overhead += sp.overhead
		rest := all - sp.tenants - sp.untouchable - sp.overhead
		bad := min(max(cluster.MicroGPU(p.BadGPUs).Over(dt)-sp.onBad, 0), max(rest, 0))
		p.Bad += bad
		p.Idle += rest - bad
	}
	return b.ledger
}

// extraDue gives the work due in an interval dt less the GPU time due: the throughput of what the tenant could use of
// its base (SEMANTICS §2). So trades change only what is received. Without speedups, GPU time is work.
func extraDue(t *cluster.TenantPool, due cluster.GPUTime, dt cluster.Span) cluster.GPUTime {
	if t.Usable == 0 && t.Extra.Faster == 0 {
		return 0
	}
	usable, _ := cluster.Accrue(t.Usable, dt, 0)
	return usable + t.Extra.Of(usable) - due
}
