package store

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sql"
)

// Keep is how long things are kept.
type Keep struct {
	// Blobs is for the rounds' snapshots and plans; older ones cannot be replayed.
	// The newest is always kept, and a keyframe as long as a difference needs it.
	Blobs time.Duration
	// History is for everything else that ended or passed: jobs, leases, rounds
	// with their actions and events, samples, slices of the window, overrides.
	// Keep it above the window of rho. The accounts (charges, lending_days) are
	// never pruned.
	History time.Duration
}

// prunings lists the queries that take the age of history.
var (
	pruneBlobs = sql.Query("prune_blobs")
	prunings   = []string{
		sql.Query("prune_rounds"), sql.Query("prune_leases"), sql.Query("prune_jobs"), sql.Query("prune_claims"),
		sql.Query("prune_losses"), sql.Query("prune_buckets"), sql.Query("prune_tenant_history"),
		sql.Query("prune_pool_history"), sql.Query("prune_vc_cell_history"), sql.Query("prune_fragmentation_history"),
		sql.Query("prune_violations"), sql.Query("prune_divisions"), sql.Query("prune_trades"), sql.Query("prune_entitlement_history"), sql.Query("prune_audits"),
		sql.Query("prune_nodes"), sql.Query("prune_overrides"),
	}
)

// Prune deletes what is older than is kept, by the database's clock, and gives
// the number of rows. It may run beside commits; what it has deleted when it
// fails stays deleted.
func (s *Store) Prune(ctx context.Context, keep Keep) (int64, error) {
	if keep.Blobs <= 0 || keep.History <= 0 {
		return 0, fmt.Errorf("pruning the journal: keep blobs and history for more than no time at all")
	}
	total, err := s.prune(ctx, pruneBlobs, keep.Blobs)
	if err != nil {
		return total, err
	}
	for _, query := range prunings {
		n, err := s.prune(ctx, query, keep.History)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
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
