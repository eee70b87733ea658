package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// Daemons without the lead stand by while they give signs of life, are gone after that, and leave no trace if they end by themselves.
func TestStandbys(t *testing.T) {
	t.Parallel()
	dsn := storetest.Database(t)
	s := openStore(t, store.Config{DSN: dsn})
	attend := func(holder string, silence time.Duration) {
		t.Helper()
		if err := s.Daemons.Attend(t.Context(), holder, silence); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (names []string) {
		t.Helper()
		all, err := s.Daemons.Standbys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if x.Since.IsZero() || x.Seen.Before(x.Since) || x.Silent < 0 {
				t.Errorf("%+v", x)
			}
			name := x.Holder
			if !x.Alive {
				name += " gone"
			}
			names = append(names, name)
		}
		return names
	}
	if _, err := s.Acquire(t.Context(), "ctl1:1"); err != nil {
		t.Fatal(err)
	}
	attend("ctl1:1", time.Hour)
	attend("ctl2:1", time.Hour)
	attend("ctl3:1", time.Microsecond)
	want(t, list(), "ctl2:1", "ctl3:1 gone")
	attend("ctl3:2", time.Hour)
	attend("ctl2:1", time.Hour)
	want(t, list(), "ctl2:1", "ctl3:2")
	attend("ctl2:1", 0)
	want(t, list(), "ctl3:2")
	if _, err := storetest.Connect(t, dsn).Exec(t.Context(), "update fairlease.daemons set seen_at = now() - interval '2 days'"); err != nil {
		t.Fatal(err)
	}
	attend("ctl4:1", time.Hour)
	want(t, list(), "ctl4:1")
	var rows int
	if err := storetest.Connect(t, dsn).QueryRow(t.Context(), "select count(*) from fairlease.daemons").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows are left (%v)", rows, err)
	}
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
