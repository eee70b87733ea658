package store_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
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

// lapse lets the lead be taken without a look at how long its holder has been silent.
func lapse(t *testing.T, db *pgx.Conn) {
	t.Helper()
	if _, err := db.Exec(t.Context(), "update fairlease.leaders set takeover_after = interval '0'"); err != nil {
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

// led gives a store with a connection beside it, a leader with its open journal, and what it may commit.
func led(t *testing.T) (*store.Store, *pgx.Conn, *store.Leadership, *store.Journal, *journaltest.Story) {
	t.Helper()
	dsn := storetest.Database(t)
	s, db := openStore(t, store.Config{DSN: dsn}), storetest.Connect(t, dsn)
	lead := takeLead(t, s)
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db, lead, j, journaltest.NewStory(1, 4, 20)
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
	if taken.Holder != "one" || taken.Term != first.Term || taken.Left <= 0 || taken.Left > 16*time.Second {
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
	if _, err := db.Exec(t.Context(), "update fairlease.leaders set takeover_after = interval '15 s'"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), "another"); !errors.As(err, &taken) {
		t.Errorf("after the commit the other was told: %v", err)
	}
}

// hand is a host's monotonic clock that a test sets.
type hand struct{ at time.Time }

func (h *hand) now() time.Time         { return h.at }
func (h *hand) pass(d time.Duration)   { h.at = h.at.Add(d) }
func (h *hand) after(t time.Time) bool { return h.at.After(t) }

// A standby counts the leader's silence on its own clock: wherever PostgreSQL's is set, it takes the lead after the same
// time, and never before the leader, on its own clock, knows that it may be replaced.
func TestPostgreSQLsClockIsSet(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"0", "1 year", "-1 year", "16 s", "-16 s"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.Database(t)
			db := storetest.Connect(t, dsn)
			here, there := &hand{time.Unix(1_000_000, 0)}, &hand{time.Unix(5, 0)} // they do not agree on the time
			pass := func(d time.Duration) { here.pass(d); there.pass(d) }
			leader, standby := openStore(t, store.Config{DSN: dsn, Now: here.now}), openStore(t, store.Config{DSN: dsn, Now: there.now})
			lead := takeLead(t, leader)
			// jump moves what the leader wrote away from PostgreSQL's present, as its clock does.
			jump := func() {
				t.Helper()
				if _, err := db.Exec(t.Context(), "update fairlease.leaders set renewed_at = clock_timestamp() + $1::interval where ended_at is null", set); err != nil {
					t.Fatal(err)
				}
			}
			refused := func(when string) {
				t.Helper()
				var taken *store.TakenError
				if _, err := standby.Acquire(t.Context(), "standby"); !errors.As(err, &taken) {
					t.Fatalf("%s: the standby was told %v", when, err)
				}
			}
			for range 10 { // a leader that lives
				jump()
				refused("the leader lives")
				pass(14 * time.Second)
				refused("the leader lives")
				if here.after(lead.Sure()) {
					t.Fatal("the leader has no lead any more")
				}
				if err := lead.Keep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			jump()
			refused("first sight of the last sign")
			pass(15 * time.Second)
			if lead.Sure().After(here.now()) {
				t.Error("the leader still believes that it leads")
			}
			refused("the margin for clocks that drift")
			pass(time.Second)
			next, err := standby.Acquire(t.Context(), "standby")
			if err != nil {
				t.Fatalf("nobody leads: %v", err)
			}
			if err := lead.Keep(t.Context()); !errors.Is(err, store.ErrDeposed) {
				t.Errorf("two lead: %v", err)
			}
			if err := next.Keep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A daemon commits to no other schema than the one that it was made for, and takes no lead there. The error says what to do.
func TestANewerSchemaUnderADaemon(t *testing.T) {
	t.Parallel()
	s, db, _, j, story := led(t)
	snap, plan := story.Next()
	if err := j.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), "insert into fairlease.schema_version (version_id, is_applied) values (9999, true)"); err != nil {
		t.Fatal(err)
	}
	before := counts(t, db)
	snap, plan = story.Next()
	_, taken := openedBefore(t, s)
	for what, err := range map[string]error{
		"commit": j.Commit(t.Context(), snap, plan),
		"settle": j.Settle(t.Context(), plan, make([]cluster.Outcome, len(plan.Actions))),
		"lead":   taken,
	} {
		if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "run the newer one") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := counts(t, db); !maps.Equal(before, after) {
		t.Errorf("it wrote: %v, then %v", before, after)
	}
}

// openedBefore takes the lead with a store that was opened before the schema changed.
func openedBefore(t *testing.T, s *store.Store) (*store.Leadership, error) {
	t.Helper()
	last, err := s.LastLeadership(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Succeed(t.Context(), "next", last.Term)
}

// A journal that lost rounds under the leader, and knows its term, takes no commit. The next term's number is above all that
// the daemon knows; another process of that number keeps nothing.
func TestAYoungerJournal(t *testing.T) {
	t.Parallel()
	s, db, lead, j, story := led(t)
	for range 3 {
		snap, plan := story.Next()
		if err := j.Commit(t.Context(), snap, plan); err != nil {
			t.Fatal(err)
		}
	}
	for _, lose := range []string{"delete from fairlease.round_blobs where round > 1", "delete from fairlease.rounds where number > 1"} {
		if _, err := db.Exec(t.Context(), lose); err != nil {
			t.Fatal(err)
		}
	}
	snap, plan := story.Next()
	if err := j.Commit(t.Context(), snap, plan); !errors.Is(err, store.ErrYounger) {
		t.Errorf("a commit to a younger journal: %v", err)
	}
	if err := lead.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := s.AcquireAbove(t.Context(), "next", 41)
	if err != nil || next.Term != 42 {
		t.Fatalf("term %+v (%v), want 42", next, err)
	}
	if err := next.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next, err = s.AcquireAbove(t.Context(), "next", 41); err != nil || next.Term != 43 {
		t.Fatalf("term %+v (%v), want 43", next, err)
	}
	if _, err := db.Exec(t.Context(), "update fairlease.leaders set holder = 'of the restored journal' where term = 43"); err != nil {
		t.Fatal(err)
	}
	if err := next.Keep(t.Context()); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("two processes have the same term: %v", err)
	}
}

// The leader's signs of life tell how many of its turns succeeded.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	is := func(term, turns int64) {
		t.Helper()
		if gotTerm, got, _, err := s.Turns(t.Context()); err != nil || gotTerm != term || got != turns {
			t.Errorf("term %d with %d turns (%v), want %d and %d", gotTerm, got, err, term, turns)
		}
	}
	is(0, 0)
	lead := takeLead(t, s)
	is(lead.Term, 0)
	lead.Turned()
	lead.Turned()
	if err := lead.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(lead.Term, 2)
	if err := lead.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(0, 0)
}

// A command waits for a sign of life of a leader that may be dead, and takes the lead only without one.
func TestAwait(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t), Takeover: 2 * time.Second})
	lead := takeLead(t, s)
	last, err := s.LastLeadership(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for ctx.Err() == nil {
			_ = lead.Keep(ctx)
			time.Sleep(20 * time.Millisecond)
		}
	})
	told := 0
	await := func() (*store.Leadership, error) {
		return s.Await(t.Context(), "command", func(*store.TakenError) { told++ })
	}
	var taken *store.TakenError
	if _, err := await(); !errors.As(err, &taken) || told != 1 {
		t.Errorf("beside a leader that lives: %v, told %d times", err, told)
	}
	if lives, err := s.Lives(t.Context(), last); err != nil || !lives {
		t.Errorf("it does not live (%v)", err)
	}
	cancel()
	keeper.Wait()
	if last, err = s.LastLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lives, err := s.Lives(t.Context(), last); err != nil || lives {
		t.Errorf("it lives (%v)", err)
	}
	next, err := await()
	if err != nil {
		t.Fatal(err)
	}
	if lives, err := s.Lives(t.Context(), last); err != nil || lives {
		t.Errorf("a term that was taken over lives (%v)", err)
	}
	if err := next.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := await(); err != nil || told != 1 {
		t.Errorf("with no leader: %v, told %d times", err, told)
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
