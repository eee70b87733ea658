package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sql"
)

// Keep sets how long data is kept.
type Keep struct {
	// Blobs is for the rounds' snapshots and plans; older ones cannot be replayed. The day of the
	// newest is always kept.
	Blobs time.Duration
	// History is for all other data that ended or passed: jobs, leases, rounds with their actions
	// and events, samples, slices of the window, overrides. Keep it above the window of rho. The
	// accounts (charges, lending_days) are never pruned.
	History time.Duration
}

// prunings lists the queries that take the age of history, of what is not partitioned by day.
var (
	makeDays  = sql.Query("make_days")
	dropDays  = sql.Query("drop_days")
	pruneRest = sql.Query("prune_rest")
	prunings  = []string{sql.Query("prune_leases"), sql.Query("prune_jobs"), sql.Query("prune_claims"), sql.Query("prune_buckets"),
		sql.Query("prune_violations"), sql.Query("prune_allocations"), sql.Query("prune_trades"), sql.Query("prune_audits"),
		sql.Query("prune_nodes"), sql.Query("prune_overrides"), sql.Query("prune_tunings"), sql.Query("prune_gpu_use"), sql.Query("prune_gpu_memory"), sql.Query("prune_gpu_baselines"),
		sql.Query("prune_forecasts"), sql.Query("prune_notices"),
	}
)

// daysAhead is the number of days for which partitions are made in advance.
const daysAhead = 3

// Prune drops and deletes expired data, by the database's clock, and gives the number of
// partitions and of rows. It may run beside commits; after an error, deletions stay. It also
// makes the partitions of the next days.
func (s *Store) Prune(ctx context.Context, keep Keep) (days int, rows int64, err error) {
	if keep.Blobs <= 0 || keep.History <= 0 {
		return 0, 0, fmt.Errorf("pruning the journal: keep blobs and history for more than no time at all")
	}
	if err := s.makeDays(ctx, time.Now()); err != nil {
		return 0, 0, err
	}
	if err := s.promptly(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, dropDays, keep.Blobs, keep.History).Scan(&days) }); err != nil {
		return 0, 0, fmt.Errorf("pruning the journal: dropping days: %w", err)
	}
	if err := s.pool.QueryRow(ctx, pruneRest, keep.Blobs, keep.History).Scan(&rows); err != nil {
		return days, 0, fmt.Errorf("pruning the journal: %w", err)
	}
	for _, query := range prunings {
		n, err := s.prune(ctx, query, keep.History)
		rows += n
		if err != nil {
			return days, rows, err
		}
	}
	return days, rows, nil
}

// promptly does work that locks tables, in a transaction, with a short timeout: a wait for
// readers' locks would block the next commit, too.
func (s *Store) promptly(ctx context.Context, work func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '2s'"); err != nil {
			return err
		}
		return work(tx)
	})
}

// makeDays makes missing partitions for the day of t and the next days. Without them nothing is
// lost: rows go to the default partition.
func (s *Store) makeDays(ctx context.Context, t time.Time) error {
	day := t.UTC().Truncate(24 * time.Hour)
	err := s.promptly(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, makeDays, day, day.AddDate(0, 0, daysAhead))
		return err
	})
	if err != nil {
		return fmt.Errorf("making the partitions of the days to come: %w", err)
	}
	return nil
}

func (s *Store) prune(ctx context.Context, query string, age time.Duration) (int64, error) {
	var total int64
	for {
		done, err := s.pool.Exec(ctx, query, age)
		if err != nil {
			return total, fmt.Errorf("pruning the journal: %w", err)
		}
		if done.RowsAffected() == 0 {
			return total, nil
		}
		total += done.RowsAffected()
	}
}
