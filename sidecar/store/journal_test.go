package store_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

func openStore(t testing.TB, c store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// takeLead takes the lead as the only daemon does: the previous holder is dead.
func takeLead(t testing.TB, s *store.Store) *store.Leadership {
	t.Helper()
	lead, err := s.Acquire(t.Context(), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return lead
}

func TestStoreIsAJournal(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t *testing.T) journaltest.Ground {
		dsn := storetest.Database(t)
		db := storetest.Connect(t, dsn)
		admin := openStore(t, store.Config{DSN: dsn})
		return journaltest.Ground{
			Start: func(t *testing.T) loop.Journal {
				// The one before is dead, and has been silent for long enough.
				if _, err := db.Exec(t.Context(), "update fairlease.leaders set takeover_after = interval '0'"); err != nil {
					t.Fatal(err)
				}
				return takeLead(t, openStore(t, store.Config{DSN: dsn})).Journal()
			},
			Override: func(t *testing.T, o cluster.Override) int64 {
				id, err := admin.Overrides.Add(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
		}
	})
}
