package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// The record of the term is read as it was written, by the next leader, too. Only the leader writes for the daemon.
func TestTunings(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{DSN: storetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if c, err := s.Terms.Tuning(t.Context()); c != nil || err != nil {
		t.Errorf("of nothing: %+v, %v", c, err)
	}
	lead, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	since := tune.Measure{From: 5, To: 9, Jobs: 3, Losses: 1, Unfair: 0.25, Wait: 1.5, Completion: 3600, Overhead: 0.001}
	study := &tune.Study{Was: since, Since: &since, Trials: []tune.Trial{{Term: cluster.Minute, Measure: since}, {Term: cluster.Hour, Measure: tune.Measure{CutShort: true}}}}
	change := func(kind tune.Kind, before, term cluster.Span, by string) tune.Change {
		return tune.Change{Kind: kind, File: cluster.Hour, Before: before, Term: term, By: by, Why: "why not"}
	}
	want := []tune.Change{ // newest first
		change(tune.Kept, cluster.Minute, cluster.Minute, tune.Daemon),
		change(tune.Taken, cluster.Hour, cluster.Minute, tune.Daemon),
		change(tune.Proposed, cluster.Hour, cluster.Minute, "ann"),
	}
	want[1].Study = study
	began := time.Now().Add(-time.Second)
	if _, err := s.Terms.Add(t.Context(), want[2]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []tune.Change{want[1], want[0]} {
		if err := lead.Tune(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	check := func(round int64) {
		t.Helper()
		got, err := s.Terms.Tunings(t.Context(), began, 10)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v", got, err)
		}
		for i := range got {
			if age := time.Since(got[i].At.Time()); age < 0 || age > time.Minute {
				t.Errorf("row %d is %v old", i, age)
			}
			want[i].ID, want[i].At = int64(len(want)-i), got[i].At
		}
		want[1].Round = round
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		newest, err := s.Terms.Tuning(t.Context())
		decisive := want[1]
		decisive.Study = nil
		if diff := cmp.Diff(&decisive, newest); diff != "" || err != nil {
			t.Errorf("%v, in force (-want +got):\n%s", err, diff)
		}
	}
	check(0)
	for _, round := range []int64{7, 8} { // the first counts
		if err := lead.Told(t.Context(), 2, round); err != nil {
			t.Fatal(err)
		}
	}
	check(7)
	if got, err := s.Terms.Tunings(t.Context(), time.Now().Add(time.Hour), 10); err != nil || len(got) != 1 || got[0].ID != 2 {
		t.Errorf("of later: %+v, %v", got, err)
	}
	if got, err := s.Terms.Tunings(t.Context(), began, 1); err != nil || len(got) != 1 || got[0].ID != 3 {
		t.Errorf("at most one: %+v, %v", got, err)
	}
	if err := lead.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lead.Tune(t.Context(), want[0]); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("without the lead: %v", err)
	}
	if err := lead.Told(t.Context(), 1, 7); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("without the lead: %v", err)
	}
	check(7)
	if _, err := s.Terms.Add(t.Context(), tune.Change{Kind: "odd", File: 1, Before: 1, Term: 1, By: "x", Why: "x"}); err == nil {
		t.Error("an odd kind is recorded")
	}
}
