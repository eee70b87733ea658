package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
)

// PostgreSQL refuses rows of some jobs: they are named, and nothing is written. With them set
// aside the round is written, without rows that are still refused. An event says so.
func TestRowsThatPostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	l := newLife(t, store.Config{}, journaltest.NewStory(3, 4, 40))
	for range 20 {
		l.round()
	}
	if _, err := l.db.Exec(t.Context(), `alter table fairlease.jobs add constraint odd check (name not like 'poison%') not valid`); err != nil {
		t.Fatal(err)
	}
	snap, plan := l.story.Next()
	snap.Cases, plan.State.Records = slices.Clone(snap.Cases), slices.Clone(plan.State.Records)
	var bad []cluster.JobKey
	for i := range plan.State.Records {
		if r := &plan.State.Records[i]; i%7 == 3 && r.Done == 0 {
			r.Name = "poison"
			bad = append(bad, r.Key)
		}
	}
	before := ask[struct{ N int64 }](l, "select max(number) from fairlease.rounds")[0].N
	err := l.journal.Commit(t.Context(), snap, plan)
	var refused loop.Refusal
	if !errors.As(err, &refused) || !slices.Equal(refused.Jobs(), bad) || len(bad) < 2 || !strings.Contains(refused.Why(), "odd") {
		t.Fatalf("%v; want the jobs %v", err, bad)
	}
	same(l, "the newest round", []struct{ N int64 }{{before}}, "select max(number) from fairlease.rounds")
	for i := range snap.Cases {
		if c := &snap.Cases[i]; slices.Contains(bad, c.Record.Key) {
			c.Job.Aside = refused.Why()
		}
	}
	l.commit(snap, plan)
	type told struct {
		Kind string
		N    int64
	}
	same(l, "events", []told{{"refused", 1}}, "select kind, count(*) from fairlease.events where round = $1 and kind = 'refused' group by 1", plan.Round)
	same(l, "jobs that are set aside", []struct{ N int64 }{{int64(len(bad))}}, "select jobs_aside from fairlease.rounds where number = $1", plan.Round)
	same(l, "rows of the others", []struct{ N int64 }{{0}}, "select count(*) from fairlease.jobs where name = 'poison'")
	// Two rows with one key.
	snap, plan = l.story.Next()
	at := slices.IndexFunc(snap.Cases, func(c cluster.Case) bool { return !c.Gone && c.Job.Aside == "" && !slices.Contains(bad, c.Record.Key) })
	twice := snap.Cases[at].Record.Key
	claim := cluster.Claim{Job: twice, Pool: "v100", Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(1)}}, At: plan.At, Made: plan.At}
	plan.State.Claims = append(slices.Clone(plan.State.Claims), claim, claim)
	if err := l.journal.Commit(t.Context(), snap, plan); !errors.As(err, &refused) || !slices.Equal(refused.Jobs(), []cluster.JobKey{twice}) {
		t.Fatalf("%v; want job %d", err, twice)
	}
	for i := range snap.Cases {
		if c := &snap.Cases[i]; c.Record.Key == twice {
			c.Job.Aside = refused.Why()
		}
	}
	l.commit(snap, plan)
	l.restart() // and all of it must be written again
	for range 5 {
		l.round()
	}
	if err := l.db.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}
