package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// The first cluster that connects owns the journal; others are refused with both names.
func TestAJournalIsOfOneCluster(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s := openStore(t, store.Config{DSN: dsn})
	if _, known, err := s.Identity(t.Context()); known || err != nil {
		t.Fatalf("a new journal is of a cluster already (%v)", err)
	}
	alpha := func(id int64) cluster.Identity { return cluster.Identity{Name: "alpha", ID: id} }
	for _, c := range []struct {
		is   cluster.Identity
		want string // in the error
	}{
		{alpha(0), ""},
		{cluster.Identity{Name: "beta", ID: 9}, "the journal in schema fairlease is of cluster alpha, but Slurm is cluster beta (cluster id 9)"},
		{alpha(7), ""}, // its number is learnt later
		{alpha(0), ""},
		{alpha(8), "is of cluster alpha (cluster id 7), but Slurm is cluster alpha (cluster id 8)"},
	} {
		err := s.Claim(t.Context(), c.is)
		var another *store.AnotherError
		if (c.want == "") != (err == nil) || err != nil && (!errors.As(err, &another) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.is, err, c.want)
		}
	}
	lead := takeLead(t, s)
	was, err := lead.Rename(t.Context(), alpha(8), store.Repair{By: "root", Reason: "new disks"})
	if err != nil || was != alpha(7) {
		t.Errorf("renamed from %v (%v)", was, err)
	}
	if err := s.Claim(t.Context(), alpha(8)); err != nil {
		t.Error(err)
	}
	var found, done, by string
	if err := storetest.Connect(t, dsn).QueryRow(t.Context(), "select found, done, by from repairs where kind = 'cluster' and reason = 'new disks'").Scan(&found, &done, &by); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(found, "id 7") || !strings.Contains(done, "id 8") || by != "root" {
		t.Errorf("the repair is noted as %q, %q, by %q", found, done, by)
	}
}

// Journals of several clusters share a database, each in its own schema, and do not affect each
// other.
func TestSchemasAreApart(t *testing.T) {
	t.Parallel()
	dsn := storetest.Empty(t)
	leaders := map[string]*store.Leadership{}
	for i, schema := range []string{"alpha", "beta"} {
		if _, _, err := migrate.Up(t.Context(), dsn, schema, func(string) {}); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, store.Config{DSN: dsn, Schema: schema})
		if err := s.Claim(t.Context(), cluster.Identity{Name: schema}); err != nil {
			t.Fatal(err)
		}
		lead := takeLead(t, s) // both at once
		j := lead.Journal()
		if _, err := j.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		story := journaltest.NewStory(uint64(i+1), 4, 20)
		for range i + 1 {
			snap, plan := story.Next()
			if err := j.Commit(t.Context(), snap, plan); err != nil {
				t.Fatal(err)
			}
		}
		leaders[schema] = lead
	}
	for i, schema := range []string{"alpha", "beta"} {
		s := openStore(t, store.Config{DSN: dsn, Schema: schema})
		rounds, err := s.Rounds.List(t.Context(), 10)
		if err != nil || len(rounds) != i+1 {
			t.Errorf("%s has %d rounds (%v)", schema, len(rounds), err)
		}
		if err := leaders[schema].Keep(context.Background()); err != nil {
			t.Error(err)
		}
	}
	db := storetest.Connect(t, dsn)
	var strays int
	err := db.QueryRow(t.Context(), `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname not in ('alpha', 'beta', 'information_schema') and n.nspname not like 'pg\_%'`).Scan(&strays)
	if err != nil || strays != 0 {
		t.Errorf("%d tables and views stand outside the schemas (%v)", strays, err)
	}
	if _, err := store.Open(t.Context(), store.Config{DSN: dsn, Schema: "gamma"}); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "schema gamma") {
		t.Errorf("a schema that is not there: %v", err)
	}
}
