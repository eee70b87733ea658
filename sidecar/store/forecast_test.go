package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// A journal of three hours: what a forecast is made from, a forecast written down and replaced, and what became of it.
func TestForecasts(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{DSN: storetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.Forecasts.Question(t.Context(), cluster.Day); !errors.Is(err, store.ErrNone) {
		t.Errorf("of an empty journal: %v", err)
	}
	lead, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 1, 8), "nlp")
	w.Loop.Journal = lead.Journal()
	w.Submit("nlp", 1, 8, cluster.Hour)
	w.Run(30 * cluster.Minute)
	w.Submit("nlp", 1, 8, 5*cluster.Hour)
	w.Run(10 * cluster.Minute)
	q, err := s.Forecasts.Question(t.Context(), cluster.Day)
	if err != nil {
		t.Fatal(err)
	}
	if len(q.Past.Jobs) != 2 || q.Past.Jobs[0].Ended || q.Past.Jobs[0].Tenant != "nlp" || q.Past.Jobs[0].Job.Request.Size.Devices != 8 || q.Past.From != q.Past.Jobs[0].Submit {
		t.Errorf("%+v", q.Past)
	}
	f, err := forecast.Make(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Jobs) != 2 {
		t.Fatalf("%+v", f.Jobs)
	}
	for range 2 { // again: nothing changes
		if err := lead.Forecast(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Forecasts.List(t.Context(), 0)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, j := range f.Jobs {
		back := forecast.Times{P10: at(got[i].EndP10), P50: at(got[i].EndP50), P90: at(got[i].EndP90)}
		if d := cmp.Diff(j.End, back); d != "" || got[i].Waits != j.Waits || got[i].Key != j.Key || got[i].Horizon != f.Horizon.Duration() || cluster.InstantOf(got[i].AsOf) != f.At {
			t.Errorf("%+v, want %+v\n%s", got[i], j, d)
		}
	}
	if one, err := s.Forecasts.List(t.Context(), f.Jobs[1].Key); err != nil || len(one) != 1 || one[0].Key != f.Jobs[1].Key {
		t.Errorf("%+v, %v", one, err)
	}
	// Both jobs go on: the first ends, the second continues.
	w.Run(3 * cluster.Hour)
	if q, err = s.Forecasts.Question(t.Context(), cluster.Day); err != nil {
		t.Fatal(err)
	}
	if !q.Past.Jobs[0].Ended || q.Past.Jobs[0].Ran < 50*cluster.Minute || q.Past.Jobs[0].Ran > 70*cluster.Minute || q.Past.Jobs[1].Ended {
		t.Errorf("%+v", q.Past.Jobs)
	}
	came := 0
	for _, o := range q.Outcomes {
		j := f.Jobs[slices.IndexFunc(f.Jobs, func(j forecast.Job) bool { return j.Key == o.Job })]
		raw, said := j.RawEnd, j.End
		if o.Kind == forecast.Starts {
			raw, said = j.RawStart, j.Start
		}
		if o.Raw != raw || o.Said != said || o.At != f.At || o.Horizon != f.Horizon || o.Tenant != "nlp" || o.GPUs != cluster.CountOf(8) {
			t.Errorf("%+v became of %+v", o, j)
		}
		if o.Kind != forecast.Starts && o.Was > 0 {
			came++
		}
	}
	if came != 1 {
		t.Errorf("%d of the statements about ends have come true, want 1: %+v", came, q.Outcomes)
	}
	// A newer forecast has only what is live. The first one is kept for its outcomes.
	second, err := forecast.Make(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	second.Kept = []forecast.Coverage{{Kind: "waiting_start", Statements: 7, Forecasts: 3, Percent: 81.5, Low: 70, High: 90}, {Kind: "running_end", By: "tenant", Class: "nlp", Statements: 50, Forecasts: 4, Percent: 79, Low: 60, High: 92}}
	for range 2 { // each replaces those before
		if err := lead.Forecast(t.Context(), second); err != nil {
			t.Fatal(err)
		}
	}
	want := []forecast.Coverage{{Kind: "waiting_start", Statements: 7, Forecasts: 3, Percent: 81.5, Low: 70, High: 90}, {Kind: "running_end", By: "tenant", Class: "nlp", Statements: 50, Forecasts: 4, Percent: 79, Low: 60, High: 92}}
	if kept, err := s.Forecasts.Coverage(t.Context()); err != nil || cmp.Diff(want, kept, cmpopts.EquateApproxTime(0)) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, kept))
	}
	if got, err = s.Forecasts.List(t.Context(), 0); err != nil || len(got) != 1 || got[0].Key != f.Jobs[1].Key {
		t.Errorf("%+v, %v", got, err)
	}
	if err := lead.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lead.Forecast(t.Context(), second); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("of a deposed leader: %v", err)
	}
}

// at gives a moment of a row; 0 = null.
func at(t *time.Time) cluster.Instant {
	if t == nil {
		return 0
	}
	return cluster.InstantOf(*t)
}
