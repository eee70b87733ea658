package store_test

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// TestRestoreOfAnHourOldDump lets a daemon die an hour after its journal was dumped, restores the
// dump into another database, and lets the next daemon continue. GPU time of that hour is charged
// from the cluster's history, running jobs continue, waiting jobs get their turn, and no finished
// job runs again. An order of that hour is lost, an earlier one is not.
func TestRestoreOfAnHourOldDump(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	dsn := storetest.Database(t)
	if err := migrate.Roles(t.Context(), dsn, migrate.Schema, func(string) {}); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, store.Config{DSN: dsn})
	settings := simtest.Product()
	settings.StopAllowance, settings.StopOverheadMilli = 0, 0 // all held time is received: the journal is comparable with the cluster's accounts
	w := simtest.New(t, settings, append(simtest.Nodes("k", "k80", 2, 4), simtest.Nodes("v", "v100", 2, 8)...), "bio", "chem")
	starts, ends := map[cluster.JobID]int{}, map[cluster.JobID]int{}
	w.Watch = func(e sim.Event) {
		switch e.What {
		case sim.Started:
			if ends[e.Job] > 0 {
				t.Errorf("job %s is run again after its end", e.Job)
			}
			starts[e.Job]++
		case sim.Ended:
			ends[e.Job]++
		}
	}
	sit := func(s *store.Store) {
		w.Loop = &loop.Loop{Cluster: w.Virtual, Journal: takeLead(t, s).Journal(), Decide: w.Loop.Decide, Divide: w.Loop.Divide, Configure: w.Loop.Configure}
	}
	jobs := map[string][]cluster.JobID{}
	hour := func() {
		for i := range 4 {
			jobs["bio"] = append(jobs["bio"], w.Submit("bio", 2, 1<<i, cluster.Span(7+13*i)*cluster.Minute)...)
			jobs["chem"] = append(jobs["chem"], w.Submit("chem", 1, 1<<(3-i), cluster.Span(90-20*i)*cluster.Minute)...)
			w.Run(15*cluster.Minute + 7*cluster.Second)
		}
	}
	order := func(s *store.Store, name string) {
		if _, err := s.Overrides.Add(t.Context(), cluster.Override{Kind: cluster.Boost, Scope: "tenant", Name: name, Until: cluster.InstantOf(w.Now().Time()).Add(cluster.Day), Reason: "r", By: "root"}); err != nil {
			t.Fatal(err)
		}
	}
	sit(s)
	hour()
	order(s, "bio")
	dump := storetest.Dump(t, dsn)
	before := w.Last.Round
	hour()
	order(s, "chem")
	var unseen cluster.GPUTime // of jobs that have ended and are missing in the dump
	for _, name := range []string{"bio", "chem"} {
		for _, id := range jobs[name][len(jobs[name])/2:] {
			if w.Job(id).State == cluster.Done {
				unseen += w.Received(id)
			}
		}
	}
	if unseen == 0 {
		t.Fatal("no job came and went in the lost hour")
	}
	running := map[cluster.JobID]int{}
	for _, of := range jobs {
		for _, id := range of {
			if w.Job(id).State == cluster.Running {
				running[id] = starts[id]
			}
		}
	}

	restored := storetest.Restore(t, dump)
	db := storetest.Connect(t, restored)
	lapse(t, db)
	s = openStore(t, store.Config{DSN: restored})
	_, plan, err := s.Rounds.Last(t.Context())
	if err != nil || plan.Round >= before || plan.Round == 0 {
		t.Fatalf("the dump's newest round is %d, the last before it was %d (%v)", plan.Round, before, err)
	}
	sit(s)
	w.Run(settings.Interval)
	for id, n := range running {
		if starts[id] != n {
			t.Errorf("job %s ran through the restore, and was started again", id)
		}
	}
	check := func(when string) {
		for _, name := range []string{"bio", "chem"} {
			var want cluster.GPUTime
			for _, id := range jobs[name] {
				want += w.Received(id)
			}
			if got := w.Used(name); math.Abs(float64(got-want)) > 0.01*float64(want) {
				t.Errorf("%s: the books have %d GPU-ms of %s, it received %d", when, got, name, want)
			}
		}
	}
	check("after the restore")
	hour()
	w.Run(12 * cluster.Hour)
	check("at the end")
	for _, of := range jobs {
		for _, id := range of {
			if j := w.Job(id); j.State != cluster.Done || ends[id] != 1 {
				t.Errorf("job %s is %s, and ended %d times", id, j.State, ends[id])
			}
		}
	}
	type order1 struct{ Name string }
	l := &life{t: t, store: s, db: db}
	same(l, "orders", []order1{{"bio"}}, "select name from overrides order by 1")
	type right struct{ Reader, Stranger bool }
	same(l, "rights of roles", []right{{true, false}}, "select has_table_privilege('fairlease_reader', 'tenant_fairness', 'select'), has_table_privilege('fairlease_tenant', 'debts', 'select')")
}
