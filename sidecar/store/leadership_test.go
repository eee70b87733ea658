package store_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// lapse makes the holder of the lead silent for a day.
func lapse(t *testing.T, db *pgx.Conn) {
	t.Helper()
	if _, err := db.Exec(t.Context(), "update fairlease.leaders set renewed_at = renewed_at - interval '1 day'"); err != nil {
		t.Fatal(err)
	}
}

// counts gives the number of rows of every table of the journal.
func counts(t *testing.T, db *pgx.Conn) map[string]int64 {
	t.Helper()
	rows, err := db.Query(t.Context(), "select tablename from pg_tables where schemaname = 'fairlease'")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, name := range names {
		var n int64
		if err := db.QueryRow(t.Context(), "select count(*) from fairlease."+name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		all[name] = n
	}
	return all
}

func TestOnlyOneLeads(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	one, two := openStore(t, store.Config{DSN: dsn}), openStore(t, store.Config{DSN: dsn})
	first, err := one.Acquire(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	_, err = two.Acquire(t.Context(), "two")
	var taken *store.TakenError
	if !errors.As(err, &taken) {
		t.Fatalf("the second daemon was told %v, not that the lead is taken", err)
	}
	if taken.Holder != "one" || taken.Term != first.Term || taken.Left <= 0 || taken.Left > 15*time.Second {
		t.Errorf("told %+v", taken)
	}
	if err := first.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Lost():
	default:
		t.Error("who resigned does not know that the lead is lost")
	}
	second, err := two.Acquire(t.Context(), "two")
	if err != nil {
		t.Fatal(err)
	}
	if second.Term <= first.Term {
		t.Errorf("term %d follows term %d", second.Term, first.Term)
	}
	now, err := one.Leader(t.Context())
	if err != nil || now.Holder != "two" || now.Term != second.Term {
		t.Errorf("leading is %+v (%v)", now, err)
	}
}

func TestADeposedDaemonWritesNothing(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	db := storetest.Connect(t, dsn)
	one, two := openStore(t, store.Config{DSN: dsn}), openStore(t, store.Config{DSN: dsn})
	story := journaltest.NewStory(1, 4, 20)

	old := takeLead(t, one)
	oldJournal := old.Journal()
	if _, err := oldJournal.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap, plan := story.Next()
	if err := oldJournal.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	lapse(t, db)
	if err := old.Keep(t.Context()); err != nil {
		t.Fatalf("nobody had taken the lead that lapsed: %v", err)
	}
	lapse(t, db)
	next := takeLead(t, two)
	before := counts(t, db)

	newSnap, newPlan := story.Next()
	for what, err := range map[string]error{
		"commit": oldJournal.Commit(t.Context(), newSnap, newPlan),
		"settle": oldJournal.Settle(t.Context(), plan, make([]cluster.Outcome, len(plan.Actions))),
		"keep":   old.Keep(t.Context()),
	} {
		if !errors.Is(err, store.ErrDeposed) {
			t.Errorf("%s of a deposed daemon: %v", what, err)
		}
	}
	if after := counts(t, db); !maps.Equal(before, after) {
		t.Errorf("a deposed daemon wrote: %v, then %v", before, after)
	}
	var settled bool
	if err := db.QueryRow(t.Context(), "select exists (select from fairlease.rounds where settled_at is not null)").Scan(&settled); err != nil || settled {
		t.Errorf("a deposed daemon settled its round (%v)", err)
	}
	select {
	case <-old.Lost():
	default:
		t.Error("a deposed daemon does not know that the lead is lost")
	}
	if !old.Sure().IsZero() {
		t.Error("a deposed daemon is still sure of the lead")
	}
	newJournal := next.Journal()
	if _, err := newJournal.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := newJournal.Commit(t.Context(), newSnap, newPlan); err != nil {
		t.Errorf("the leading daemon: %v", err)
	}
}

func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t), Takeover: time.Minute})
	begun := time.Now()
	lead := takeLead(t, s)
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	story := journaltest.NewStory(1, 2, 5)
	for what, sign := range map[string]func() error{
		"keep": func() error { return lead.Keep(t.Context()) },
		"commit": func() error {
			snap, plan := story.Next()
			return j.Commit(t.Context(), snap, plan)
		},
	} {
		before, err := s.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sure := lead.Sure()
		if err := sign(); err != nil {
			t.Fatal(err)
		}
		after, err := s.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !after.Renewed.After(before.Renewed) || !lead.Sure().After(sure) {
			t.Errorf("%s is no sign of life", what)
		}
		if lead.Sure().Before(begun.Add(time.Minute)) || lead.Sure().After(time.Now().Add(time.Minute)) {
			t.Errorf("after %s sure until %s", what, lead.Sure())
		}
	}
}

func TestWhoIsCommittingIsNotTakenOver(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	lead := takeLead(t, s)
	lapse(t, db)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "update fairlease.leaders set renewed_at = clock_timestamp() where term = $1", lead.Term); err != nil {
		t.Fatal(err)
	}
	var taken *store.TakenError
	if _, err := s.Acquire(t.Context(), "another"); !errors.As(err, &taken) {
		t.Errorf("in the middle of a commit the other was told: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), "another"); err != nil {
		t.Errorf("after the commit came to nothing: %v", err)
	}
}

// A commit may take longer than the takeover timeout: it neither blocks our signs of life nor
// loses the lead, even without them.
func TestALongCommitKeepsTheLead(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	dsn := storetest.Database(t)
	s, db, slow := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn), storetest.Connect(t, dsn)
	lead := takeLead(t, s)
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	tx, err := slow.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "lock table fairlease.rounds in exclusive mode"); err != nil {
		t.Fatal(err)
	}
	committed := make(chan error, 1)
	go func() {
		snap, plan := journaltest.NewStory(1, 4, 20).Next()
		committed <- j.Commit(t.Context(), snap, plan)
	}()
	for waits := false; !waits; { // until the commit is in the middle
		if err := db.QueryRow(t.Context(), "select exists (select from pg_locks where relation = 'fairlease.rounds'::regclass and not granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-committed:
			t.Fatalf("the commit did not wait: %v", err)
		default:
		}
	}
	sure := lead.Sure()
	patient, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := lead.Keep(patient); err != nil {
		t.Fatalf("no sign of life during a commit: %v", err)
	}
	if !lead.Sure().After(sure) {
		t.Error("a sign of life during a commit proves nothing")
	}
	lapse(t, db)
	var taken *store.TakenError
	if _, err := s.Acquire(t.Context(), "another"); !errors.As(err, &taken) {
		t.Errorf("in the middle of a commit the other was told: %v", err)
	}
	sure = lead.Sure()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-committed; err != nil {
		t.Errorf("the long commit: %v", err)
	}
	if !lead.Sure().After(sure) {
		t.Error("the end of the long commit is no sign of life")
	}
	if _, err := s.Acquire(t.Context(), "another"); !errors.As(err, &taken) {
		t.Errorf("after the commit the other was told: %v", err)
	}
}

func TestManyWantToLead(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	var terms []int64
	for range 3 {
		var (
			mu    sync.Mutex
			won   []*store.Leadership
			group sync.WaitGroup
		)
		for range 8 {
			group.Go(func() {
				lead, err := s.Acquire(t.Context(), "one of many")
				var taken *store.TakenError
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, lead)
				} else if !errors.As(err, &taken) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(won) != 1 {
			t.Fatalf("%d were leading at once", len(won))
		}
		terms = append(terms, won[0].Term)
		if err := won[0].Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.IsSorted(terms) || terms[0] == terms[1] || terms[1] == terms[2] {
		t.Errorf("terms %v do not grow", terms)
	}
}
