package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sql"
)

// tuningRow is a row of tunings.
type tuningRow struct {
	ID     int64
	At     time.Time
	Kind   tune.Kind
	File   cluster.Span `db:"file_ms"`
	Before cluster.Span `db:"before_ms"`
	Term   cluster.Span `db:"term_ms"`
	By     string
	Why    string
	Round  int64
}

// studiedRow is such a row with its study.
type studiedRow struct {
	tuningRow
	Study *tune.Study
}

var (
	tuningAdd    = sql.Query("tuning_add")
	tuningNewest = query[tuningRow]("tuning_newest")
	tuningTold   = sql.Query("tuning_told")
	tuningList   = query[tuningRow]("tuning_list")
)

// Tuning gives the change that determines the term in force, without its study; nil = the configuration's term is.
func (s Terms) Tuning(ctx context.Context) (*tune.Change, error) {
	rows, err := collect[studiedRow](ctx, s.base, "reading which term is in force", tuningNewest)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &tuned(rows)[0], nil
}

// Tunings gives the changes since a time, newest first, at most limit; among them always the one that determines the
// term in force.
func (s Terms) Tunings(ctx context.Context, since time.Time, limit int) ([]tune.Change, error) {
	rows, err := collect[studiedRow](ctx, s.base, "reading how the term was chosen", tuningList, since, limit)
	return tuned(rows), err
}

func tuned(rows []studiedRow) []tune.Change {
	out := make([]tune.Change, len(rows))
	for i, r := range rows {
		out[i] = tune.Change{ID: r.ID, At: cluster.InstantOf(r.At), Kind: r.Kind, File: r.File, Before: r.Before, Term: r.Term,
			By: r.By, Why: r.Why, Round: r.Round, Study: r.Study}
	}
	return out
}

// Add records a change and gives its number; the database dates it. A person's change needs no lead.
func (s Terms) Add(ctx context.Context, c tune.Change) (id int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { id, err = addTuning(ctx, tx, c); return err })
	if err != nil {
		return 0, fmt.Errorf("recording the term: %w", denied(err))
	}
	return id, nil
}

// Tune records a change of the leading daemon. It fails with ErrDeposed when the lead is lost.
func (s *Leadership) Tune(ctx context.Context, c tune.Change) error {
	err := s.inTerm(ctx, func(tx pgx.Tx) error { _, err := addTuning(ctx, tx, c); return err })
	if err != nil {
		return fmt.Errorf("recording the term: %w", err)
	}
	return nil
}

func addTuning(ctx context.Context, tx pgx.Tx, c tune.Change) (id int64, err error) {
	var study any
	if c.Study != nil {
		text, err := json.Marshal(c.Study)
		if err != nil {
			return 0, err
		}
		study = string(text)
	}
	err = tx.QueryRow(ctx, tuningAdd, c.Kind, c.File, c.Before, c.Term, c.By, c.Why, study).Scan(&id)
	return id, err
}

// Told records the first round that named a change. It fails with ErrDeposed when the lead is lost.
func (s *Leadership) Told(ctx context.Context, id, round int64) error {
	err := s.inTerm(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, tuningTold, id, round); return err })
	if err != nil {
		return fmt.Errorf("recording the round of a term: %w", err)
	}
	return nil
}
