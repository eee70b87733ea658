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
	putRounds        = query[roundRow]("put_rounds")
	putTenants       = query[tenantRow]("put_tenants")
	putNodes         = query[nodeRow]("put_nodes")
	putJobs          = query[jobRow]("put_jobs")
	putStatuses      = query[statusRow]("put_job_statuses")
	dropStatuses     = sql.Query("drop_job_statuses")
	putSettings      = query[settingsRow]("put_settings")
	putLeases        = query[leaseRow]("put_leases")
	markEnds         = sql.Query("mark_ends")
	markBegins       = sql.Query("mark_begins")
	putClaims        = query[claimRow]("put_claims")
	putLedger        = query[ledgerRow]("put_ledger")
	dropLedger       = sql.Query("drop_ledger")
	putBuckets       = query[bucketRow]("put_buckets")
	putPools         = query[poolRow]("put_pools")
	dropPools        = sql.Query("drop_pools")
	putTenantHistory = query[sampleRow]("put_tenant_history")
	putPoolHistory   = query[poolRow]("put_pool_history")
	addCharges       = query[chargeRow]("add_charges")
	putLending       = query[lendingRow]("put_lending")
	dropLending      = sql.Query("drop_lending")
	addLendingDays   = query[lendingDayRow]("add_lending_days")
	putLosses        = query[lossRow]("put_losses")
	putActions       = query[actionRow]("put_actions")
	putEvents        = query[eventRow]("put_events")

	putVCCells              = query[vcCellRow]("put_vc_cells")
	dropVCCells             = sql.Query("drop_vc_cells")
	putVCCellHistory        = query[vcCellRow]("put_vc_cell_history")
	putBoundCells           = query[boundCellRow]("put_bound_cells")
	dropBoundCells          = sql.Query("drop_bound_cells")
	putFragmentationHistory = query[fragmentRow]("put_fragmentation_history")
	putViolations           = query[violationRow]("put_violations")
	endViolations           = sql.Query("end_violations")

	endAllocations        = sql.Query("end_allocations")
	putAllocations        = query[allocationRow]("put_allocations")
	dropProfiles          = sql.Query("drop_profiles")
	putProfiles           = query[profileRow]("put_profiles")
	dropEntitlements      = sql.Query("drop_entitlements")
	putEntitlements       = query[entitlementRow]("put_entitlements")
	putEntitlementHistory = query[entitlementRow]("put_entitlement_history")
	endTrades             = sql.Query("end_trades")
	putTrades             = query[tradeRow]("put_trades")
)

// texts gives the entry as rows for queries, in the order in which they must run.
func (e *entry) texts() ([]rowsFor, error) {
	w := &writer{}
	add(w, putRounds, []roundRow{e.round})
	for _, c := range e.changes {
		c.write(w, stamp(e.at))
	}
	add(w, markEnds, e.marks)
	add(w, markBegins, e.marks)
	add(w, putPoolHistory, e.poolSamples)
	add(w, addCharges, e.charges)
	add(w, addLendingDays, e.lendingDays)
	add(w, putLosses, e.losses)
	add(w, putActions, e.actions)
	add(w, putEvents, e.events)
	return w.rows, w.err
}

// writer collects rows and keeps its first error.
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

// send writes the rows of a round, as differences to round last, if that is still the newest.
func send(ctx context.Context, tx pgx.Tx, last int64, rows []rowsFor) error {
	batch := &pgx.Batch{}
	batch.Queue(lastRound).QueryRow(func(row pgx.Row) error {
		var found int64
		if err := row.Scan(&found); err != nil {
			return err
		}
		if found < last {
			return fmt.Errorf("%w: its newest round is %d, not %d", ErrYounger, found, last)
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
