package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// stepped is a cluster with a wrong clock in its looks; actions have no effect then.
type stepped struct {
	loop.Cluster
	off cluster.Span
}

func (s *stepped) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := s.Cluster.Observe(ctx, since)
	seen.Now = seen.Now.Add(s.off)
	seen.Unchanged = seen.Unchanged && s.off == 0
	return seen, err
}

func (s *stepped) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	if s.off == 0 {
		return s.Cluster.Apply(ctx, actions)
	}
	return make([]cluster.Outcome, len(actions))
}

// A clock that was years ahead for two rounds stops all later ones, also after restarts. After
// the repair the accounts equal those of a journal without the error.
func TestRepairClock(t *testing.T) {
	seeds.Slow(t)
	const years = 20 * 365 * cluster.Day
	books := func(wrong bool) (ledger, charges []string) {
		dsn := storetest.Database(t)
		s, err := store.Open(t.Context(), store.Config{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		settings := simtest.Product()
		settings.Term, settings.MinLease, settings.Notice = 5*cluster.Minute, cluster.Minute, 30*cluster.Second
		w := simtest.New(t, settings, simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
		on := &stepped{Cluster: w.Virtual}
		w.Loop.Cluster = on
		sit := func() *store.Leadership {
			lead, err := s.Acquire(t.Context(), "login1.example.org:4711")
			if err != nil {
				t.Fatal(err)
			}
			w.Loop = &loop.Loop{Cluster: on, Journal: lead.Journal(), Decide: w.Loop.Decide, Divide: w.Loop.Divide, Configure: w.Loop.Configure}
			return lead
		}
		lead := sit()
		w.Submit("nlp", 2, 4, 3*cluster.Hour)
		w.Submit("vision", 3, 2, 3*cluster.Hour)
		w.Run(8 * cluster.Minute)
		if wrong {
			env := []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + empty(t)}
			on.off = years
			for range 2 {
				if _, err := w.Loop.Turn(t.Context()); err != nil {
					t.Fatal(err)
				}
				on.off += cluster.Minute
			}
			on.off = 0
			w.Loop = &loop.Loop{Cluster: on, Journal: lead.Journal(), Decide: w.Loop.Decide, Divide: w.Loop.Divide, Configure: w.Loop.Configure}
			if _, err := w.Loop.Turn(t.Context()); err == nil || !strings.Contains(err.Error(), "fairlease repair clock") {
				t.Errorf("a round after that: %v", err)
			}
			stop := keep(t, lead)
			if r := run(t, time.Time{}, env, "repair", "clock", "--reason", "x"); r.code != failure.No || !strings.Contains(r.err, "nothing was repaired: login1") {
				t.Errorf("a repair beside the daemon: exit code %d\n%s", r.code, r.err)
			}
			stop()
			if r := run(t, time.Time{}, env, "repair", "clock"); r.code != failure.Misuse {
				t.Errorf("a repair without a reason: exit code %d\n%s", r.code, r.err)
			}
		}
		b, err := lead.SetBack(t.Context(), w.Now().Time(), store.Repair{By: "root", Reason: "NTP server was wrong"})
		if wrong && (err != nil || b.Right == 0 || b.Newest != b.Right+2) || !wrong && !errors.Is(err, store.ErrNotAhead) {
			t.Errorf("repaired: %+v (%v)", b, err)
		}
		if err := lead.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		sit()
		w.Run(8 * cluster.Minute)
		db := storetest.Connect(t, dsn)
		ledger = texts(t, db, "select concat_ws(' ', tenant, pool, at, alloc_gpu_ms, due_gpu_ms, window_alloc_gpu_ms, deficit_gpu_ms, holds_gpus, rho) from ledger order by 1")
		charges = texts(t, db, "select concat_ws(' ', day, tenant, user_name, pool, gpu_ms) from charges order by 1")
		if n := texts(t, db, "select slurm_id from leases where ended_at > '2040-01-01' or ends_at > '2040-01-01'"); len(n) > 0 {
			t.Errorf("leases that end in years: %v", n)
		}
		if wrong {
			noted := texts(t, db, "select concat_ws('; ', kind, found, done, reason) from repairs")
			if len(noted) != 1 || !strings.Contains(noted[0], "ahead of the time; the books went back to round") || !strings.Contains(noted[0], "NTP server was wrong") {
				t.Errorf("noted: %q", noted)
			}
		}
		return ledger, charges
	}
	ledger, charges := books(false)
	repairedLedger, repairedCharges := books(true)
	if d := cmp.Diff(ledger, repairedLedger); d != "" {
		t.Errorf("the ledger differs from one that never saw the wrong time:\n%s", d)
	}
	if d := cmp.Diff(charges, repairedCharges); d != "" || len(charges) == 0 {
		t.Errorf("what was charged by day differs from a journal that never saw the wrong time:\n%s", d)
	}
}

func texts(t *testing.T, db *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return all
}
