package store

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// table is what one table holds of the living, as written last. Comparing with
// it is how a commit writes only what changed.
type table[K comparable, R comparable] struct {
	key  func(R) K
	same func(was, now R) bool // nil: ==
	rows map[K]R
	// doubted rows count as changed: they will be written again.
	doubted map[K]bool
	// later tells which rows can wait where too many have changed in one round; nil = none can. turn is where those
	// that are written are looked for first.
	later func(R) bool
	most  int // of these, in a round
	turn  int
	left  map[K]R // those that waited in the last round
}

// How many rows of a table that can wait are written in a round: tables are for people, and thousands of jobs
// that come at once must not hold up the round. Why jobs wait may change for thousands in every round.
const (
	mostJobs     = 1000
	mostVerdicts = 1000
)

// change is what must be written to a table: rows to put, and rows whose key is
// not there any more, as they were written last. left is what changed, too, and is to be written later.
type change[R any] struct{ put, gone, left []R }

func newTable[K comparable, R comparable](key func(R) K) *table[K, R] {
	return &table[K, R]{key: key, rows: map[K]R{}}
}

func (t *table[K, R]) diff(now []R) change[R] {
	var c change[R]
	known, left := 0, t.most
	turn := 0
	if len(t.left) > 0 { // those that waited come first
		turn = t.turn
	}
	for i := range now {
		row := now[(i+turn)%len(now)]
		was, ok := t.rows[t.key(row)]
		if ok {
			known++
		}
		if ok && t.unchanged(was, row) {
			continue
		}
		if t.later != nil && t.later(row) {
			if left == 0 {
				c.left = append(c.left, row)
				continue
			}
			left--
		}
		c.put = append(c.put, row)
	}
	if known == len(t.rows) {
		return c
	}
	still := make(map[K]bool, len(now))
	for _, row := range now {
		still[t.key(row)] = true
	}
	for key, row := range t.rows {
		if !still[key] {
			c.gone = append(c.gone, row)
		}
	}
	return c
}

func (t *table[K, R]) unchanged(was, now R) bool {
	switch {
	case len(t.doubted) > 0 && t.doubted[t.key(now)]:
		return false
	case t.same != nil:
		return t.same(was, now)
	}
	return was == now
}

// keep remembers that the change was written.
func (t *table[K, R]) keep(c change[R]) {
	for _, row := range c.gone {
		delete(t.rows, t.key(row))
	}
	for _, row := range c.put {
		t.rows[t.key(row)] = row
		delete(t.doubted, t.key(row))
	}
	t.left = make(map[K]R, len(c.left))
	for _, row := range c.left {
		t.left[t.key(row)] = row
	}
	t.turn += len(c.put)
}

// leased are the verdicts on jobs that have a lease.
var leased = []cluster.Code{cluster.BecauseGranted, cluster.BecauseRenewed, cluster.BecauseHolding, cluster.BecauseAdopted, cluster.BecauseStarting,
	cluster.BecauseNotice, cluster.BecauseEnding, cluster.BecauseRecalled}

// doubt makes all rows be written again.
func (t *table[K, R]) doubt() {
	t.doubted = make(map[K]bool, len(t.rows))
	for key := range t.rows {
		t.doubted[key] = true
	}
}

// written is what the journal holds as of one round, as far as later rounds are
// told as differences to it.
type written struct {
	round   int64
	at      cluster.Instant // of the round
	charged cluster.Instant // up to when its ledger is
	sampled cluster.Instant // when the histories were sampled last; 0 = never
	nextKey cluster.JobKey  // jobs from this key on are new

	boundaries []boundary // of leases that are renewed, still to come

	holders  map[cluster.JobKey]holder
	accounts map[accountKey]cluster.GPUTime

	tenants  *table[string, tenantRow]
	nodes    *table[string, nodeRow]
	jobs     *table[cluster.JobKey, jobRow]
	verdicts *table[cluster.JobKey, verdictRow]
	settings *table[bool, settingsRow]
	leases   *table[leaseKey, leaseRow]
	claims   *table[claimKey, claimRow]
	ledger   *table[accountKey, ledgerRow]
	buckets  *table[bucketKey, bucketRow]
	pools    *table[string, poolRow]
	lending  *table[lendingKey, lendingRow]
	samples  *table[accountKey, ledgerRow] // tenant_history: the newest of each

	vcCells     *table[vcCellKey, vcCellRow]
	cellSamples *table[vcCellKey, vcCellRow] // vc_cell_history: the newest of each
	boundCells  *table[boundCellKey, boundCellRow]
	fragments   *table[levelKey, fragmentRow] // fragmentation_history: the newest of each
	violations  *table[string, violationRow]

	divided      cluster.Instant        // when a division was sampled last; 0 = never
	speeds       map[accountKey]float64 // of GPUs to tenants
	divisions    *table[divisionKey, divisionRow]
	profiles     *table[profileKey, profileRow]
	entitlements *table[accountKey, entitlementRow]
	entSamples   *table[accountKey, entitlementRow] // entitlement_history: the newest of each
	trades       *table[int64, tradeRow]
}

func newWritten(refresh cluster.Span) *written {
	w := &written{
		tenants:  newTable(func(r tenantRow) string { return r.Name }),
		nodes:    newTable(func(r nodeRow) string { return r.Name }),
		jobs:     newTable(func(r jobRow) cluster.JobKey { return r.Key }),
		verdicts: newTable(func(r verdictRow) cluster.JobKey { return r.Job }),
		settings: newTable(func(settingsRow) bool { return true }),
		leases:   newTable(func(r leaseRow) leaseKey { return r.leaseKey }),
		claims:   newTable(func(r claimRow) claimKey { return r.claimKey }),
		ledger:   newTable(func(r ledgerRow) accountKey { return r.accountKey }),
		buckets:  newTable(func(r bucketRow) bucketKey { return r.bucketKey }),
		pools:    newTable(func(r poolRow) string { return r.Pool }),
		lending:  newTable(func(r lendingRow) lendingKey { return r.lendingKey }),
		samples:  newTable(func(r ledgerRow) accountKey { return r.accountKey }),

		vcCells:     newTable(func(r vcCellRow) vcCellKey { return r.vcCellKey }),
		cellSamples: newTable(func(r vcCellRow) vcCellKey { return r.vcCellKey }),
		boundCells:  newTable(func(r boundCellRow) boundCellKey { return r.boundCellKey }),
		fragments:   newTable(func(r fragmentRow) levelKey { return r.levelKey }),
		violations:  newTable(func(r violationRow) string { return r.What }),

		divisions:    newTable(func(r divisionRow) divisionKey { return r.divisionKey }),
		profiles:     newTable(func(r profileRow) profileKey { return r.profileKey }),
		entitlements: newTable(func(r entitlementRow) accountKey { return r.accountKey }),
		entSamples:   newTable(func(r entitlementRow) accountKey { return r.accountKey }),
		trades:       newTable(func(r tradeRow) int64 { return r.ID }),
	}
	w.jobs.same = sameJob
	w.jobs.later, w.jobs.most = func(r jobRow) bool { return r.State == cluster.Waiting && r.Terms == 0 }, mostJobs
	w.verdicts.later, w.verdicts.most = func(r verdictRow) bool { return !slices.Contains(leased, r.Code) }, mostVerdicts
	w.verdicts.same = func(was, now verdictRow) bool { return sameVerdict(was, now, refresh) }
	w.leases.same = sameLease
	w.lending.same = func(was, now lendingRow) bool { return was.GPUs == now.GPUs }
	w.ledger.same = sameStanding
	w.samples.same = sameStanding
	w.vcCells.same, w.cellSamples.same = sameCells, sameCells
	w.boundCells.same = func(was, now boundCellRow) bool { was.Since = now.Since; return was == now }
	w.fragments.same = func(was, now fragmentRow) bool { was.At = now.At; return was == now }
	w.violations.same = func(violationRow, violationRow) bool { return true }
	w.divisions.same = func(divisionRow, divisionRow) bool { return true }
	w.entitlements.same, w.entSamples.same = sameEntitlement, sameEntitlement
	w.trades.same = func(was, now tradeRow) bool { was.At, was.Why = now.At, now.Why; return was == now }
	return w
}

// sameJob leaves out the integrals: they grow every round, and verdicts has
// them while the job lives.
func sameJob(was, now jobRow) bool {
	was.Alloc, was.Due = now.Alloc, now.Due
	return was == now
}

// sameLease leaves out what stays as it was written first.
func sameLease(was, now leaseRow) bool {
	was.GrantedIn, was.AllocFrom = now.GrantedIn, now.AllocFrom
	return was == now
}

// sameStanding leaves out when it was.
func sameStanding(was, now ledgerRow) bool {
	was.At = now.At
	return was == now
}

// sameCells leaves out when it was.
func sameCells(was, now vcCellRow) bool {
	was.At = now.At
	return was == now
}

// sameEntitlement leaves out when it was.
func sameEntitlement(was, now entitlementRow) bool {
	was.At = now.At
	return was == now
}

// sameVerdict tells whether the row may stay: the reason is the same, and what
// goes with it (numbers, who went before it, until when) is not yet to be refreshed. Each job's turn comes once in refresh;
// the turns are spread over that time.
func sameVerdict(was, now verdictRow, refresh cluster.Span) bool {
	turn := func(v verdictRow) int64 {
		offset := int64(v.Job) * 7919 // a prime, so that neighbours are far apart
		return (int64(v.At) + offset) / int64(refresh)
	}
	if turn(was) != turn(now) {
		return false
	}
	was.Round, was.At = now.Round, now.At
	was.Free, was.Behind, was.OtherBehind, was.Rank, was.Rho = now.Free, now.Behind, now.OtherBehind, now.Rank, now.Rho
	was.OtherJob, was.Other, was.Until, was.For, was.Pool = now.OtherJob, now.Other, now.Until, now.For, now.Pool
	was.SlurmSays, was.Alloc, was.Due = now.SlurmSays, now.Alloc, now.Due
	return was == now
}

// entry is all that one round adds to the journal, but its blobs.
type entry struct {
	round roundRow
	at    cluster.Instant

	tenants  change[tenantRow]
	nodes    change[nodeRow]
	jobs     change[jobRow]
	verdicts change[verdictRow]
	settings change[settingsRow]
	leases   change[leaseRow]
	claims   change[claimRow]
	ledger   change[ledgerRow]
	buckets  change[bucketRow]
	pools    change[poolRow]
	lending  change[lendingRow]

	marks      []markRow
	boundaries []boundary

	samples     change[ledgerRow]
	poolSamples []poolRow
	charges     []chargeRow
	lendingDays []lendingDayRow
	losses      []lossRow
	actions     []actionRow
	events      []eventRow

	vcCells, cellSamples change[vcCellRow]
	boundCells           change[boundCellRow]
	fragments            change[fragmentRow]
	violations           change[violationRow]

	divided                  bool // its entitlements are sampled
	speeds                   map[accountKey]float64
	divisions                change[divisionRow]
	profiles                 change[profileRow]
	entitlements, entSamples change[entitlementRow]
	trades                   change[tradeRow]
}

// entry tells a round as the difference to what is written. Histories are
// sampled at most once in every.
func (w *written) entry(snap cluster.Snapshot, plan cluster.Plan, every cluster.Span) entry {
	e := entry{round: roundOf(snap, plan), at: plan.At}
	e.tenants = w.tenants.diff(tenantRows(snap))
	e.nodes = w.nodes.diff(nodeRows(snap))
	e.jobs = w.jobs.diff(w.jobRows(snap, plan))
	e.verdicts = w.verdicts.diff(verdictRows(snap, plan))
	e.settings = w.settings.diff([]settingsRow{{documentOf(snap.Settings)}})
	e.leases, e.marks, e.boundaries = w.leaseEntry(plan)
	e.claims = w.claims.diff(claimRows(plan))
	e.ledger = w.ledger.diff(ledgerRows(plan))
	e.buckets = w.buckets.diff(bucketRows(plan))
	e.pools = w.pools.diff(poolRows(plan))
	e.lending = w.lending.diff(lendings(plan.Tenants, plan.At))
	vcCells := vcCellRows(snap, plan)
	e.vcCells = w.vcCells.diff(vcCells)
	e.boundCells = w.boundCells.diff(boundCellRows(plan))
	e.violations = w.violations.diff(violationRows(plan))
	e.speeds = w.speedsAfter(plan)
	e.divisions = w.divisions.diff(divisionRows(snap))
	e.profiles = w.profiles.diff(profileRows(snap, plan))
	entitlements := entitlementRows(snap, plan, e.speeds)
	e.entitlements = w.entitlements.diff(entitlements)
	e.trades = w.trades.diff(tradeRows(snap))
	e.trades.gone = tradesOver(e.trades.gone, snap)
	if w.sampled == 0 || plan.At.Sub(w.sampled) >= every {
		e.samples = w.samples.diff(ledgerRows(plan))
		e.poolSamples = poolRows(plan)
		e.cellSamples = w.cellSamples.diff(vcCells)
		e.fragments = w.fragments.diff(fragmentRows(snap, plan))
	}
	// What a division changes may stay for long: it is sampled by itself, as rarely.
	e.divided = len(e.divisions.put) > 0 && len(w.divisions.doubted) == 0 && plan.At.Sub(w.divided) >= every
	if e.poolSamples != nil || e.divided {
		e.entSamples = w.entSamples.diff(entitlements)
	}
	e.charges = w.charges(snap, plan.Memory)
	e.lendingDays = w.lentSince(plan.At)
	e.losses = lossRows(plan)
	e.actions = actionRows(plan)
	e.events = eventRows(plan)
	return e
}

// keep remembers that the round was written.
func (w *written) keep(e entry, m cluster.Memory) {
	w.round, w.at, w.charged, w.nextKey = e.round.Number, e.at, m.Ledger.At, m.NextKey
	w.tenants.keep(e.tenants)
	w.nodes.keep(e.nodes)
	w.jobs.keep(e.jobs)
	w.verdicts.keep(e.verdicts)
	w.settings.keep(e.settings)
	w.leases.keep(inForce(e.leases))
	w.boundaries = e.boundaries
	w.claims.keep(e.claims)
	w.ledger.keep(e.ledger)
	w.buckets.keep(e.buckets)
	w.pools.keep(e.pools)
	w.lending.keep(e.lending)
	w.samples.keep(e.samples)
	w.vcCells.keep(e.vcCells)
	w.cellSamples.keep(e.cellSamples)
	w.boundCells.keep(e.boundCells)
	w.fragments.keep(e.fragments)
	w.violations.keep(e.violations)
	if w.speeds = e.speeds; e.divided {
		w.divided = e.at
	}
	w.divisions.keep(e.divisions)
	w.profiles.keep(e.profiles)
	w.entitlements.keep(e.entitlements)
	w.entSamples.keep(e.entSamples)
	w.trades.keep(e.trades)
	if e.poolSamples != nil {
		w.sampled = e.at
	}
	w.holders = make(map[cluster.JobKey]holder, len(m.Records))
	for _, r := range m.Records {
		w.holders[r.Key] = holderOf(r)
	}
	w.accounts = make(map[accountKey]cluster.GPUTime, len(m.Ledger.Tenants))
	for _, t := range m.Ledger.Tenants {
		w.accounts[accountKey{t.Tenant, t.Pool}] = t.Alloc
	}
}

// doubt makes the next round be written in full, over whatever is there; but not
// lending, which tells since when it is so.
func (w *written) doubt() {
	w.sampled = 0
	for _, t := range []interface{ doubt() }{
		w.tenants, w.nodes, w.jobs, w.verdicts, w.settings, w.leases, w.claims, w.ledger, w.buckets, w.pools, w.samples,
		w.vcCells, w.cellSamples, w.boundCells, w.fragments, w.violations,
		w.divisions, w.profiles, w.entitlements, w.entSamples, w.trades,
	} {
		t.doubt()
	}
}

// inForce takes the leases that are over off what is remembered.
func inForce(c change[leaseRow]) change[leaseRow] {
	kept := change[leaseRow]{gone: c.gone}
	for _, row := range c.put {
		if row.Ended == 0 {
			kept.put = append(kept.put, row)
		}
	}
	return kept
}
