package store_test

import (
	"errors"
	"testing"

	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// A row with a lower number than those that were sent may be committed later: it waits, too. Rows that are an hour old leave the list.
func TestSyslogKeepsWhatCommitsLate(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s := openStore(t, store.Config{DSN: dsn})
	lead := takeLead(t, s)
	box := store.Syslog{Lead: lead}
	waiting := func(keys ...string) (ids []int64) {
		t.Helper()
		place, acts, err := box.Waiting(t.Context(), 100)
		if err != nil || place != "" || len(acts) != len(keys) {
			t.Fatalf("%q: %+v, %v; want %v", place, acts, err, keys)
		}
		for i, a := range acts {
			if a.Key != keys[i] {
				t.Errorf("row %d is %s, want %s", i, a.Key, keys[i])
			}
			ids = append(ids, a.ID)
		}
		return ids
	}
	sent := func(ids []int64) {
		t.Helper()
		if err := box.Sent(t.Context(), ids, ""); err != nil {
			t.Fatal(err)
		}
	}
	_, acts, err := box.Waiting(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var schema []int64
	for _, a := range acts {
		schema = append(schema, a.ID)
	}
	sent(schema)

	db, late := storetest.Connect(t, dsn), storetest.Connect(t, dsn)
	const add = "insert into fairlease.administration (at, kind, key, by, why) values (clock_timestamp() - $1::interval, 'release', $2, 'ann', '')"
	tx, err := late.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), add, "0s", "late"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"b", "c"} {
		if _, err := db.Exec(t.Context(), add, "0s", key); err != nil {
			t.Fatal(err)
		}
	}
	sent(waiting("b", "c"))
	waiting()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), add, "2h", "old"); err != nil {
		t.Fatal(err)
	}
	ids := waiting("late", "old")
	sent(ids[1:])
	sent(waiting("late"))
	waiting()
	var upto, rest int64
	if err := db.QueryRow(t.Context(), "select upto, cardinality(sent) from fairlease.syslog_sent").Scan(&upto, &rest); err != nil || upto != ids[1] || rest != 0 {
		t.Errorf("done up to %d and %d more, want up to %d (%v)", upto, rest, ids[1], err)
	}
	if _, err := s.Succeed(t.Context(), "b", lead.Term); err != nil {
		t.Fatal(err)
	}
	if err := box.Sent(t.Context(), ids, ""); !errors.Is(err, store.ErrDeposed) {
		t.Errorf("a deposed leader notes: %v", err)
	}
}
