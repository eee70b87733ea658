package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

type allocationKey struct {
	Policy string `json:"policy"`
	Digest string `json:"digest"`
}

type allocationRow struct {
	allocationKey
	Objective float64 `json:"objective"`
	Bound     float64 `json:"bound"`
	WhyNot    string  `json:"why_not"`
	Pools     list    `json:"pools"`
	Parties   int     `json:"parties"`
	Since     stamp   `json:"since"`
	Ended     stamp   `json:"ended_at"`
}

type profileKey struct {
	Kind   cluster.Kind   `json:"kind"`
	Beside cluster.Kind   `json:"beside"`
	Model  string         `json:"model"`
	Gang   int            `json:"gang"`
	Source cluster.Source `json:"source"`
}

type profileRow struct {
	profileKey
	Rate    float64 `json:"rate"`
	Samples int     `json:"samples"`
	Spread  float64 `json:"spread"`
	Heard   stamp   `json:"heard_at"`
	Basis   string  `json:"basis"`
}

type entitlementRow struct {
	accountKey
	At          stamp            `json:"at"`
	Base        millionths       `json:"base_gpus"`
	Usable      millionths       `json:"usable_gpus"`
	Divided     millionths       `json:"divided_gpus"`
	Entitlement millionths       `json:"entitlement_gpus"`
	Holds       cluster.GPUCount `json:"holds_gpus"`
	Speed       float64          `json:"speed"`
}

// tradeRow is the current state of a trade. Its original values come from the first write of its
// row.
type tradeRow struct {
	ID            int64      `json:"id"`
	At            stamp      `json:"made_at"`
	Fast          string     `json:"fast"`
	Slow          string     `json:"slow"`
	FastTo        string     `json:"fast_to"`
	FastToKind    string     `json:"fast_to_kind"`
	SlowTo        string     `json:"slow_to"`
	SlowToKind    string     `json:"slow_to_kind"`
	Price         float64    `json:"price"`
	FastToSpeedup float64    `json:"fast_to_speedup"`
	SlowToSpeedup float64    `json:"slow_to_speedup"`
	FastToGain    float64    `json:"fast_to_gain"`
	SlowToGain    float64    `json:"slow_to_gain"`
	FastGPUs      millionths `json:"left_fast_gpus"`
	SlowGPUs      millionths `json:"left_slow_gpus"`
	Undone        stamp      `json:"undone_at"`
	Why           string     `json:"undone_why"`
}

type auditRow struct {
	Day        date                    `json:"day"`
	At         stamp                   `json:"at"`
	Policy     string                  `json:"policy"`
	Slack      *float64                `json:"pareto_slack"`
	Tenants    []cluster.AuditedTenant `json:"tenants"`
	Envy       []cluster.Envy          `json:"envy"`
	Misreports []cluster.Misreport     `json:"misreports"`
}

// The functions below turn the division of heterogeneous GPUs into rows. Without a policy there are
// none.

// allocationOf gives the division in force in a round; nil = none, or one of another policy.
func allocationOf(snap cluster.Snapshot) *cluster.Allocation {
	if d := snap.Allocation; snap.Settings.Divides() && d != nil && d.Policy == snap.Settings.Divide {
		return d
	}
	return nil
}

func allocationRows(snap cluster.Snapshot) []allocationRow {
	d := allocationOf(snap)
	if d == nil {
		return nil
	}
	return []allocationRow{{
		allocationKey: allocationKey{d.Policy, d.Digest}, Objective: d.Objective, Bound: d.Bound, WhyNot: d.Why, Pools: listOf(d.Pools), Parties: len(d.Parts),
		Since: stamp(snap.Now),
	}}
}

func profileRows(snap cluster.Snapshot, plan cluster.Plan) []profileRow {
	if !snap.Settings.Divides() {
		return nil
	}
	rows := make([]profileRow, 0, len(snap.Declared)+len(plan.State.Profiles))
	add := func(p *cluster.Profile, source cluster.Source, basis string) {
		rows = append(rows, profileRow{
			profileKey: profileKey{p.Kind, p.With, p.Model, p.Gang, source},
			Rate:       p.Rate, Samples: p.Samples, Spread: p.Spread, Heard: stamp(p.At), Basis: basis,
		})
	}
	for i := range snap.Declared { // the administrator's declaration has precedence
		if !snap.Declared[i].Relative { // no steps a second
			add(&snap.Declared[i], cluster.Declared, "file")
		}
	}
	for i := range plan.State.Profiles {
		p := &plan.State.Profiles[i]
		add(p, p.Source, p.Basis)
	}
	return once(rows, func(r profileRow) profileKey { return r.profileKey })
}

// entitlementRows gives the tenants' entitlements and their throughput.
func entitlementRows(snap cluster.Snapshot, plan cluster.Plan, speeds map[accountKey]float64) []entitlementRow {
	if !snap.Settings.Divides() {
		return nil
	}
	holds := make(map[accountKey]cluster.GPUCount, len(plan.Tenants))
	for _, s := range plan.Tenants {
		holds[accountKey{s.Tenant, s.Pool}] = s.Holds
	}
	traded := traded(snap)
	tenants := plan.State.Ledger.Tenants
	rows := make([]entitlementRow, 0, len(tenants))
	demand := map[string]cluster.MicroGPU{}
	for _, t := range tenants {
		key := accountKey{t.Tenant, t.Pool}
		speed, known := speeds[key]
		if !known {
			speed = 1
		}
		demand[t.Tenant] += t.Demand
		rows = append(rows, entitlementRow{
			accountKey: key, At: stamp(plan.State.Ledger.At), Base: millionths(t.Base), Divided: millionths(t.Entitlement - traded[key]),
			Entitlement: millionths(t.Entitlement), Holds: holds[key], Speed: speed,
		})
	}
	best := make([]*entitlementRow, len(rows))
	for i := range rows {
		best[i] = &rows[i]
	}
	slices.SortStableFunc(best, func(a, b *entitlementRow) int { return cmp.Compare(b.Speed, a.Speed) })
	for _, r := range best {
		r.Usable = min(r.Base, millionths(demand[r.Tenant]))
		demand[r.Tenant] -= cluster.MicroGPU(r.Usable)
	}
	return rows
}

// traded gives the change of the tenants' entitlements by trades, of cells those in force.
func traded(snap cluster.Snapshot) map[accountKey]cluster.MicroGPU {
	net := map[accountKey]cluster.MicroGPU{}
	var trades []cluster.Trade
	if d := allocationOf(snap); d != nil {
		trades = slices.Clone(d.Trades)
	}
	for i := range snap.CellTrades {
		trades = append(trades, snap.CellTrades[i].Trade)
	}
	for i := range trades {
		t := &trades[i]
		net[accountKey{t.FastTo.Tenant, t.Fast}] += t.FastGPUs
		net[accountKey{t.SlowTo.Tenant, t.Fast}] -= t.FastGPUs
		net[accountKey{t.SlowTo.Tenant, t.Slow}] += t.SlowGPUs
		net[accountKey{t.FastTo.Tenant, t.Slow}] -= t.SlowGPUs
	}
	return net
}

// speedsAfter gives the average throughput of one GPU of a pool for a tenant's jobs, weighted by
// the GPUs that they request and can use. It comes from a question; until the next question it is
// unchanged.
func (w *written) speedsAfter(plan cluster.Plan) map[accountKey]float64 {
	q := plan.AllocationRequest
	if q == nil {
		return w.speeds
	}
	speeds, weights := map[accountKey]float64{}, map[accountKey]float64{}
	for i := range q.Bids {
		b := &q.Bids[i]
		for p, speed := range b.Speeds {
			key := accountKey{b.Tenant, q.Pools[p].Model}
			speeds[key] += 0
			if speed > 0 {
				speeds[key] += speed * float64(b.Demand)
				weights[key] += float64(b.Demand)
			}
		}
	}
	for key, sum := range speeds {
		if sum > 0 {
			speeds[key] = math.Round(sum/weights[key]*1e9) / 1e9 // an average of equal values is that value
		}
	}
	return speeds
}

func tradeRows(snap cluster.Snapshot) []tradeRow {
	d := allocationOf(snap)
	if d == nil {
		return nil
	}
	trades := slices.Clone(d.Trades)
	for i := range d.CellTrades {
		trades = append(trades, d.CellTrades[i].Trade)
	}
	rows := make([]tradeRow, 0, len(trades))
	undone := undoneBy(d)
	for i := range trades {
		t := &trades[i]
		if t.FastGPUs <= 0 {
			continue // it has ended
		}
		rows = append(rows, tradeRow{
			ID: t.ID, At: stamp(snap.Now), Fast: t.Fast, Slow: t.Slow, FastTo: t.FastTo.Tenant, FastToKind: t.FastTo.Kind,
			SlowTo: t.SlowTo.Tenant, SlowToKind: t.SlowTo.Kind, FastGPUs: millionths(t.FastGPUs), SlowGPUs: millionths(t.SlowGPUs),
			Price: t.Price, FastToSpeedup: t.FastToSpeedup, SlowToSpeedup: t.SlowToSpeedup, FastToGain: t.FastToGain, SlowToGain: t.SlowToGain,
			Why: undone[t.ID],
		})
	}
	return once(rows, func(r tradeRow) int64 { return r.ID })
}

// undoneBy says why a division reverted parts of trades, by trade.
func undoneBy(d *cluster.Allocation) map[int64]string {
	why := map[int64]string{}
	if d != nil {
		for i := range d.Undone {
			why[d.Undone[i].ID] = d.Undone[i].Why
		}
	}
	return why
}

// tradesOver gives the trades that have ended, with reasons.
func tradesOver(gone []tradeRow, snap cluster.Snapshot) []tradeRow {
	undone := undoneBy(allocationOf(snap))
	over := slices.Clone(gone)
	for i := range over {
		over[i].Undone, over[i].Why = stamp(snap.Now), cmp.Or(undone[over[i].ID], "policy")
	}
	return over
}

var (
	readSpeeds = sql.Query("speeds")
	putAudits  = query[auditRow]("put_audits")
)

// speeds reads the throughput of one GPU for tenants' jobs.
func (s Tenants) speeds(ctx context.Context) (map[accountKey]float64, error) {
	rows, err := s.pool.Query(ctx, readSpeeds)
	if err != nil {
		return nil, err
	}
	speeds := map[accountKey]float64{}
	var key accountKey
	var speed float64
	_, err = pgx.ForEachRow(rows, []any{&key.Tenant, &key.Pool, &speed}, func() error {
		speeds[key] = speed
		return nil
	})
	return speeds, err
}

// Audit stores an audit, and replaces one of the same day. It fails with ErrDeposed when the lead
// is lost.
func (s *Leadership) Audit(ctx context.Context, a cluster.Audit) error {
	row := auditRow{
		Day: dateOf(a.At), At: stamp(a.At), Policy: a.Policy,
		Tenants: append([]cluster.AuditedTenant{}, a.Tenants...), Envy: append([]cluster.Envy{}, a.Envy...),
		Misreports: append([]cluster.Misreport{}, a.Misreports...),
	}
	if a.Slack >= 0 {
		row.Slack = &a.Slack
	}
	text, err := rowsText([]auditRow{row})
	if err == nil {
		err = s.inTerm(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, putAudits, text)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("writing the audit of %s down: %w", a.At, err)
	}
	return nil
}
