package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/tests/seeds"
)

// told is a round as it was committed, as JSON.
type told struct{ snapshot, plan []byte }

func tell(t *testing.T, snap cluster.Snapshot, plan cluster.Plan) told {
	t.Helper()
	s, err := json.Marshal(snap)
	if err != nil {
		t.Fatal(err)
	}
	p, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	return told{s, p}
}

func (l *life) isTold(number int64, want told) {
	l.t.Helper()
	snapshot, plan, err := l.store.Rounds.Round(l.t.Context(), number)
	if err != nil {
		l.t.Error(err)
		return
	}
	if !bytes.Equal(snapshot, want.snapshot) || !bytes.Equal(plan, want.plan) {
		l.t.Errorf("round %d is not told as it was", number)
	}
}

func TestRoundsAreToldByteForByte(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(1, 4, 30))
	if _, _, err := l.store.Rounds.Round(t.Context(), 1); !errors.Is(err, store.ErrNone) {
		t.Errorf("a round that never was: %v", err)
	}
	all := map[int64]told{}
	for i := range 130 { // over midnight
		snap, plan := l.round()
		all[plan.Round] = tell(t, snap, plan)
		if i == 20 {
			l.restart()
		}
	}
	for number, want := range all {
		if number%int64(seeds.Some(9, 1)) == 0 {
			l.isTold(number, want)
		}
	}
	type kind struct{ Keyframes, Differences int }
	k := ask[kind](l, "select count(*) filter (where keyframe = round), count(*) filter (where keyframe <> round) from fairlease.round_blobs")[0]
	if k.Keyframes != 3 || k.Differences < 100 {
		t.Errorf("%d keyframes and %d differences", k.Keyframes, k.Differences)
	}
	rounds, err := l.store.Rounds.List(t.Context(), 3)
	if err != nil || len(rounds) != 3 || rounds[0].Number != 130 || !rounds[0].Replayable {
		t.Errorf("the newest rounds are %+v (%v)", rounds, err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(2, 4, 20)
	story.Turn, story.Term, story.Notice, story.Cells = 30*cluster.Minute, 40*cluster.Minute, 30*cluster.Minute, true
	l := newLife(t, store.Config{}, story)
	all := map[int64]told{}
	var plan cluster.Plan
	var third int64 // the first round of March 3; the story begins on March 2
	for range 60 {
		var snap cluster.Snapshot
		snap, plan = l.round()
		all[plan.Round] = tell(t, snap, plan)
		if third == 0 && plan.At.Time().Day() == 3 {
			third = plan.Round
		}
	}
	count := func(query string) int64 {
		type one struct{ N int64 }
		return ask[one](l, query)[0].N
	}
	execute := func(query string) {
		t.Helper()
		if _, err := l.db.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	prune := func(keep store.Keep) (days int) {
		t.Helper()
		days, _, err := l.store.Prune(t.Context(), keep)
		if err != nil {
			t.Fatal(err)
		}
		return days
	}
	if _, _, err := l.store.Prune(t.Context(), store.Keep{}); err == nil {
		t.Error("everything was to be forgotten, and it was done")
	}
	ledger := count("select sum(gpu_ms)::bigint from fairlease.charges")
	const long = 100 * 365 * 24 * time.Hour
	since := func(day int) time.Duration { return time.Since(time.Date(2026, 3, day, 1, 0, 0, 0, time.UTC)) }

	// A day is dropped as a whole, when none of it must be kept.
	if days := prune(store.Keep{Blobs: since(2), History: long}); days != 0 {
		t.Errorf("%d days of blobs are dropped of which some rounds are to be kept", days)
	}
	if days := prune(store.Keep{Blobs: since(3), History: long}); days != 1 {
		t.Errorf("%d days of blobs are dropped", days)
	}
	for number, want := range all {
		if number >= third {
			l.isTold(number, want)
		}
	}
	if _, _, err := l.store.Rounds.Round(t.Context(), third-1); !errors.Is(err, store.ErrNone) {
		t.Errorf("round %d is still told (%v)", third-1, err)
	}
	if n := count("select count(*) from fairlease.rounds"); n != 60 {
		t.Errorf("%d rounds are listed", n)
	}

	// The day of the newest round is never dropped.
	prune(store.Keep{Blobs: 24 * time.Hour, History: 24 * time.Hour})
	l.isTold(60, all[60])
	if n := count("select count(*) from fairlease.rounds"); n != 60-third+1 {
		t.Errorf("%d rounds are kept", n)
	}
	for _, table := range []string{"actions", "events"} {
		if n := count("select count(*) from fairlease." + table + " where round not in (select number from fairlease.rounds)"); n != 0 {
			t.Errorf("%d %s of rounds that are pruned", n, table)
		}
	}

	// History: age everything that is dated, so that only ended data is old.
	for _, table := range []string{"tenant_history", "pool_history", "losses", "vc_cell_history", "fragmentation_history"} {
		execute("update fairlease." + table + " set at = at - interval '100 years'")
	}
	execute("update fairlease.violations set ended_at = ended_at - interval '100 years'")
	execute("insert into fairlease.violations (what, since) values ('stands', '1970-01-01')")
	for _, ended := range []string{"now() - interval '2 days'", "null"} {
		execute("insert into fairlease.allocations (policy, digest, objective, why_not, pools, parties, since, ended_at) values ('p', 'd', 0, '', '{}', 0, '1970-01-01', " + ended + ")")
	}
	for _, left := range []string{"0", "1"} {
		execute(`insert into fairlease.trades (id, made_at, fast, slow, fast_to, fast_to_kind, slow_to, slow_to_kind, fast_gpus, slow_gpus, price, fast_to_speedup, slow_to_speedup,
			fast_to_gain, slow_to_gain, left_fast_gpus, left_slow_gpus, undone_at, undone_why)
			values (1, '1970-01-01', '', '', '', '', '', '', 2, 2, 1, 1, 1, 1, 1, ` + left + `, 1, now() - interval '2 days', 'left')`)
	}
	execute("insert into fairlease.entitlement_history values ('bio', 'v100', '1970-01-01', 0, 0, 0, 0, 0, 1)")
	execute("insert into fairlease.audits (day, at, policy, tenants, envy, misreports) values ('1970-01-01', '1970-01-01', 'p', '[]', '[]', '[]')")
	execute("update fairlease.window_buckets set start_at = start_at - interval '100 years'")
	execute("update fairlease.leases set ended_at = ended_at - interval '100 years'")
	execute("update fairlease.jobs set done_at = done_at - interval '100 years'")
	execute("insert into fairlease.overrides (kind, scope, name, until_at, reason, by) values ('boost', 'user', 'ann', now() - interval '2 days', 'x', 'x')")
	for range 2 {
		execute("insert into fairlease.tunings (at, kind, file_ms, before_ms, term_ms, by, why) values ('1970-01-01', 'taken', 1, 1, 2, 'x', 'x'), ('1970-01-01', 'kept', 1, 2, 2, 'x', 'x')")
	}
	execute("insert into fairlease.forecasts (at, job_key, round, runs, horizon_ms, waits, why, raw_ms, kept) values ('1970-01-01', 1, 1, 1, 1, false, '', '{}', true)")
	execute("update fairlease.nodes set gone_at = now() - interval '2 days' where name = 'gpu0003'")
	prune(store.Keep{Blobs: 24 * time.Hour, History: 24 * time.Hour})
	for what, n := range map[string]int64{
		"tenant_history": 0, "pool_history": 0, "losses": 0, "window_buckets": 0, "overrides": 0, "nodes": 3,
		"vc_cell_history": 0, "fragmentation_history": 0, "violations": 1,
		"entitlement_history": 0, "allocations": 1, "trades": 1, "audits": 0, "tunings": 2, "forecasts": 0,
		"jobs where done_at is not null":                                    0,
		"leases where ended_at is not null and alloc_to_gpu_ms is not null": 0,
	} {
		if got := count("select count(*) from fairlease." + what); got != n {
			t.Errorf("%d %s are kept, want %d", got, what, n)
		}
	}
	if n := count("select count(*) from fairlease.leases where ended_at is null"); n != int64(len(plan.State.Leases)) {
		t.Errorf("%d leases in force are kept of %d", n, len(plan.State.Leases))
	}
	if n := count("select sum(gpu_ms)::bigint from fairlease.charges"); n != ledger {
		t.Errorf("the accounts were %d and are %d", ledger, n)
	}

	// The journal continues.
	l.restart()
	memory, err := l.journal.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.State, memory, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the pruned journal gives another memory:\n%s", diff)
	}
	l.round()
}
