package tune_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

const (
	minute = cluster.Minute
	day    = cluster.Day
)

// start is the first night.
const start = cluster.Instant(1_800_000_000_000)

func rule() tune.Rule {
	return tune.Rule{Terms: []cluster.Span{10 * minute, 15 * minute, 30 * minute, 60 * minute}, Apply: true, WorseBy: 0.02, Watch: 3 * day, Rest: 30 * day}
}

// trial is a replay in which all jobs take an hour.
func trial(term cluster.Span, losses int, overhead float64) tune.Trial {
	return tune.Trial{Term: term, Measure: tune.Measure{Jobs: 100, Losses: losses, Unfair: float64(losses) / 100, Completion: 3600, Overhead: overhead}}
}

// lived is what happened for some days.
func lived(days int, unfair, overhead float64) tune.Measure {
	return tune.Measure{From: start, To: start.Add(cluster.Span(days) * day), Jobs: 50, Unfair: unfair, Overhead: overhead}
}

// better has replays in which a longer term is better, up to an hour.
func better() []tune.Trial {
	return []tune.Trial{trial(10*minute, 9, 0.004), trial(15*minute, 7, 0.003), trial(30*minute, 5, 0.002), trial(60*minute, 3, 0.001)}
}

func TestDecide(t *testing.T) {
	before := tune.Study{Was: lived(7, 0.05, 0.003), Trials: better()}
	taken := tune.Change{ID: 1, At: start, Kind: tune.Taken, File: 15 * minute, Before: 15 * minute, Term: 30 * minute, By: tune.Daemon, Study: &before}
	undone := tune.Change{ID: 2, At: start.Add(day), Kind: tune.Undone, File: 15 * minute, Before: 30 * minute, Term: 15 * minute, By: tune.Daemon}
	since := func(unfair, overhead float64) *tune.Measure { m := lived(1, unfair, overhead); return &m }
	costly := better()
	costly[2].Overhead = 0.011
	for _, c := range []struct {
		name   string
		night  func(*tune.Night)
		kind   tune.Kind
		before cluster.Span
		term   cluster.Span
		why    string
	}{
		{"a step towards the best", func(*tune.Night) {}, tune.Taken, 15 * minute, 30 * minute,
			"chooses it (sharing-loss jobs 7 → 5, unfair tenant hours 7.00 % → 5.00 %, mean JCT 1.00 h → 1.00 h, overhead 0.30 % → 0.20 %, while 15 min: 2 sharing-loss jobs more)"},
		{"proposed only", func(n *tune.Night) { n.Take = false }, tune.Proposed, 15 * minute, 30 * minute, "chooses it"},
		{"too little of a past", func(n *tune.Night) { n.Study.Was.From = n.Study.Was.To.Add(-23 * cluster.Hour) }, tune.Kept, 15 * minute, 15 * minute, "the journal covers 1.0 days, and a day at least is needed"},
		{"the next term costs too much", func(n *tune.Night) { n.Study.Trials = costly }, tune.Kept, 15 * minute, 15 * minute, "best of the terms next to it; 10 min: 2 sharing-loss jobs more; 30 min: overhead above 1 %"},
		{"no step beyond the bounds", func(n *tune.Night) { n.Rule.Terms = n.Rule.Terms[:2] }, tune.Kept, 15 * minute, 15 * minute, "best of the terms next to it"},
		{"from beside the candidates", func(n *tune.Night) {
			n.File = 20 * minute
			n.Study.Trials = slices.Insert(n.Study.Trials, 2, trial(20*minute, 6, 0.0025))
		}, tune.Taken, 20 * minute, 30 * minute, "chooses it"},
		{"from outside the bounds", func(n *tune.Night) {
			n.File = 5 * minute
			n.Study.Trials = slices.Insert(n.Study.Trials, 0, trial(5*minute, 20, 0.005))
		}, tune.Taken, 5 * minute, 10 * minute, "chooses it"},
		{"no job finished", func(n *tune.Night) { n.Study.Trials = []tune.Trial{{Term: 15 * minute}} }, tune.Kept, 15 * minute, 15 * minute, "nothing can be said"},
		{"not replayed", func(n *tune.Night) { n.Study.Trials = nil }, tune.Kept, 15 * minute, 15 * minute, "it was not replayed"},
		{"watched, and too little is known", func(n *tune.Night) { n.Record = []tune.Change{taken} }, tune.Kept, 30 * minute, 30 * minute, "watched for 3 d"},
		{"watched, and no worse", func(n *tune.Night) { n.Record, n.Study.Since = []tune.Change{taken}, since(0.06, 0.01) }, tune.Kept, 30 * minute, 30 * minute,
			"unfair tenant hours and overhead together are 7.00 % of 1.0 days, after 5.30 % in the days before; 3.20 % was predicted"},
		{"worse", func(n *tune.Night) { n.Record, n.Study.Since = []tune.Change{taken}, since(0.06, 0.014) }, tune.Undone, 30 * minute, 15 * minute, "together are 7.40 %"},
		{"worse, but since another takeover", func(n *tune.Night) {
			n.Record, n.Study.Since = []tune.Change{taken}, since(0.5, 0)
			n.Study.Since.From--
		}, tune.Kept, 30 * minute, 30 * minute, "watched for 3 d"},
		{"worse without a replay", func(n *tune.Night) {
			n.Record, n.Study = []tune.Change{taken}, tune.Study{Since: since(0.5, 0)}
		}, tune.Undone, 30 * minute, 15 * minute, "together are 50.00 %"},
		{"worse, but no longer watched", func(n *tune.Night) {
			n.Now, n.Record, n.Study.Since = start.Add(4*day), []tune.Change{taken}, since(0.5, 0.014)
		}, tune.Taken, 30 * minute, 60 * minute, "chooses it"},
		{"undone before, and resting", func(n *tune.Night) { n.Now, n.Record = start.Add(30*day), []tune.Change{undone, taken} }, tune.Kept, 15 * minute, 15 * minute,
			"30 min was left or undone and is not tried again before"},
		{"undone before, and rested", func(n *tune.Night) { n.Now, n.Record = start.Add(31*day), []tune.Change{undone, taken} }, tune.Taken, 15 * minute, 30 * minute, "chooses it"},
		{"the file has changed", func(n *tune.Night) { n.File, n.Record = 10*minute, []tune.Change{taken} }, tune.Kept, 10 * minute, 10 * minute, "15 min was left or undone"},
	} {
		n := tune.Night{Now: start.Add(day), File: 15 * minute, Rule: rule(), Take: true, By: tune.Daemon, Study: tune.Study{Was: before.Was, Trials: better()}}
		c.night(&n)
		got := n.Decide()
		if got.Kind != c.kind || got.Before != c.before || got.Term != c.term || !strings.Contains(got.Why, c.why) || got.File != n.File || got.At != n.Now || got.By != tune.Daemon {
			t.Errorf("%s: %+v, want %s from %v to %v since %q", c.name, got, c.kind, c.before, c.term, c.why)
		}
	}
}

// A takeover holds until the file says otherwise.
func TestHolds(t *testing.T) {
	taken := tune.Change{Kind: tune.Taken, File: 15 * minute, Before: 15 * minute, Term: 30 * minute, By: tune.Daemon}
	change := func(f func(*tune.Change)) *tune.Change { c := taken; f(&c); return &c }
	for _, c := range []struct {
		name   string
		newest *tune.Change
		file   cluster.Span
		rule   func(*tune.Rule)
		holds  bool
		why    string
	}{
		{"none", nil, 15 * minute, nil, false, ""},
		{"taken", &taken, 15 * minute, nil, true, ""},
		{"undone", change(func(c *tune.Change) { c.Kind, c.Before, c.Term = tune.Undone, c.Term, c.Before }), 15 * minute, nil, false, ""},
		{"undone to an earlier takeover", change(func(c *tune.Change) { c.Kind, c.Before, c.Term = tune.Undone, 60*minute, 30*minute }), 15 * minute, nil, true, ""},
		{"ended", change(func(c *tune.Change) { c.Kind, c.Term = tune.Ended, 20*minute }), 20 * minute, nil, false, ""},
		{"the file's term has changed by seconds", &taken, 15*minute + 30*cluster.Second, nil, false, "lease.term has changed from 15 min to 15 min 30 s in the file"},
		{"the file's term has changed", &taken, 20 * minute, nil, false, "lease.term has changed from 15 min to 20 min in the file"},
		{"off", &taken, 15 * minute, func(r *tune.Rule) { r.Off = true }, false, "switched off"},
		{"outside the bounds", &taken, 15 * minute, func(r *tune.Rule) { r.Terms = r.Terms[:2] }, false, "30 min is outside tune.terms, 10 min to 15 min"},
		{"apply is off", &taken, 15 * minute, func(r *tune.Rule) { r.Apply = false }, false, "tune.apply is off"},
		{"apply is off, and a person took it over", change(func(c *tune.Change) { c.By = "ops" }), 15 * minute, func(r *tune.Rule) { r.Apply = false }, true, ""},
	} {
		r := rule()
		if c.rule != nil {
			c.rule(&r)
		}
		holds, why := r.Holds(c.file, c.newest)
		if holds != c.holds || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %t, %q", c.name, holds, why)
		}
	}
}

func TestWords(t *testing.T) {
	for kind, want := range map[tune.Kind]string{
		tune.Kept:     "the term stays 30 min: y",
		tune.Proposed: "a term of 30 min is proposed in place of 15 min: y",
		tune.Taken:    "a term of 30 min is taken over in place of 15 min by ops: y",
		tune.Undone:   "the term goes back from 15 min to 30 min by ops: y",
		tune.Ended:    "the file's term of 30 min holds again in place of 15 min: y",
	} {
		c := tune.Change{Kind: kind, Before: 15 * minute, Term: 30 * minute, By: "ops", Why: "y"}
		if got := c.Words(); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// Two weeks of Venus on 40 nodes by fairlease tune, with jobs that save at the end of a lease: the nights lead to 15
// minutes, but not across 30 minutes, which have more sharing-loss jobs than both their neighbours.
func TestNightsOnVenus(t *testing.T) {
	s := tune.Study{Was: lived(14, 0.3, 0.01)}
	for _, x := range []struct {
		term            cluster.Span
		losses          int
		hours, overhead float64
	}{{5, 933, 16.449, 1.39}, {10, 890, 16.404, 1.19}, {15, 917, 16.184, 0.97}, {20, 959, 16.148, 0.91}, {30, 1087, 16.791, 0.80}, {60, 976, 16.414, 0.52}} {
		s.Trials = append(s.Trials, tune.Trial{Term: x.term * minute, Measure: tune.Measure{Jobs: 7791, Losses: x.losses, Completion: 3600 * x.hours, Overhead: x.overhead / 100}})
	}
	var terms []cluster.Span
	for _, trial := range s.Trials {
		terms = append(terms, trial.Term)
	}
	for _, file := range terms {
		n := tune.Night{File: file, Rule: tune.Rule{Terms: terms, Apply: true, WorseBy: 0.02, Watch: 3 * day, Rest: 30 * day}, Take: true, By: tune.Daemon, Study: s}
		for night := range 20 {
			n.Now = start.Add(cluster.Span(night) * day)
			n.Record = append([]tune.Change{n.Decide()}, n.Record...)
		}
		want := 15 * minute
		if file == 60*minute {
			want = file
		}
		if got := n.InForce(); got != want {
			t.Errorf("from %v the nights lead to %v, want %v", file, got, want)
		}
	}
	if best, why := tune.Verdicts(s.Trials); best != 2 || why[5] != "59 sharing-loss jobs more" {
		t.Errorf("the best is %d: %q", best, why)
	}
}

// Whatever the replays and the days say, night after night: the term stays within the bounds or is the file's; it moves
// by one candidate, never while a takeover is watched; a worse takeover is undone the next night; and no term is taken
// twice within the time of rest.
func TestNights(t *testing.T) {
	all := []cluster.Span{5 * minute, 10 * minute, 15 * minute, 20 * minute, 30 * minute, 60 * minute}
	took, undid := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 3).Draw(t, "from")
		r := tune.Rule{Terms: all[from : from+3], Apply: true, WorseBy: 0.02,
			Watch: cluster.Span(rapid.IntRange(1, 5).Draw(t, "watch")) * day, Rest: cluster.Span(rapid.IntRange(5, 20).Draw(t, "rest")) * day}
		file := rapid.SampledFrom(all).Draw(t, "file")
		var record []tune.Change
		last := map[cluster.Span]cluster.Instant{}
		for night := range 60 {
			n := tune.Night{Now: start.Add(cluster.Span(night) * day), File: file, Rule: r, Take: true, By: tune.Daemon, Record: record}
			n.Study.Was = lived(7, float64(rapid.IntRange(0, 9).Draw(t, "was"))/100, 0)
			for _, term := range all {
				n.Study.Trials = append(n.Study.Trials, trial(term, rapid.IntRange(0, 9).Draw(t, "losses"), float64(rapid.IntRange(0, 12).Draw(t, "overhead"))/1000))
			}
			watched := n.Watched()
			if watched != nil {
				since := lived(1, float64(rapid.IntRange(0, 15).Draw(t, "since"))/100, 0)
				since.From = n.Now
				n.Study.Since = &since
			}
			c := n.Decide()
			c.ID = int64(night + 1)
			worse := watched != nil && n.Study.Since.Cost()-watched.Study.Was.Cost() > r.WorseBy
			switch {
			case worse != (c.Kind == tune.Undone):
				t.Fatalf("night %d: %s although worse is %t", night, c.Words(), worse)
			case watched != nil && c.Kind == tune.Taken:
				t.Fatalf("night %d: %s while a takeover is watched", night, c.Words())
			case c.Kind == tune.Proposed || c.Kind == tune.Ended:
				t.Fatalf("night %d: %s", night, c.Words())
			}
			if c.Kind == tune.Taken {
				took++
				if at, before := last[c.Term], last[c.Term] != 0; before && n.Now.Sub(at) < r.Rest {
					t.Fatalf("night %d: %v is taken again after %v", night, c.Term, n.Now.Sub(at))
				}
				last[c.Term] = n.Now
				low, high := min(c.Before, c.Term), max(c.Before, c.Term)
				if slices.ContainsFunc(r.Terms, func(x cluster.Span) bool { return low < x && x < high }) {
					t.Fatalf("night %d: from %v to %v is more than a step", night, low, high)
				}
			}
			if c.Kind == tune.Undone {
				undid++
			}
			record = append([]tune.Change{c}, record...)
			n.Record = record
			if now := n.InForce(); now != c.Term || now != file && !slices.Contains(r.Terms, now) {
				t.Fatalf("night %d: %v is in force after %s", night, now, c.Words())
			}
		}
	})
	if took == 0 || undid == 0 {
		t.Errorf("%d taken, %d undone: nothing was tried", took, undid)
	}
}

// A study survives its report; wrong ones are refused.
func TestParseStudy(t *testing.T) {
	since := lived(1, 0.1, 0.02)
	want := tune.Study{Was: lived(7, 0.05, 0.003), Since: &since, Trials: better()}
	text, err := json.Marshal(map[string]any{"study": want})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tune.ParseStudy(text)
	if err != nil || fmt.Sprint(got.Trials, *got.Since, got.Was) != fmt.Sprint(want.Trials, *want.Since, want.Was) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`nonsense`:                             "invalid character",
		`{}`:                                   "there is none",
		`{"study":{"trials":[{"term_ms":0}]}}`: "term 0 s after 0 s",
		`{"study":{"trials":[{"term_ms":9},{"term_ms":9}]}}`:       "after",
		`{"study":{"was":{"unfair":-1}}}`:                          "-1 is no measure",
		`{"study":{"since":{"of_run":-0.5}}}`:                      "-0.5 is no measure",
		`{"study":{"trials":[{"term_ms":9,"mean_jct_s":-2}]}}`:     "-2 is no measure",
		`{"study":{"trials":[{"term_ms":9,"mean_jct_s":1e9999}]}}`: "cannot unmarshal",
	} {
		if _, err := tune.ParseStudy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Whatever a study says, a night stays within the bounds.
func FuzzParseStudy(f *testing.F) {
	text, err := json.Marshal(map[string]any{"study": tune.Study{Was: lived(7, 0.05, 0.003), Trials: better()}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"study":{"trials":[{"term_ms":900000,"finished_jobs":3},{"term_ms":1800000,"mean_jct_s":1e308}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := tune.ParseStudy(text)
		if err != nil {
			return
		}
		n := tune.Night{Now: start, File: 15 * minute, Rule: rule(), Take: true, By: tune.Daemon, Study: s}
		if c := n.Decide(); c.Term != n.File && !slices.Contains(n.Rule.Terms, c.Term) || c.Why == "" {
			t.Errorf("%+v", c)
		}
	})
}
