package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	older, newer := storetest.Database(t), storetest.Database(t)
	for dsn, change := range map[string]string{
		older: "delete from fairlease.schema_version where version_id > 0",
		newer: "insert into fairlease.schema_version (version_id, is_applied) values (1000, true)",
	} {
		if _, err := storetest.Connect(t, dsn).Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, dsn string
		schema    bool
		words     []string
	}{
		{"nobody there", "host=/nowhere dbname=journal user=me", false, []string{"journal on /nowhere", "cannot be reached", "check that PostgreSQL runs"}},
		{"no address", "://", false, []string{"cannot be read", "postgres://"}},
		{"no schema", storetest.Empty(t), true, []string{"has none", "fairlease migrate"}},
		{"no tables", older, true, []string{"has none", "fairlease migrate"}},
		{"a newer schema", newer, true, []string{"version 1000", "newer fairlease"}},
	} {
		s, err := store.Open(t.Context(), store.Config{DSN: c.dsn})
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		if errors.Is(err, store.ErrSchema) != c.schema {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", c.name, err, word)
			}
		}
	}
}

func TestOpenKeepsSecrets(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), store.Config{DSN: "postgres://me:hunter2@127.0.0.1:1/journal"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func TestJournalIsOpenedFirst(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	snap, plan := journaltest.NewStory(1, 2, 5).Next()
	if err := takeLead(t, s).Journal().Commit(t.Context(), snap, plan); err == nil {
		t.Error("a journal that was not opened was written to")
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	soon := cluster.InstantOf(time.Now().Add(time.Hour))
	good := cluster.Override{Kind: cluster.Boost, Scope: "user", Name: "ann", Until: soon, Reason: "deadline", By: "root"}
	for what, spoil := range map[string]func(*cluster.Override){
		"exempt, boost or freeze":   func(o *cluster.Override) { o.Kind = "bless" },
		"a job, a user or a tenant": func(o *cluster.Override) { o.Scope = "world" },
		"for which user":            func(o *cluster.Override) { o.Name = "" },
		"needs a reason":            func(o *cluster.Override) { o.Reason = "" },
		"who orders it":             func(o *cluster.Override) { o.By = "" },
		"past":                      func(o *cluster.Override) { o.Until = soon - cluster.Instant(cluster.Day) },
		"no job id":                 func(o *cluster.Override) { o.Scope, o.Name = "job", "12x" },
		"which job has the id 12":   func(o *cluster.Override) { o.Scope, o.Name = "job", "12" },
	} {
		o := good
		spoil(&o)
		if _, err := s.Overrides.Add(t.Context(), o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("an override was refused with %v, not with %q", err, what)
		}
	}
	first, err := s.Overrides.Add(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Overrides.Add(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Overrides.End(t.Context(), first, "ann"); err != nil {
		t.Fatal(err)
	}
	if err := s.Overrides.End(t.Context(), first, "ann"); err == nil {
		t.Error("an override was ended twice")
	}
	inForce, err := s.Overrides.At(t.Context(), cluster.InstantOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	good.ID = second
	if diff := cmp.Diff([]cluster.Override{good}, inForce); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	all, err := s.Overrides.List(t.Context(), 10)
	if err != nil || len(all) != 2 || all[0].ID != second || all[1].Ended == nil || *all[1].EndedBy != "ann" {
		t.Errorf("all are %+v (%v)", all, err)
	}
}

// An id names the job that has it now, or all tasks of the array; a job that had it before does not count. An order for one of them is not shown of
// the other, and a round that ends it says why.
func TestOrdersAreForOneJob(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	story := journaltest.NewStory(1, 2, 5)
	j := takeLead(t, s).Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap, plan := story.Next()
	rename := func(i int, id cluster.JobID, user string, submit cluster.Instant, state cluster.JobState, done cluster.Instant) cluster.JobKey {
		r := &plan.State.Records[i]
		r.ID, r.User, r.Submit, r.State, r.Done = id, user, submit, state, done
		for k := range snap.Cases {
			if c := &snap.Cases[k]; c.Record.Key == r.Key {
				c.Record.ID, c.Job.ID = id, id
			}
		}
		return r.Key
	}
	at := plan.At
	was := rename(0, cluster.JobID{ID: 5}, "ann", at-9000, cluster.Done, at-1000)
	is := rename(1, cluster.JobID{ID: 5}, "bob", at-500, cluster.Waiting, 0)
	rename(2, cluster.TaskID(9, 0), "eve", at-400, cluster.Running, 0)
	last := rename(3, cluster.TaskID(9, 1), "eve", at-300, cluster.Waiting, 0)
	rename(4, cluster.JobID{ID: 7}, "ann", at-9000, cluster.Done, at-2000)
	if err := j.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	moment := func(t cluster.Instant) *time.Time { x := t.Time(); return &x }
	ended := moment(at - 2000)
	for _, c := range []struct {
		id   cluster.JobID
		want store.Target
	}{
		{cluster.JobID{ID: 5}, store.Target{Key: is, User: "bob", Submitted: moment(at - 500), Waiting: 1}},
		{cluster.JobID{ID: 9}, store.Target{Key: last, User: "eve", Submitted: moment(at - 400), Waiting: 1, Running: 1}},
		{cluster.TaskID(9, 1), store.Target{Key: last, User: "eve", Submitted: moment(at - 300), Waiting: 1}},
		{cluster.JobID{ID: 7}, store.Target{Key: plan.State.Records[4].Key, User: "ann", Submitted: moment(at - 9000), Done: ended}},
	} {
		got, err := s.Overrides.TargetOf(t.Context(), c.id)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("job %s: %v (-want +got):\n%s", c.id, err, diff)
		}
	}
	if all, err := s.Jobs.AllOf(t.Context(), cluster.JobID{ID: 5}, 9); err != nil || len(all) != 2 || all[0].Key != is || all[1].Key != was {
		t.Errorf("jobs with the id: %+v (%v)", all, err)
	}
	for _, id := range []cluster.JobID{{ID: 4711}, cluster.TaskID(9, 2), cluster.TaskID(5, 0)} {
		if _, err := s.Overrides.TargetOf(t.Context(), id); !errors.Is(err, store.ErrNone) {
			t.Errorf("job %s: %v", id, err)
		}
	}
	o := cluster.Override{Kind: cluster.Exempt, Scope: "job", Name: "5", Until: cluster.InstantOf(time.Now().Add(time.Hour)), Reason: "paper", By: "root", Job: was, User: "ann", Submit: at - 9000}
	id, err := s.Overrides.Add(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[cluster.JobKey]int{was: 1, is: 0} {
		x, err := s.Jobs.ExplainKey(t.Context(), key)
		if err != nil || len(x.Overrides) != want {
			t.Errorf("of the job with key %d %d orders are shown, want %d (%v)", key, len(x.Overrides), want, err)
		}
	}
	snap, plan = story.Next()
	plan.EndedOverrides = []cluster.OverrideEnd{{ID: id, Why: "job 5 of ann has ended, and Slurm gave its id to a job of bob"}}
	if err := j.Commit(t.Context(), snap, plan); err != nil {
		t.Fatal(err)
	}
	all, err := s.Overrides.List(t.Context(), 10)
	if err != nil || len(all) != 1 || all[0].Ended == nil || *all[0].EndedBy != "fairlease: job 5 of ann has ended, and Slurm gave its id to a job of bob" {
		t.Errorf("all are %+v (%v)", all, err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	story := journaltest.NewStory(1, 2, 5)
	l := newLife(t, store.Config{}, story)
	var plan cluster.Plan
	for range 5 {
		_, plan = l.round()
	}
	lease := plan.State.Leases[0]
	var record cluster.Record
	for _, r := range plan.State.Records {
		if r.Key == lease.Job {
			record = r
		}
	}
	soon := cluster.InstantOf(time.Now().Add(time.Hour))
	for _, o := range []cluster.Override{
		{Scope: "user", Name: record.User}, {Scope: "tenant", Name: record.Tenant}, {Scope: "job", Name: record.ID.String()},
		{Scope: "user", Name: "nobody"}, {Scope: "job", Name: "1"},
	} {
		if o.Kind, o.Until, o.Reason, o.By = cluster.Exempt, soon, "x", "y"; o.Scope == "job" {
			o.Job, o.User, o.Submit = record.Key, record.User, record.Submit
		}
		if _, err := l.store.Overrides.Add(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	byID, err := l.store.Jobs.Explain(t.Context(), record.ID)
	if err != nil {
		t.Fatal(err)
	}
	byKey, err := l.store.Jobs.ExplainKey(t.Context(), record.Key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byID, byKey); diff != "" {
		t.Errorf("by key it is explained otherwise:\n%s", diff)
	}
	record.DueCarry, record.DueRate, record.DueSince, record.ChargedTo, record.Extra.Faster = 0, 0, 0, 0, 0 // they change in every round, and are not stored per job
	if diff := cmp.Diff(&record, byID.Record); diff != "" {
		t.Errorf("the record:\n%s", diff)
	}
	if diff := cmp.Diff(&lease, byID.Lease); diff != "" {
		t.Errorf("the lease:\n%s", diff)
	}
	if byID.Status == nil || byID.Status.Reason.Code != cluster.ReasonHolding {
		t.Errorf("the status is %+v", byID.Status)
	}
	if len(byID.Overrides) != 3 || len(byID.Leases) != 1 || len(byID.Actions) != 1 || byID.Actions[0].Verb != "grant" || len(byID.Standing) != 2 {
		t.Errorf("explained by %d overrides, %d leases, actions %+v, standing %+v", len(byID.Overrides), len(byID.Leases), byID.Actions, byID.Standing)
	}
	if byID.Round != plan.Round || byID.Job.Key != record.Key || byID.Job.State != "running" {
		t.Errorf("round %d, job %+v", byID.Round, byID.Job)
	}
	if _, err := l.store.Jobs.Explain(t.Context(), cluster.JobID{ID: 1}); !errors.Is(err, store.ErrNone) {
		t.Errorf("an unknown job: %v", err)
	}
}

// TestLists queries every list once and compares it with the plan.
func TestLists(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(2, 2, 7))
	l.round()
	snap, plan := l.story.Next()
	plan.Tenants[0].Rho = cluster.Infinite
	l.commit(snap, plan)
	ctx := t.Context()

	tenants, err := l.store.Tenants.List(ctx)
	if err != nil || len(tenants) != len(plan.Tenants) {
		t.Fatalf("%d tenants (%v)", len(tenants), err)
	}
	for i, s := range plan.Tenants {
		row, book := tenants[i], plan.State.Ledger.Tenants[i]
		want := store.Tenant{Tenant: s.Tenant, Pool: s.Pool, Weight: s.Weight, Entitlement: s.Entitlement, Demand: s.Demand, Holds: s.Holds,
			Borrowed: s.Borrowed, Lent: s.Lent, Waiting: s.Waiting, Rho: s.Rho, RhoAll: s.RhoAll, Behind: store.BehindOf(s.Behind),
			Deficit: s.Deficit, Owed: book.Owed, Repays: book.Repays, EvenIn: row.EvenIn, Alloc: book.Alloc, Due: book.Due, Work: book.Alloc + book.Extra.Alloc, WorkDue: book.Due + book.Extra.Due, AsOf: row.AsOf}
		if diff := cmp.Diff(want, row); diff != "" || !row.AsOf.Equal(plan.At.Time()) {
			t.Errorf("a tenant as of %s:\n%s", row.AsOf, diff)
		}
	}
	pools, err := l.store.Tenants.Pools(ctx)
	if err != nil || len(pools) != 2 || pools[0].Capacity != plan.State.Ledger.Pools[0].Capacity {
		t.Errorf("pools %+v (%v)", pools, err)
	}
	leases, err := l.store.Jobs.Leases(ctx, false, 100)
	if err != nil || len(leases) != len(plan.State.Leases) {
		t.Errorf("%d leases in force, want %d (%v)", len(leases), len(plan.State.Leases), err)
	}
	all, err := l.store.Jobs.Leases(ctx, true, 100)
	if err != nil || len(all) < len(leases) {
		t.Errorf("%d leases in all (%v)", len(all), err)
	}
	wait := 0
	for _, s := range plan.Tenants {
		wait += s.Waiting
	}
	waiting, err := l.store.Jobs.Waiting(ctx, 100)
	if err != nil || wait == 0 || len(waiting) != wait || !strings.HasPrefix(waiting[0].Reason, "tenant bio goes first, being even") {
		t.Errorf("waiting %+v (%v)", waiting, err)
	}
	actions, err := l.store.Rounds.Actions(ctx, 1)
	if err != nil || len(actions) != 1 || actions[0].Round != plan.Round {
		t.Errorf("actions %+v (%v)", actions, err)
	}
	events, err := l.store.Rounds.Events(ctx, 1)
	if err != nil || len(events) != 1 || events[0].Text != plan.Events[len(plan.Events)-1].Text {
		t.Errorf("events %+v (%v)", events, err)
	}
}
