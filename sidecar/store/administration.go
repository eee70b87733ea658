package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// Setting is a setting in force, in words and without secrets.
type Setting struct {
	Ordinal int     `json:"ordinal"`
	Kind    string  `json:"kind"` // OfSetting or OfConfiguration
	Key     string  `json:"key"`
	Value   string  `json:"value"`
	Default *string `json:"otherwise"` // nil = without the setting there is no value
	By      string  `json:"by"`
	Why     string  `json:"why"`
}

// Kinds of rows in the record of administration that programs write; triggers write the others.
const (
	OfSetting       = "setting"
	OfConfiguration = "configuration"
	OfRelease       = "release"
	OfBreaker       = "breaker"
)

// Act is a row of the record of administration: a change of a setting, or an act of an administrator.
type Act struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at,omitzero"`
	Round  int64     `json:"round,omitempty"` // the first with the setting; 0 = of no round
	Kind   string    `json:"kind"`
	Key    string    `json:"key"`
	Before *string   `json:"before,omitempty"`
	After  *string   `json:"after,omitempty"`
	By     string    `json:"by"`
	Why    string    `json:"why"`
	// DatabaseUser is recorded by PostgreSQL; By is what the program says.
	DatabaseUser string `json:"database_user"`
}

// Acts selects rows of the record of administration. Zero values select all.
type Acts struct {
	Since, Until time.Time
	Before       int64  // only rows before this one
	Key          string // a key, a section of keys, or a kind
	By           string // an author, or a database user
	Limit        int
}

var (
	recordSettings = sql.Query("record_settings")
	recordAct      = sql.Query("record_act")
	breakerResumed = sql.Query("breaker_resumed")
	actList        = query[Act]("administration_list")
)

// List gives rows, newest first.
func (s Administration) List(ctx context.Context, a Acts) ([]Act, error) {
	until, before := a.Until, a.Before
	if until.IsZero() {
		until = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if before == 0 {
		before = math.MaxInt64
	}
	return collect[Act](ctx, s.base, "reading the record of administration", actList, a.Since, until, before, a.Key, a.By, a.Limit)
}

// Add records an act; the database dates it.
func (s Administration) Add(ctx context.Context, a Act) error {
	text := func(t *string) string {
		if t == nil {
			return ""
		}
		return *t
	}
	if _, err := s.pool.Exec(ctx, recordAct, a.Kind, a.Key, text(a.Before), text(a.After), a.By, a.Why); err != nil {
		return fmt.Errorf("recording what was done: %w", denied(err))
	}
	return nil
}

// Resume records that fairlease may act again after the trip of a round.
func (s Administration) Resume(ctx context.Context, r cluster.GoAhead) error {
	before, after := tripOf(r.Round), "acts again"
	return s.Add(ctx, Act{Kind: OfBreaker, Key: "breaker", Before: &before, After: &after, By: r.By, Why: r.Why})
}

// Resumed gives the operator's word after the trip of a round; the zero value = there is none.
func (s *Leadership) Resumed(ctx context.Context, trip int64) (cluster.GoAhead, error) {
	r := cluster.GoAhead{Round: trip}
	err := s.store.pool.QueryRow(ctx, breakerResumed, tripOf(trip)).Scan(&r.By, &r.Why)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return cluster.GoAhead{}, nil
	case err != nil:
		return cluster.GoAhead{}, fmt.Errorf("reading whether an operator resumed: %w", denied(err))
	}
	return r, nil
}

func tripOf(round int64) string { return fmt.Sprintf("tripped in round %d", round) }

// Propose has the next commit record the settings in force that differ from those recorded last. Repeated calls replace the list.
func (s *Leadership) Propose(settings []Setting) { s.settings.Store(&settings) }

// Record records them at once, as in force since a round that was committed before: where no round follows soon.
func (s *Leadership) Record(ctx context.Context, round int64) error {
	err := s.inTerm(ctx, func(tx pgx.Tx) error { return s.record(ctx, tx, round) })
	if err != nil {
		return fmt.Errorf("recording the settings in force: %w", err)
	}
	s.settings.Store(nil)
	return nil
}

// record writes the proposed settings down. The caller forgets them after the commit.
func (s *Leadership) record(ctx context.Context, tx pgx.Tx, round int64) error {
	list := s.settings.Load()
	if list == nil || len(*list) == 0 {
		return nil
	}
	last := (*list)[len(*list)-1] // settings that are gone, are gone from the same file
	text, err := json.Marshal(*list)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, recordSettings, string(text), round, last.By, last.Why)
	return err
}
