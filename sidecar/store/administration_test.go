package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/migrate"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop/journaltest"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

func setting(key, value, otherwise string) store.Setting {
	x := store.Setting{Kind: store.OfSetting, Key: key, Value: value, By: "root, owner of f.yaml", Why: "reload"}
	if otherwise != "" {
		x.Default = &otherwise
	}
	return x
}

// A setting is recorded once, with the first round in which it is in force; a round that is not committed leaves no record.
func TestSettingsAreRecordedWithTheirRound(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	lead := takeLead(t, s)
	j := lead.Journal()
	if _, err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	story := journaltest.NewStory(1, 2, 5)
	propose := func(lead *store.Leadership, list ...store.Setting) {
		for i := range list {
			list[i].Ordinal = i
		}
		lead.Propose(list)
	}
	commit := func(j *store.Journal) error {
		snap, plan := story.Next()
		return j.Commit(t.Context(), snap, plan)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	check := func(when string, more ...string) {
		t.Helper()
		want = append(want, more...)
		list, err := s.Administration.List(t.Context(), store.Acts{Limit: 100})
		must(err)
		var got []string
		for _, a := range list {
			if a.Kind == "schema" {
				continue
			}
			text := func(t *string) string {
				if t == nil {
					return "-"
				}
				return *t
			}
			got = append([]string{fmt.Sprintf("%d %s: %s -> %s by %s", a.Round, a.Key, text(a.Before), text(a.After), a.By)}, got...)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s:\n%s", when, d)
		}
	}
	const root = " by root, owner of f.yaml"
	file := []store.Setting{setting("interval", "10s", "10s"), setting("mode", "act", "observe"), setting("tenants.weights.nlp", "3", "")}
	propose(lead, file...)
	check("before the round")
	must(commit(j))
	check("with the first round", "1 mode: observe -> act"+root, "1 tenants.weights.nlp: - -> 3"+root)
	must(commit(j))
	propose(lead, file...)
	must(commit(j))
	check("again")
	file[1].Value = "observe"
	propose(lead, file[:2]...)
	must(commit(j))
	check("a mapping loses an entry", "4 mode: act -> observe"+root, "4 tenants.weights.nlp: 3 -> -"+root)
	propose(lead, file[:2]...)
	must(commit(j))
	check("an entry that is gone")

	// A daemon that is deposed in the middle leaves neither the round nor the record; the next one records the settings in force.
	file[1].Value = "act"
	propose(lead, file[:2]...)
	must(lead.Resign(t.Context()))
	if err := commit(j); err == nil {
		t.Fatal("a round was committed without the lead")
	}
	check("a round that was not committed")
	next := takeLead(t, s)
	j = next.Journal()
	_, err := j.Open(t.Context())
	must(err)
	propose(next, file[:2]...)
	must(commit(j))
	check("after a crash", "7 mode: observe -> act"+root)
	propose(next, setting("mode", "canary", "observe"), setting("interval", "10s", "10s"))
	must(next.Record(t.Context(), 7))
	must(next.Record(t.Context(), 7))
	must(commit(j))
	check("in a quiet turn", "7 mode: act -> canary"+root)
}

// An operator's word counts for the trip that it names alone, and the newest counts.
func TestResumed(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	lead := takeLead(t, s)
	want := cluster.GoAhead{Round: 12, By: `root (SUDO_USER "ann")`, Why: "the prolog is mended"}
	for _, r := range []cluster.GoAhead{{Round: 11, By: "root", Why: "an earlier trip"}, {Round: 12, By: "root", Why: "too soon"}, want, {Round: 121, By: "root", Why: "a later trip"}} {
		if err := s.Administration.Resume(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for round, want := range map[int64]cluster.GoAhead{12: want, 1: {}} {
		if got, err := lead.Resumed(t.Context(), round); err != nil || got != want {
			t.Errorf("after the trip of round %d: %+v, %v; want %+v", round, got, err, want)
		}
	}
	if acts, err := s.Administration.List(t.Context(), store.Acts{Key: "breaker", Limit: 9}); err != nil || len(acts) != 4 || acts[1].Why != want.Why || *acts[1].Before != "tripped in round 12" {
		t.Errorf("the record: %+v, %v", acts, err)
	}
}

// Acts are listed newest first, by window, key, section and author.
func TestActsAreSelected(t *testing.T) {
	t.Parallel()
	s := openStore(t, store.Config{DSN: storetest.Database(t)})
	text := func(t string) *string { return &t }
	for _, a := range []store.Act{
		{Kind: store.OfRelease, Key: "release", After: text("3 jobs"), By: `root (SUDO_USER "ann")`, Why: "fairlease release"},
		{Kind: store.OfSetting, Key: "lease.term", Before: text("15m"), After: text("30m"), By: "root, owner of f.yaml", Why: "reload"},
		{Kind: store.OfSetting, Key: "leased", After: text("1"), By: "rooty", Why: "reload"},
	} {
		if err := s.Administration.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	now, schemas := time.Now(), int(migrate.Latest()) // each migration is an act
	for _, c := range []struct {
		of   store.Acts
		want string
	}{
		{store.Acts{}, "leased lease.term release" + strings.Repeat(" fairlease", schemas)},
		{store.Acts{Key: "lease"}, "lease.term"},
		{store.Acts{Key: "lease.term"}, "lease.term"},
		{store.Acts{Key: "release"}, "release"},
		{store.Acts{By: "root"}, "lease.term release"},
		{store.Acts{Since: now.Add(time.Hour)}, ""},
		{store.Acts{Until: now.Add(-time.Hour)}, ""},
		{store.Acts{Before: int64(schemas) + 2}, "release" + strings.Repeat(" fairlease", schemas)},
		{store.Acts{Limit: 1}, "leased"},
	} {
		if c.of.Limit == 0 {
			c.of.Limit = 100
		}
		list, err := s.Administration.List(t.Context(), c.of)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range list {
			got = append(got, a.Key)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %q, want %q", c.of, got, c.want)
		}
	}
}
