package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

const tuned = `
lease: {term: 15m, min: 5m}
schedules:
  - {name: day, at: "0 8 * * *", for: 10h, zone: UTC, set: {lease: {min: 10m}}}
  - {name: night, at: "0 20 * * *", for: 12h, zone: UTC, set: {lease: {term: 15m}}}
tune:
  at: "30 3 * * *"
  zone: Europe/Berlin
  terms: [10m, 15m, 30m]
  apply: true
  worse_by: 3
`

func TestTune(t *testing.T) {
	c := parse(t, tuned)
	r := c.Tune.Rule()
	if want := []cluster.Span{10 * cluster.Minute, 15 * cluster.Minute, 30 * cluster.Minute}; !slices.Equal(r.Terms, want) || r.Off || !r.Apply || r.WorseBy != 0.03 || r.Watch != 3*cluster.Day || r.Rest != 30*cluster.Day {
		t.Errorf("the rule is %+v", r)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 7, 1, 0, 0, 0, 0, berlin)
	for m := range 24 * 60 {
		if at := begin.Add(time.Duration(m) * time.Minute); c.Tune.Due(at.UTC()) != (at.Hour() == 3 && at.Minute() == 30) {
			t.Errorf("due at %s: %t", at, c.Tune.Due(at))
		}
	}
	taken := tune.Change{At: 5, Kind: tune.Taken, File: 15 * cluster.Minute, Before: 15 * cluster.Minute, Term: 30 * cluster.Minute, By: "ann", Why: "better", Round: 7}
	words := "a term of 30 min is taken over in place of 15 min by ann: better"
	for _, x := range []struct {
		hour   int
		change func(*tune.Change)
		term   cluster.Span
		tuned  *cluster.Tuned
	}{
		{7, func(*tune.Change) {}, 15 * cluster.Minute, &cluster.Tuned{Term: 30 * cluster.Minute, File: 15 * cluster.Minute, Since: 5, By: "ann", Why: "better"}}, // the night sets the term
		{9, func(*tune.Change) {}, 30 * cluster.Minute, &cluster.Tuned{Term: 30 * cluster.Minute, File: 15 * cluster.Minute, Since: 5, By: "ann", Why: "better"}}, // the day does not
		{19, func(*tune.Change) {}, 30 * cluster.Minute, &cluster.Tuned{Term: 30 * cluster.Minute, File: 15 * cluster.Minute, Since: 5, By: "ann", Why: "better"}},
		{19, func(c *tune.Change) { c.Round = 0 }, 30 * cluster.Minute, &cluster.Tuned{Term: 30 * cluster.Minute, File: 15 * cluster.Minute, Since: 5, By: "ann", Why: "better", News: words}},
		{19, func(c *tune.Change) { c.File = 10 * cluster.Minute }, 15 * cluster.Minute, nil},
		{19, func(c *tune.Change) { c.Kind, c.Term = tune.Ended, 15*cluster.Minute }, 15 * cluster.Minute, nil},
		{19, func(c *tune.Change) { c.Kind, c.Term, c.Round = tune.Ended, 15*cluster.Minute, 0 }, 15 * cluster.Minute,
			&cluster.Tuned{Term: 15 * cluster.Minute, File: 15 * cluster.Minute, Since: 5, By: "ann", Why: "better", News: "the file's term of 15 min holds again in place of 15 min: better"}},
	} {
		newest := taken
		x.change(&newest)
		_, s := c.At(time.Date(2026, 7, 1, x.hour, 0, 0, 0, time.UTC), &newest)
		if d := cmp.Diff(x.tuned, s.Tuned); d != "" || s.Term != x.term {
			t.Errorf("at %d:00 after %+v the term is %v: %s", x.hour, newest, s.Term, d)
		}
	}
	if with, s := c.At(time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC), nil); s.Tuned != nil || s.Schedule.Name != "day" || with.Lease.Min.Span() != 10*cluster.Minute {
		t.Errorf("without a change: %+v", s)
	}
	off := config.Default()
	if r := off.Tune.Rule(); !r.Off || off.Tune.Due(begin) || len(r.Terms) != 6 {
		t.Errorf("switched off the rule is %+v", r)
	}
	// Bounds that do not go with other settings do no harm while tuning is off.
	parse(t, "lease: {min: 10m}")
}

func TestWrongTune(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{`"30 3 * * *"`, "03:30", `tune.at: "03:30" is no time; write minute, hour,`},
		{`"30 3 * * *"`, `"0 0 31 4 *"`, `tune.at: "0 0 31 4 *" never comes`},
		{"Europe/Berlin", "Europe/Atlantis", `tune.zone: "Europe/Atlantis" is no time zone`},
		{"[10m, 15m, 30m]", "[]", "tune.terms: is empty; list the terms that may be chosen"},
		{"[10m, 15m, 30m]", "[10m, 30m, 15m]", "tune.terms: 15m stands after 30m; write each term once, the shortest first"},
		{"[10m, 15m, 30m]", "[2m, 15m]", "tune.terms: lease.min: 5m is longer than lease.term (2m, f.yaml:2); shorten one or lengthen the other (while tune has taken over a term of 2m)"},
		{"[10m, 15m, 30m]", "[5m, 15m]", "(while tune has taken over a term of 5m and schedule day is in force)"},
		{"[10m, 15m, 30m]", "[10m, 30d]", "tune.terms: fairness.window: 14d is shorter than lease.term (30d, f.yaml:2); lengthen it (while"},
		{"[10m, 15m, 30m]", "[10m, 15m0.5s, 30m]", "tune.terms: lease.term: 15m0.5s is not a whole number of seconds"},
		{"[10m, 15m, 30m]", "[10m, soon]", `tune.terms[1]: "soon"`},
		{"apply: true", "apply: maybe", `tune.apply: "maybe" cannot be used here; write true or false`},
		{"apply: true", "last: 3h", "tune.last: 3h is too short to judge a term by; write at least 1d"},
		{"apply: true", "last: 15d", "tune.last: 15d is longer than database.keep_rounds (14d, default)"},
		{"apply: true", "watch: 3h", "tune.watch: 3h is too short"},
		{"apply: true", "rest: 2d", "tune.rest: 2d is shorter than tune.watch (3d, default)"},
		{"worse_by: 3", "worse_by: 101", "tune.worse_by: must be 0 to 100 percent points, got 101"},
		{"worse_by: 3", "worse: 3", "tune.worse: unknown key; the keys here are at, zone, last,"},
	} {
		text := strings.Replace(tuned, x.old, x.new, 1)
		if _, err := config.Parse("f.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.new, err, x.want)
		}
	}
	if w := parse(t, "tune: {at: 0 3 * * *, terms: [10m, 10m5s]}").Warnings(); len(w) != 1 || !strings.Contains(w[0], "tune.terms (10m5s) is not a multiple of interval (10s)") {
		t.Errorf("%q", w)
	}
	if w := parse(t, "tune: {at: 0 3 * * *, apply: true}").Warnings(); len(w) != 1 || !strings.Contains(w[0], "mode is observe") {
		t.Errorf("%q", w)
	}
}
