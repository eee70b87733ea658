package store

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// table is the live part of one table, as written last. By comparison with it a commit writes
// only changes.
type table[K comparable, R comparable] struct {
	put  string // the query that writes rows
	key  func(R) K
	same func(was, now R) bool // nil: ==
	gone string                // the query for rows with removed keys; "" = such rows stay unchanged
	// mark applies the effect of gone to such a row; nil = none.
	mark func(row *R, at stamp)
	over func(R) bool // tells which rows are forgotten once they are written; nil = none
	rows map[K]*R
	// doubted rows count as changed: they will be written again.
	doubted map[K]bool
	// later tells which rows can wait if too many have changed in one round; nil = none. turn is
	// the place where the search for the next ones starts.
	later func(R) bool
	most  int // maximum number of these per round
	turn  int
	// refresh is after how long rows of statuses that changed in numbers only are written again; 0 = of other tables.
	refresh cluster.Span
	left    map[K]*R // those that waited in the last round and were made
	waits   bool     // some did
	// order is the rows of the last round in its order, by which thousands are found without a search.
	order []ordered[K, R]
}

type ordered[K, R any] struct {
	key K
	row *R // nil = it was not written yet
}

// The limits on rows that can wait, per table and round. Tables are for people, and thousands of
// arriving jobs must not delay the round. The reasons of waiting jobs may change for thousands in
// every round.
const (
	mostJobs     = 1000
	mostStatuses = 1000
)

// change is what must be written to a table: new or changed rows to put, and rows with removed
// keys, as written last. left has changed, too, and is written later; waits tells that such rows were not even made.
type change[K, R comparable] struct {
	of              *table[K, R]
	put, gone, left []R
	waits           bool
}

func newTable[K comparable, R comparable](put string, key func(R) K) *table[K, R] {
	return &table[K, R]{put: put, key: key, rows: map[K]*R{}}
}

func (t *table[K, R]) diff(now []R) change[K, R] {
	return t.diffOf(source[K, R]{len(now), func(i int) K { return t.key(now[i]) }, func(int, *R) bool { return false }, func(i int) R { return now[i] }, nil})
}

// source is the rows of a round. Most of thousands are as they were: those are not made.
type source[K, R comparable] struct {
	n    int
	key  func(i int) K
	same func(i int, was *R) bool // a row is known to be unchanged; false = it has to be compared
	row  func(i int) R
	// later tells which rows can wait without being made, if nobody asks for them by key; nil = none.
	later func(i int) bool
}

func (t *table[K, R]) diffOf(now source[K, R]) change[K, R] {
	c := change[K, R]{of: t}
	known, left := 0, t.most
	turn := 0
	if t.waits { // those that waited come first
		turn = t.turn
	}
	t.find(now)
	for k := range now.n {
		i := (k + turn) % now.n
		key, was := t.order[i].key, t.order[i].row
		ok := was != nil
		if ok {
			known++
			if !t.doubted[key] && now.same(i, was) {
				continue
			}
		}
		if left == 0 && now.later != nil && now.later(i) {
			c.waits = true
			continue
		}
		row := now.row(i)
		if ok && t.unchanged(was, &row) {
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
	still := make(map[K]bool, now.n)
	for i := range now.n {
		still[now.key(i)] = true
	}
	for key, row := range t.rows {
		if !still[key] {
			c.gone = append(c.gone, *row)
		}
	}
	return c
}

// find sets the order to that of a round. Most of its keys come in that of the last one, after a few that are gone.
func (t *table[K, R]) find(now source[K, R]) {
	const few = 4
	last, order := t.order, make([]ordered[K, R], now.n)
	for i := range order {
		key := now.key(i)
		at := slices.IndexFunc(last[:min(few, len(last))], func(x ordered[K, R]) bool { return x.key == key && x.row != nil })
		if at < 0 {
			order[i] = ordered[K, R]{key, t.rows[key]}
			continue
		}
		order[i], last = last[at], last[at+1:]
	}
	t.order = order
}

func (t *table[K, R]) unchanged(was, now *R) bool {
	switch {
	case len(t.doubted) > 0 && t.doubted[t.key(*now)]:
		return false
	case t.same != nil:
		return t.same(*was, *now)
	}
	return *was == *now
}

// write gives the change to a writer; at is the round's time.
func (c change[K, R]) write(w *writer, at stamp) {
	if c.of.gone != "" {
		gone := slices.Clone(c.gone)
		if c.of.mark != nil {
			for i := range gone {
				c.of.mark(&gone[i], at)
			}
		}
		add(w, c.of.gone, gone)
	}
	add(w, c.of.put, c.put)
}

// keep records that the change was written.
func (c change[K, R]) keep() {
	t := c.of
	for _, row := range c.gone {
		delete(t.rows, t.key(row))
	}
	for _, row := range c.put {
		if t.over != nil && t.over(row) {
			continue
		}
		key := t.key(row)
		if was := t.rows[key]; was != nil {
			*was = row
		} else {
			t.rows[key] = &row
		}
		delete(t.doubted, key)
	}
	t.left, t.waits = make(map[K]*R, len(c.left)), c.waits || len(c.left) > 0
	for _, row := range c.left {
		t.left[t.key(row)] = &row
	}
	t.turn += len(c.put)
}

// leased are the reasons of jobs that have a lease.
var leased = []cluster.Code{cluster.ReasonGranted, cluster.ReasonRenewed, cluster.ReasonHolding, cluster.ReasonAdopted, cluster.ReasonStarting, cluster.ReasonFollows,
	cluster.ReasonNotice, cluster.ReasonEnding, cluster.ReasonRecalled}

// doubt marks all rows for another write.
func (t *table[K, R]) doubt() {
	t.doubted = make(map[K]bool, len(t.rows))
	for key := range t.rows {
		t.doubted[key] = true
	}
}

// written is the journal's content as of one round, for encoding later rounds as differences.
type written struct {
	round   int64
	at      cluster.Instant // of the round
	charged cluster.Instant // the time up to which its ledger is charged
	sampled cluster.Instant // of the last sample of the histories; 0 = never
	nextKey cluster.JobKey  // jobs from this key on are new

	boundaries []boundary // of renewed leases, in the future

	holders  map[cluster.JobKey]holder
	accounts map[accountKey]cluster.GPUTime

	tenants  *table[string, tenantRow]
	nodes    *table[string, nodeRow]
	jobs     *table[cluster.JobKey, jobRow]
	statuses *table[cluster.JobKey, statusRow]
	bound    *table[cluster.JobKey, boundRow]
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

	divided      cluster.Instant        // of the last sample of a division; 0 = never
	speeds       map[accountKey]float64 // throughput of GPUs for tenants
	allocations  *table[allocationKey, allocationRow]
	profiles     *table[profileKey, profileRow]
	entitlements *table[accountKey, entitlementRow]
	entSamples   *table[accountKey, entitlementRow] // entitlement_history: the newest of each
	trades       *table[int64, tradeRow]
}

func newWritten(refresh cluster.Span) *written {
	w := &written{
		tenants:  newTable(putTenants, func(r tenantRow) string { return r.Name }),
		nodes:    newTable(putNodes, func(r nodeRow) string { return r.Name }),
		jobs:     newTable(putJobs, func(r jobRow) cluster.JobKey { return r.Key }),
		statuses: newTable(putStatuses, func(r statusRow) cluster.JobKey { return r.Job }),
		bound:    newTable(putBoundJobs, func(r boundRow) cluster.JobKey { return r.Job }),
		settings: newTable(putSettings, func(settingsRow) bool { return true }),
		leases:   newTable(putLeases, func(r leaseRow) leaseKey { return r.leaseKey }),
		claims:   newTable(putClaims, func(r claimRow) claimKey { return r.claimKey }),
		ledger:   newTable(putLedger, func(r ledgerRow) accountKey { return r.accountKey }),
		buckets:  newTable(putBuckets, func(r bucketRow) bucketKey { return r.bucketKey }),
		pools:    newTable(putPools, func(r poolRow) string { return r.Pool }),
		lending:  newTable(putLending, func(r lendingRow) lendingKey { return r.lendingKey }),
		samples:  newTable(putTenantHistory, func(r ledgerRow) accountKey { return r.accountKey }),

		vcCells:     newTable(putVCCells, func(r vcCellRow) vcCellKey { return r.vcCellKey }),
		cellSamples: newTable(putVCCellHistory, func(r vcCellRow) vcCellKey { return r.vcCellKey }),
		boundCells:  newTable(putBoundCells, func(r boundCellRow) boundCellKey { return r.boundCellKey }),
		fragments:   newTable(putFragmentationHistory, func(r fragmentRow) levelKey { return r.levelKey }),
		violations:  newTable(putViolations, func(r violationRow) string { return r.What }),

		allocations:  newTable(putAllocations, func(r allocationRow) allocationKey { return r.allocationKey }),
		profiles:     newTable(putProfiles, func(r profileRow) profileKey { return r.profileKey }),
		entitlements: newTable(putEntitlements, func(r entitlementRow) accountKey { return r.accountKey }),
		entSamples:   newTable(putEntitlementHistory, func(r entitlementRow) accountKey { return r.accountKey }),
		trades:       newTable(putTrades, func(r tradeRow) int64 { return r.ID }),
	}
	w.tenants.gone, w.tenants.mark = putTenants, func(r *tenantRow, at stamp) { r.Gone = at }
	w.nodes.gone, w.nodes.mark = putNodes, func(r *nodeRow, at stamp) { r.Gone = at }
	w.jobs.same = sameJob
	w.jobs.later, w.jobs.most = func(r jobRow) bool { return r.State == cluster.Waiting && r.Terms == 0 }, mostJobs
	w.statuses.later, w.statuses.most = func(r statusRow) bool { return !slices.Contains(leased, r.Code) }, mostStatuses
	w.statuses.gone, w.statuses.mark = dropStatuses, func(r *statusRow, _ stamp) { *r = statusRow{Job: r.Job} } // the key alone is read
	w.statuses.refresh = refresh
	w.statuses.same = func(was, now statusRow) bool { return sameStatus(was, now, refresh) }
	w.bound.gone, w.bound.mark = dropBoundJobs, func(r *boundRow, _ stamp) { *r = boundRow{Job: r.Job} }
	w.leases.same = sameLease
	w.leases.over = func(r leaseRow) bool { return r.Ended != 0 }
	w.claims.gone, w.claims.mark = putClaims, func(r *claimRow, at stamp) { r.Ended = at }
	w.ledger.gone, w.pools.gone, w.lending.gone = dropLedger, dropPools, dropLending
	w.lending.same = func(was, now lendingRow) bool { return was.GPUs == now.GPUs }
	w.ledger.same = sameStanding
	w.samples.same = sameStanding
	w.vcCells.gone, w.boundCells.gone = dropVCCells, dropBoundCells
	w.vcCells.same, w.cellSamples.same = sameCells, sameCells
	w.cellSamples.gone, w.cellSamples.mark = putVCCellHistory, func(r *vcCellRow, at stamp) { *r = vcCellRow{vcCellKey: r.vcCellKey, At: at} }
	w.boundCells.same = func(was, now boundCellRow) bool { was.Since = now.Since; return was == now }
	w.fragments.same = func(was, now fragmentRow) bool { was.At = now.At; return was == now }
	w.fragments.gone, w.fragments.mark = putFragmentationHistory, func(r *fragmentRow, at stamp) { *r = fragmentRow{levelKey: r.levelKey, At: at} }
	w.violations.same = func(violationRow, violationRow) bool { return true }
	w.violations.gone, w.violations.mark = endViolations, func(r *violationRow, at stamp) { r.Ended = at }
	w.allocations.same = func(allocationRow, allocationRow) bool { return true }
	w.allocations.gone, w.allocations.mark = endAllocations, func(r *allocationRow, at stamp) { r.Ended = at }
	w.profiles.gone, w.entitlements.gone, w.trades.gone = dropProfiles, dropEntitlements, endTrades
	w.entitlements.same, w.entSamples.same = sameEntitlement, sameEntitlement
	w.entSamples.gone, w.entSamples.mark = putEntitlementHistory, func(r *entitlementRow, at stamp) { *r = entitlementRow{accountKey: r.accountKey, At: at} }
	w.trades.same = func(was, now tradeRow) bool { was.At, was.Why = now.At, now.Why; return was == now }
	return w
}

// sameJob ignores the integrals: they grow every round, and statuses has them while the job
// lives.
func sameJob(was, now jobRow) bool {
	was.Alloc, was.Due, was.extraColumns = now.Alloc, now.Due, now.extraColumns
	return was == now
}

// sameLease ignores columns that keep their first value.
func sameLease(was, now leaseRow) bool {
	was.GrantedIn, was.AllocFrom = now.GrantedIn, now.AllocFrom
	return was == now
}

// sameStanding ignores the time.
func sameStanding(was, now ledgerRow) bool {
	was.At = now.At
	return was == now
}

// sameCells ignores the time.
func sameCells(was, now vcCellRow) bool {
	was.At = now.At
	return was == now
}

// sameEntitlement ignores the time.
func sameEntitlement(was, now entitlementRow) bool {
	was.At = now.At
	return was == now
}

// sameStatus tells whether the row may stay: the reason is the same, and its details (numbers,
// which job went first, until when) need no refresh yet. Each job is refreshed once per refresh;
// the jobs are spread over that time.
func sameStatus(was, now statusRow, refresh cluster.Span) bool {
	if refreshed(was.Job, was.At, refresh) != refreshed(now.Job, now.At, refresh) {
		return false
	}
	was.Round, was.At = now.Round, now.At
	was.Free, was.Behind, was.OtherBehind, was.Rank, was.Rho = now.Free, now.Behind, now.OtherBehind, now.Rank, now.Rho
	was.OtherJob, was.Other, was.Until, was.For, was.Pool = now.OtherJob, now.Other, now.Until, now.For, now.Pool
	was.SlurmSays, was.Alloc, was.Due, was.extraColumns = now.SlurmSays, now.Alloc, now.Due, now.extraColumns
	if brief(was.Details) && brief(now.Details) {
		was.Details = now.Details
	}
	return was == now
}

// refreshed gives which refresh of a job's status a moment is in.
func refreshed(job cluster.JobKey, at stamp, refresh cluster.Span) int64 {
	offset := int64(job) * 7919 // a prime, to spread neighbours
	return (int64(at) + offset) / int64(refresh)
}

// brief tells whether details say at most which jobs of its own tenant go before a job.
func brief(d document) bool { return d == "" || strings.HasPrefix(string(d), `{"reason"`) }

// entry is everything that one round adds to the journal, except its blobs.
type entry struct {
	round   roundRow
	at      cluster.Instant
	changes []interface { // of tables, in the order in which they are written
		write(w *writer, at stamp)
		keep()
	}

	marks      []markRow
	boundaries []boundary

	poolSamples []poolRow
	charges     []chargeRow
	lendingDays []lendingDayRow
	losses      []lossRow
	actions     []actionRow
	events      []eventRow

	divided bool // its entitlements are sampled
	speeds  map[accountKey]float64
}

// entry encodes a round as the difference to what is written. Histories are sampled at most once
// in every.
func (w *written) entry(snap cluster.Snapshot, plan cluster.Plan, every cluster.Span) entry {
	e := entry{
		round: roundOf(snap, plan), at: plan.At, speeds: w.speedsAfter(plan), charges: w.charges(snap, plan.State),
		lendingDays: w.lentSince(plan.At), losses: lossRows(plan), actions: actionRows(plan), events: eventRows(plan),
	}
	leases, marks, boundaries := w.leaseEntry(plan)
	e.marks, e.boundaries = marks, boundaries
	ledger, vcCells, entitlements := ledgerRows(plan), vcCellRows(snap, plan), entitlementRows(snap, plan, e.speeds)
	divisions, trades := w.allocations.diff(allocationRows(snap)), w.trades.diff(tradeRows(snap))
	trades.gone = tradesOver(trades.gone, snap)
	e.changes = append(e.changes,
		w.tenants.diff(tenantRows(snap)),
		w.nodes.diff(nodeRows(snap)),
		w.jobs.diffOf(w.jobRows(&snap, &plan)),
		w.statuses.diffOf(w.statusRows(&snap, &plan)),
		w.bound.diff(boundRows(plan)),
		w.settings.diff([]settingsRow{{documentOf(snap.Settings)}}),
		leases,
		w.claims.diff(claimRows(plan, &snap.Settings)),
		w.ledger.diff(ledger),
		w.buckets.diff(bucketRows(plan)),
		w.pools.diff(poolRows(plan)),
		w.lending.diff(lendings(plan.Tenants, plan.At)),
		w.vcCells.diff(vcCells),
		w.boundCells.diff(boundCellRows(plan)),
		w.violations.diff(violationRows(plan)),
		divisions,
		w.profiles.diff(profileRows(snap, plan)),
		w.entitlements.diff(entitlements),
		trades,
	)
	sampled := w.sampled == 0 || plan.At.Sub(w.sampled) >= every
	if sampled {
		e.poolSamples = poolRows(plan)
		e.changes = append(e.changes, w.samples.diff(ledger), w.cellSamples.diff(vcCells), w.fragments.diff(fragmentRows(snap, plan)))
	}
	// The values of a division may stay unchanged for long: they have a sample of their own, at
	// the same interval.
	e.divided = len(divisions.put) > 0 && len(w.allocations.doubted) == 0 && plan.At.Sub(w.divided) >= every
	if sampled || e.divided {
		e.changes = append(e.changes, w.entSamples.diff(entitlements))
	}
	return e
}

// keep records that the round was written.
func (w *written) keep(e entry, m cluster.State) {
	w.round, w.at, w.charged, w.nextKey = e.round.Number, e.at, m.Ledger.At, m.NextKey
	for _, c := range e.changes {
		c.keep()
	}
	w.boundaries, w.speeds = e.boundaries, e.speeds
	if e.divided {
		w.divided = e.at
	}
	if e.poolSamples != nil {
		w.sampled = e.at
	}
	w.hold(m)
	w.accounts = make(map[accountKey]cluster.GPUTime, len(m.Ledger.Tenants))
	for _, t := range m.Ledger.Tenants {
		w.accounts[accountKey{t.Tenant, t.Pool}] = t.Alloc
	}
}

// doubt makes the next round be written in full, over existing rows; except lending, whose rows
// have the time of their start.
func (w *written) doubt() {
	w.sampled = 0
	for _, t := range []interface{ doubt() }{
		w.tenants, w.nodes, w.jobs, w.statuses, w.bound, w.settings, w.leases, w.claims, w.ledger, w.buckets, w.pools, w.samples,
		w.vcCells, w.cellSamples, w.boundCells, w.fragments, w.violations,
		w.allocations, w.profiles, w.entitlements, w.entSamples, w.trades,
	} {
		t.doubt()
	}
}
