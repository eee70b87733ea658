package store_test

import (
	"errors"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// Counts of a day add up, the newest target counts, and a leader that was deposed writes nothing.
func TestObjectives(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Config{DSN: storetest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	lead, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	targets := objective.Targets{Within: cluster.Hour, Percent: map[objective.Name]float64{objective.FirstLease: 90, objective.Rounds: 99}}
	counts := objective.Counts{{Objective: objective.FirstLease, Tenant: "nlp", Total: 10, Bad: 1}, {Objective: objective.Rounds, Total: 100}}
	for _, percent := range []float64{50, 90} {
		targets.Percent[objective.FirstLease] = percent
		if err := (store.Counter{Lead: lead}).Count(t.Context(), counts, targets); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Tenants.Objectives(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if o := got[0]; o.Objective != "first_lease" || o.Tenant != "nlp" || o.Target != 90 || o.Within == nil || *o.Within != cluster.Hour || o.Total != 20 || o.Bad != 2 || o.Reached != 90 || o.Left != 0 {
		t.Errorf("%+v", o)
	}
	if o := got[1]; o.Objective != "rounds" || o.Tenant != "" || o.Within != nil || o.Total != 200 || o.Reached != 100 || o.Left != 100 || o.From.IsZero() || o.To.Before(o.From) {
		t.Errorf("%+v", o)
	}
	if _, err := s.Succeed(t.Context(), "b", lead.Term); err != nil {
		t.Fatal(err)
	}
	if err := (store.Counter{Lead: lead}).Count(t.Context(), counts, targets); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("a deposed leader counts: %v", err)
	}
}
