package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sql"
)

// rowsFor are rows for a query, as JSON.
type rowsFor struct {
	query string
	text  []byte
}

// Every query takes its rows as one JSON array.
var (
	putRounds        = sql.Query("put_rounds")
	putTenants       = sql.Query("put_tenants")
	putNodes         = sql.Query("put_nodes")
	putJobs          = sql.Query("put_jobs")
	putVerdicts      = sql.Query("put_verdicts")
	dropVerdicts     = sql.Query("drop_verdicts")
	putSettings      = sql.Query("put_settings")
	putLeases        = sql.Query("put_leases")
	markEnds         = sql.Query("mark_ends")
	markBegins       = sql.Query("mark_begins")
	putClaims        = sql.Query("put_claims")
	putLedger        = sql.Query("put_ledger")
	dropLedger       = sql.Query("drop_ledger")
	putBuckets       = sql.Query("put_buckets")
	putPools         = sql.Query("put_pools")
	dropPools        = sql.Query("drop_pools")
	putTenantHistory = sql.Query("put_tenant_history")
	putPoolHistory   = sql.Query("put_pool_history")
	addCharges       = sql.Query("add_charges")
	putLending       = sql.Query("put_lending")
	dropLending      = sql.Query("drop_lending")
	addLendingDays   = sql.Query("add_lending_days")
	putLosses        = sql.Query("put_losses")
	putActions       = sql.Query("put_actions")
	putEvents        = sql.Query("put_events")

	putVCCells              = sql.Query("put_vc_cells")
	dropVCCells             = sql.Query("drop_vc_cells")
	putVCCellHistory        = sql.Query("put_vc_cell_history")
	putBoundCells           = sql.Query("put_bound_cells")
	dropBoundCells          = sql.Query("drop_bound_cells")
	putFragmentationHistory = sql.Query("put_fragmentation_history")
	putViolations           = sql.Query("put_violations")
	endViolations           = sql.Query("end_violations")

	endDivisions          = sql.Query("end_divisions")
	putDivisions          = sql.Query("put_divisions")
	dropProfiles          = sql.Query("drop_profiles")
	putProfiles           = sql.Query("put_profiles")
	dropEntitlements      = sql.Query("drop_entitlements")
	putEntitlements       = sql.Query("put_entitlements")
	putEntitlementHistory = sql.Query("put_entitlement_history")
	endTrades             = sql.Query("end_trades")
	putTrades             = sql.Query("put_trades")
)

// texts gives the entry as rows for queries, in the order in which they must run.
func (e *entry) texts() ([]rowsFor, error) {
	w := &writer{}
	at := stamp(e.at)
	add(w, putRounds, []roundRow{e.round})
	add(w, putTenants, append(e.tenants.put, since(e.tenants.gone, func(r *tenantRow) { r.Gone = at })...))
	add(w, putNodes, append(e.nodes.put, since(e.nodes.gone, func(r *nodeRow) { r.Gone = at })...))
	add(w, putJobs, e.jobs.put)
	add(w, dropVerdicts, e.verdicts.gone)
	add(w, putVerdicts, e.verdicts.put)
	add(w, putSettings, e.settings.put)
	add(w, putLeases, e.leases.put)
	add(w, markEnds, e.marks)
	add(w, markBegins, e.marks)
	add(w, putClaims, append(e.claims.put, since(e.claims.gone, func(r *claimRow) { r.Ended = at })...))
	add(w, dropLedger, e.ledger.gone)
	add(w, putLedger, e.ledger.put)
	add(w, putBuckets, e.buckets.put)
	add(w, dropPools, e.pools.gone)
	add(w, putPools, e.pools.put)
	add(w, putTenantHistory, e.samples.put)
	add(w, putPoolHistory, e.poolSamples)
	add(w, addCharges, e.charges)
	add(w, dropLending, e.lending.gone)
	add(w, putLending, e.lending.put)
	add(w, addLendingDays, e.lendingDays)
	add(w, putLosses, e.losses)
	add(w, putActions, e.actions)
	add(w, putEvents, e.events)
	add(w, dropVCCells, e.vcCells.gone)
	add(w, putVCCells, e.vcCells.put)
	add(w, dropBoundCells, e.boundCells.gone)
	add(w, putBoundCells, e.boundCells.put)
	add(w, putVCCellHistory, append(e.cellSamples.put, since(e.cellSamples.gone, func(r *vcCellRow) { *r = vcCellRow{vcCellKey: r.vcCellKey, At: at} })...))
	add(w, putFragmentationHistory, append(e.fragments.put, since(e.fragments.gone, func(r *fragmentRow) { *r = fragmentRow{levelKey: r.levelKey, At: at} })...))
	add(w, putViolations, e.violations.put)
	add(w, endViolations, since(e.violations.gone, func(r *violationRow) { r.Ended = at }))
	add(w, endDivisions, since(e.divisions.gone, func(r *divisionRow) { r.Ended = at }))
	add(w, putDivisions, e.divisions.put)
	add(w, dropProfiles, e.profiles.gone)
	add(w, putProfiles, e.profiles.put)
	add(w, dropEntitlements, e.entitlements.gone)
	add(w, putEntitlements, e.entitlements.put)
	add(w, putEntitlementHistory, append(e.entSamples.put, since(e.entSamples.gone, func(r *entitlementRow) { *r = entitlementRow{accountKey: r.accountKey, At: at} })...))
	add(w, endTrades, e.trades.gone)
	add(w, putTrades, e.trades.put)
	return w.rows, w.err
}

// writer collects rows; its first error stays.
type writer struct {
	rows []rowsFor
	err  error
}

func add[R any](w *writer, query string, rows []R) {
	if w.err != nil || len(rows) == 0 {
		return
	}
	text, err := rowsText(rows)
	w.rows, w.err = append(w.rows, rowsFor{query, text}), err
}

// since gives the rows with what became of them.
func since[R any](gone []R, mark func(*R)) []R {
	rows := append([]R(nil), gone...)
	for i := range rows {
		mark(&rows[i])
	}
	return rows
}

// send writes the rows of a round, if nothing was written since round last, to which they are the difference.
func send(ctx context.Context, tx pgx.Tx, last int64, rows []rowsFor) error {
	batch := &pgx.Batch{}
	batch.Queue(lastRound).QueryRow(func(row pgx.Row) error {
		var found int64
		if err := row.Scan(&found); err != nil {
			return err
		}
		if found != last {
			return fmt.Errorf("%w: it has got to round %d, not %d", errStale, found, last)
		}
		return nil
	})
	for _, r := range rows {
		batch.Queue(r.query, r.text)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// sendFrame writes the blobs of a round, after its rows.
func sendFrame(ctx context.Context, tx pgx.Tx, f *frame) error {
	_, err := tx.Exec(ctx, putBlobs, f.round, f.keyframe, f.link, f.at.Time(), f.snapshot.packed, f.plan.packed, f.snapshot.bytes, f.plan.bytes)
	return err
}
