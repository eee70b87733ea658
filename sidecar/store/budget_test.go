package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// A journal of half a day in which a tenant uses 8, 4 or no GPUs: what it had received when a period began is known to the minute,
// wherever that lies, and what is written down comes back.
func TestBudgets(t *testing.T) {
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
	w := simtest.New(t, simtest.Product(), simtest.Nodes("v", "v100", 1, 8), "nlp", "idle")
	w.Loop.Journal = lead.Journal()
	base := func(tenant string, at cluster.Instant) float64 {
		t.Helper()
		b := spending.Budget{Tenant: tenant, Hours: 1, Per: spending.Week, Zone: time.FixedZone("there", int(-monday(at)/cluster.Instant(cluster.Second)))}
		a, err := s.Tenants.OpenAccount(t.Context(), b, at)
		if err != nil {
			t.Fatal(err)
		}
		if a.Start > at || a.Start < at.Add(-cluster.Minute) {
			t.Fatalf("the period begins %s, want %s", a.Start, at)
		}
		return a.Base["v100"].Hours()
	}
	if got := base("nlp", simtest.Start); got != 0 {
		t.Errorf("in an empty journal it had received %v", got)
	}
	w.Submit("nlp", 1, 4, 2*cluster.Hour)
	w.Run(3 * cluster.Hour)
	w.Submit("nlp", 1, 8, 3*cluster.Hour)
	w.Run(9 * cluster.Hour)
	for after, want := range map[cluster.Span]float64{0: 0, 30 * cluster.Minute: 2, 150 * cluster.Minute: 8, 4 * cluster.Hour: 16, 10 * cluster.Hour: 32, 13 * cluster.Hour: 32} {
		if got := base("nlp", simtest.Start.Add(after)); math.Abs(got-want) > 8*2.0/60 { // to two minutes
			t.Errorf("after %s it had received %.2f GPU-hours, want %v", after, got, want)
		}
	}
	if got := base("idle", simtest.Start.Add(cluster.Hour)); got != 0 {
		t.Errorf("the other tenant had received %v", got)
	}
	account := spending.Account{Budget: spending.Budget{Tenant: "nlp", Hours: 100, Prices: map[string]float64{"v100": 2}, Per: spending.Month, AtEnd: spending.IdleOnly, Zone: time.Local},
		Start: simtest.Start, End: simtest.Start.Add(30 * cluster.Day), Base: map[string]cluster.GPUTime{"v100": 5}}
	account.Count([]spending.Standing{{Model: "v100", Received: cluster.Times(45, cluster.Hour) + 5}}, w.Now(), w.Now())
	account.Told = 80
	other := account
	other.Tenant, other.Prices, other.Base, other.Received, other.Warned, other.Told = "idle", nil, map[string]cluster.GPUTime{}, map[string]cluster.GPUTime{}, 0, 0
	for _, book := range []spending.Book{{other, account}, {account}} {
		for range 2 { // again: nothing changes
			if err := lead.Spend(t.Context(), book); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Tenants.Accounts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
		order := cmpopts.SortSlices(func(a, b spending.Account) bool { return a.Tenant < b.Tenant })
		if d := cmp.Diff(book, got, same, order, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	}
	now, err := s.Tenants.Budgets(t.Context(), "")
	if err != nil || len(now) != 1 || now[0].Tenant != "nlp" || now[0].Used != 90 || now[0].Percent != 90 || now[0].Warned == nil || now[0].Spent != nil || now[0].IdleOnly || now[0].PerDay <= 0 || now[0].Prices["v100"] != 2 {
		t.Errorf("%+v, %v", now, err)
	}
	if none, err := s.Tenants.Budgets(t.Context(), "idle"); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	// A waiting job says that the budget of its tenant is used up.
	budget := cluster.TenantBudget{Since: w.Now(), Until: account.End}
	w.Rules.Budgets = map[string]cluster.TenantBudget{"nlp": budget}
	w.Submit("idle", 2, 8, cluster.Day)
	waits := w.Submit("nlp", 1, 8, cluster.Day)
	w.Run(cluster.Minute)
	x, err := s.Jobs.Explain(t.Context(), waits[0])
	if err != nil || x.Status == nil || x.Status.Reason.Code != cluster.ReasonSpent || x.Status.Reason.Until != account.End || x.Status.Reason.Budget == nil || *x.Status.Reason.Budget != budget {
		t.Errorf("%+v, %v", x.Status, err)
	}
	second, err := s.Succeed(t.Context(), "b", lead.Term)
	if err != nil {
		t.Fatal(err)
	}
	if err := lead.Spend(t.Context(), nil); err == nil {
		t.Error("a deposed leader wrote budgets")
	}
	if err := second.Spend(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tenants.Accounts(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("after the configuration lost all budgets: %+v, %v", got, err)
	}
}

// monday gives how long before a moment its week began, in UTC: a zone that is so far behind begins its week then.
func monday(at cluster.Instant) cluster.Instant {
	start, _ := (&spending.Budget{Per: spending.Week, Zone: time.UTC}).Period(at)
	return at - start
}
