package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// AnotherError says that the journal belongs to another cluster.
type AnotherError struct {
	Journal, Slurm cluster.Identity
	Schema         string
}

func (e *AnotherError) Error() string {
	return fmt.Sprintf("the journal in schema %s is of cluster %v, but Slurm is cluster %v", e.Schema, e.Journal, e.Slurm)
}

var (
	identity       = sql.Query("identity")
	identityClaim  = sql.Query("identity_claim")
	identityChange = sql.Query("identity_change")
	repairAdd      = sql.Query("repair_add")
	databaseClock  = sql.Query("database_clock")
	journalSize    = sql.Query("journal_size")
)

// Claim assigns the journal to this cluster if it belongs to none yet. It fails with
// *AnotherError if it belongs to another one.
func (s *Store) Claim(ctx context.Context, is cluster.Identity) error {
	if _, err := s.pool.Exec(ctx, identityClaim, is.Name, is.ID); err != nil {
		return fmt.Errorf("telling the journal of which cluster it is: %w", err)
	}
	of, known, err := s.Identity(ctx)
	if err == nil && known && !of.Is(is) {
		err = &AnotherError{Journal: of, Slurm: is, Schema: s.config.Schema}
	}
	return err
}

// Identity gives the journal's cluster; false = none yet.
func (s *Store) Identity(ctx context.Context) (of cluster.Identity, known bool, err error) {
	err = s.pool.QueryRow(ctx, identity).Scan(&of.Name, &of.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return of, false, nil
	}
	if err != nil {
		return of, false, fmt.Errorf("asking the journal of which cluster it is: %w", err)
	}
	return of, true, nil
}

// Repair names the author and the reason of a repair of the journal.
type Repair struct{ By, Reason string }

// noted records a repair.
func (r Repair) noted(ctx context.Context, tx pgx.Tx, kind, found, done string) error {
	_, err := tx.Exec(ctx, repairAdd, kind, found, done, r.Reason, r.By)
	return err
}

// Rename assigns the journal to the cluster is, with the lead. It returns the previous cluster.
func (s *Leadership) Rename(ctx context.Context, is cluster.Identity, r Repair) (was cluster.Identity, err error) {
	was, known, err := s.store.Identity(ctx)
	if err != nil {
		return was, err
	}
	if !known {
		return was, fmt.Errorf("the journal is of no cluster yet: the first round makes it %v's", is)
	}
	return was, s.inTerm(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, identityChange, is.Name, is.ID); err != nil {
			return err
		}
		return r.noted(ctx, tx, "cluster", fmt.Sprintf("the journal was of cluster %v", was), fmt.Sprintf("it is of cluster %v", is))
	})
}

// Size gives the size of the journal in bytes, with indexes.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	if err := s.pool.QueryRow(ctx, journalSize).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("asking PostgreSQL for the size of the journal: %w", err)
	}
	return bytes, nil
}

// Clock gives the database's time.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	if err := s.pool.QueryRow(ctx, databaseClock).Scan(&now); err != nil {
		return now, fmt.Errorf("asking PostgreSQL for the time: %w", err)
	}
	return now, nil
}
