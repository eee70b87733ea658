package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

func TestParseMixture(t *testing.T) {
	part := func(how sim.Saves, every cluster.Span, weight int64) Part {
		return Part{Manner{Saves: how, Every: every}, weight}
	}
	for _, c := range []struct {
		text  string
		every cluster.Span
		want  Mixture
		words string
	}{
		{"never", 0, Mixture{Parts: []Part{part(sim.Never, 0, 1)}}, "never"},
		{"at-end", 0, Mixture{Parts: []Part{part(sim.AtEnd, 0, 1)}}, "at-end"},
		{"at-notice", 0, Mixture{Parts: []Part{part(sim.AtNotice, 0, 1)}}, "notice"},
		{"notice", 0, Mixture{Parts: []Part{part(sim.AtNotice, 0, 1)}}, "notice"},
		{"term", 0, Mixture{Parts: []Part{part(sim.OnTerm, 0, 1)}}, "term"},
		{"each-term", 0, Mixture{Parts: []Part{part(sim.EachTerm, 0, 1)}}, "each-term"},
		{"ideal", 0, Mixture{Parts: []Part{part(sim.Always, 0, 1)}}, "ideal"},
		{"periodic", 2 * cluster.Hour, Mixture{Parts: []Part{part(sim.Periodic, 2*cluster.Hour, 1)}}, "periodic=2h"},
		{"periodic=90m", 0, Mixture{Parts: []Part{part(sim.Periodic, 90*cluster.Minute, 1)}}, "periodic=1h30m"},
		{"1h", 0, Mixture{Parts: []Part{part(sim.Periodic, cluster.Hour, 1)}}, "periodic=1h"},
		{"never:60,periodic=1h:30, notice:10", 0, Mixture{Parts: []Part{part(sim.Never, 0, 60), part(sim.Periodic, cluster.Hour, 30), part(sim.AtNotice, 0, 10)}},
			"60 % never, 30 % periodic=1h, 10 % notice (drawn by kind)"},
		{"never:1,1h:2,2h:0", 0, Mixture{Parts: []Part{part(sim.Never, 0, 1), part(sim.Periodic, cluster.Hour, 2), part(sim.Periodic, 2*cluster.Hour, 0)}},
			"33.3 % never, 66.7 % periodic=1h, 0 % periodic=2h (drawn by kind)"},
		{"habits.json", 0, Mixture{File: "habits.json", Parts: []Part{part(sim.Never, 0, 1)}}, "as habits.json says (0 kinds), else never"},
		{"dir/habits,never:50,term:50", 0, Mixture{File: "dir/habits", Parts: []Part{part(sim.Never, 0, 50), part(sim.OnTerm, 0, 50)}},
			"as dir/habits says (0 kinds), else 50 % never, 50 % term (drawn by kind)"},
	} {
		got, err := ParseMixture(c.text, c.every)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
		if got.String() != c.words {
			t.Errorf("%q is %q in words, want %q", c.text, got, c.words)
		}
	}
}

func TestMixturesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "part 1 is empty: write a manner",
		"never:60,,notice:40":   "part 2 is empty",
		"x":                     `part 1, "x" is no manner of saving: write never, notice, term, at-end, each-term, ideal or an interval like periodic=1h`,
		"never:60,sometimes:40": `part 2, "sometimes" is no manner of saving`,
		"periodic":              "part 1, periodic needs a time between two saves: write periodic=1h",
		"periodic=soon":         `part 1, "periodic=soon": "soon" is no length of time: `,
		"periodic=0.5s":         "the time between two saves is too short: write 1s or more",
		"0s":                    "the time between two saves is too short: write 1s or more",
		"never:60,notice":       `"notice" has no weight: where there are several manners, write one for each`,
		"never:x":               `part 1, "never:x": the weight is no whole number from 0 to 1000000`,
		"never:-1":              "the weight is no whole number",
		"never:60%":             "the weight is no whole number",
		"never:0":               "all weights are 0",
		"never:0,notice:0":      "all weights are 0",
		"never:60,never:40":     `part 2, "never:40": this manner has a part already: add the weights up`,
		"notice:1,at-notice:1":  "this manner has a part already",
		"a.json,b.json":         `part 2, "b.json": a.json is a file already: put the lines of both into one`,
		"a.json:60,never:40":    `part 1, "a.json:60": a file of habits has no weight`,
	} {
		if got, err := ParseMixture(text, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzMixture(f *testing.F) {
	for _, text := range []string{"never", "never:60,periodic=1h:30,notice:10", "a.json,never:1", "1-00:00:00:3", "periodic"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMixture(text, cluster.Hour)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if err := m.check(); err != nil || m.String() == "" {
			t.Fatalf("%q: %v", text, err)
		}
		m.Of(&trace.Job{ID: text, User: text, Name: text, GPUs: 1}, 7)
		for _, p := range m.Parts { // each manner's text can be parsed
			if back, err := parseManner(p.String(), 0); err != nil || back != p.Manner {
				t.Errorf("%v reads as %v, %v", p.Manner, back, err)
			}
		}
	})
}

// The fractions of jobs match the weights, by job and by kind; equal seeds draw equally,
// different ones do not.
func TestTheDraw(t *testing.T) {
	m, err := ParseMixture("never:60,periodic=1h:30,notice:10", 0)
	if err != nil {
		t.Fatal(err)
	}
	count := func(m Mixture, seed uint64) (map[sim.Saves]int, []sim.Saves) {
		out, all := map[sim.Saves]int{}, []sim.Saves(nil)
		for i := range 10_000 {
			got := m.Of(&trace.Job{ID: fmt.Sprint(i), Tenant: "a", User: fmt.Sprintf("u%d", i/10), Name: fmt.Sprintf("run%d", i%3), GPUs: 1 + i%2}, seed)
			out[got.Saves]++
			all = append(all, got.Saves)
		}
		return out, all
	}
	for _, byJob := range []bool{true, false} {
		m.ByJob = byJob
		got, all := count(m, 1)
		for how, want := range map[sim.Saves]int{sim.Never: 6000, sim.Periodic: 3000, sim.AtNotice: 1000} {
			if n := got[how]; n < want-350 || n > want+350 {
				t.Errorf("by job %v: %d jobs save as %d, want about %d", byJob, n, how, want)
			}
		}
		if _, again := count(m, 1); !slices.Equal(all, again) {
			t.Error("the same seed draws differently")
		}
		if _, other := count(m, 2); slices.Equal(all, other) {
			t.Error("another seed draws the same")
		}
		for i := 0; i+2 < len(all) && !byJob; i += 10 { // one user, one kind of name, equal GPUs
			if all[i] != all[i+2] {
				t.Fatalf("jobs %d and %d are of one kind and save differently", i, i+2)
			}
		}
	}
}

// Numbers in names, and other properties of a job, do not change its kind.
func TestKindOf(t *testing.T) {
	for _, c := range []struct {
		job  trace.Job
		want Kind
	}{
		{trace.Job{Tenant: "nlp", User: "ann", Name: "bert-seed12", GPUs: 8}, Kind{"ann", "bert-seed#", 8}},
		{trace.Job{Tenant: "nlp", GPUs: 8}, Kind{"nlp", "", 8}},
		{trace.Job{User: "ann", Name: "x", Command: "train.sh --lr 3", GPUs: 1}, Kind{"ann", "train.sh --lr 3", 1}},
	} {
		if got := KindOf(&c.job); got != c.want {
			t.Errorf("%+v is of kind %+v, want %+v", c.job, got, c.want)
		}
	}
}

func TestReadHabits(t *testing.T) {
	never := Manner{Saves: sim.Never}
	hourly := Manner{Saves: sim.Periodic, Every: cluster.Hour}
	for name, c := range map[string]struct {
		text string
		want []Habit
	}{
		"lines": {"user,command,gpus,manner,interval,save-time\n# a comment\nann,train.sh,8,periodic,1h,30s\nbob,*,*,never\n,\"x, y\",,notice\n",
			[]Habit{{User: "ann", Command: "train.sh", GPUs: 8, Manner: Manner{sim.Periodic, cluster.Hour, 30 * cluster.Second}},
				{User: "bob", Command: "*", Manner: never}, {Command: "x, y", Manner: Manner{Saves: sim.AtNotice}}}},
		"objects": {`[{"user": "ann", "command": "train.sh", "gpus": 8, "manner": "periodic", "interval": "1h"}, {"user": "bob", "manner": "never"}]`,
			[]Habit{{User: "ann", Command: "train.sh", GPUs: 8, Manner: hourly}, {User: "bob", Manner: never}}},
		"a stream": {`{"user": "ann", "manner": "1h"}
{"user": "bob", "manner": "never"}`, []Habit{{User: "ann", Manner: hourly}, {User: "bob", Manner: never}}},
		"what the journal has learnt": {`[
{"type": {"user": "ann", "command": "train.sh", "gpus": 8}, "completed": 3, "at": 1},
{"type": {"user": "ann", "command": "train.sh", "gpus": 4}, "reports": 5, "every": 3600000, "at": 1},
{"type": {"user": "bob", "command": "run.sh", "gpus": 1}, "resumed": 3, "restarted": 1, "last": "restarted", "at": 1},
{"type": {"user": "bob", "command": "go.sh", "gpus": 1}, "resumed": 3, "last": "resumed", "on_term": 1, "at": 1},
{"type": {"user": "eve", "command": "x.sh", "gpus": 2}, "resumed": 1, "saving": {"manner": "term", "takes": 5000}, "at": 1},
{"type": {"user": "eve", "command": "y.sh", "gpus": 2}, "manner": "periodic", "every": 3600000}]`,
			[]Habit{{User: "ann", Command: "train.sh", GPUs: 4, Manner: hourly}, {User: "bob", Command: "run.sh", GPUs: 1, Manner: never},
				{User: "bob", Command: "go.sh", GPUs: 1, Manner: Manner{Saves: sim.OnTerm}},
				{User: "eve", Command: "x.sh", GPUs: 2, Manner: Manner{Saves: sim.OnTerm, Takes: 5 * cluster.Second}},
				{User: "eve", Command: "y.sh", GPUs: 2, Manner: hourly}}},
	} {
		got, err := ReadHabits(strings.NewReader(c.text), "h")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestHabitsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "h: says of no job how it saves: write lines like alice,train.sh,8,periodic,1h",
		"[]":                                   "h: says of no job",
		"ann,x,8":                              "h: line 1: 3 fields: write user,command,gpus,manner",
		"ann,x,8,never\nann,x,8,1h,1h,1s,2":    "h: line 2: 7 fields",
		"ann,x,eight,never":                    `h: line 1: "eight" is no number of GPUs`,
		"ann,x,8,sometimes":                    `h: line 1: "sometimes" is no manner of saving`,
		"ann,x,8,periodic":                     "periodic needs a time between two saves",
		"ann,x,8,periodic,soon":                `interval: "soon" is no length of time`,
		"ann,x,8,periodic,1h,long":             `"long" is no time to save`,
		"ann,\"x,8,never":                      "h: ",
		`{"user": "ann"`:                       "h: habit 1: ",
		`[{"user": 7}]`:                        "h: habit 1 or one after it: ",
		`{"user": "ann", "manner": "x"}`:       `h: habit 1: "x" is no manner`,
		`{"user": "ann"}`:                      "h: habit 1: neither a manner nor the type of a job",
		`[{"user": "a", "manner": "never"},7]`: "h: habit 1 or one after it: ",
	} {
		if got, err := ReadHabits(strings.NewReader(text), "h"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzHabits(f *testing.F) {
	for _, text := range []string{"user,command,gpus,manner\nann,train.sh,8,periodic,1h,30s\n", `[{"user": "ann", "manner": "never"}]`,
		`{"type": {"user": "ann", "command": "c", "gpus": 1}, "saving": {"manner": "periodic", "every": 1000}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		habits, err := ReadHabits(strings.NewReader(string(text)), "h")
		if err != nil {
			if habits != nil || err.Error() == "" {
				t.Errorf("%v with %v", habits, err)
			}
			return
		}
		for _, h := range habits {
			if h.GPUs < 0 || h.Takes < 0 || h.Saves == sim.Periodic && h.Every < cluster.Second {
				t.Errorf("%+v", h)
			}
		}
	})
}

// The first matching habit says how a job saves; jobs without one are drawn.
func TestHabitsComeBeforeTheDraw(t *testing.T) {
	m := Only(sim.Never)
	m.Habits = []Habit{
		{User: "ann", Command: "/home/ann/train.sh --seed 1", GPUs: 8, Manner: Manner{Saves: sim.OnTerm}},
		{User: "ann", Command: "bert-1", Manner: Manner{Saves: sim.AtNotice}},
		{User: "*", Command: "*", GPUs: 2, Manner: Manner{Saves: sim.EachTerm}},
	}
	for _, c := range []struct {
		job   trace.Job
		want  sim.Saves
		known bool
	}{
		{trace.Job{User: "ann", Name: "train.sh", GPUs: 8}, sim.OnTerm, true},
		{trace.Job{User: "ann", Name: "z", Command: "/home/ann/train.sh --seed 77", GPUs: 8}, sim.OnTerm, true},
		{trace.Job{User: "ann", Name: "train.sh", Command: "other", GPUs: 8}, sim.Never, false},
		{trace.Job{User: "ann", Name: "train.sh", GPUs: 4}, sim.Never, false},
		{trace.Job{User: "ann", Name: "bert-27", GPUs: 1}, sim.AtNotice, true},
		{trace.Job{User: "bob", Name: "bert-27", GPUs: 1}, sim.Never, false},
		{trace.Job{Tenant: "ann", Name: "bert-27", GPUs: 1}, sim.AtNotice, true},
		{trace.Job{User: "bob", GPUs: 2}, sim.EachTerm, true},
		{trace.Job{User: "ann", GPUs: 8}, sim.Never, false},
	} {
		if got, known := m.Of(&c.job, 1), m.Habit(&c.job) != nil; got.Saves != c.want || known != c.known {
			t.Errorf("%+v saves as %d (known %v), want %d (%v)", c.job, got.Saves, known, c.want, c.known)
		}
	}
}

// A job saves alike under every scheduler and on every fleet, also a private one.
func TestAJobSavesTheSameEverywhere(t *testing.T) {
	var jobs []trace.Job
	for i := range 200 {
		j := job(fmt.Sprint(i), []string{"a", "b"}[i%2], cluster.Span(i)*cluster.Minute, 1+i%3, cluster.Hour)
		j.User = fmt.Sprintf("u%d", i%20)
		jobs = append(jobs, j)
	}
	s := ideal(t, "2x4", 10*cluster.Minute, jobs...)
	s.Costs = sim.DefaultCosts()
	var err error
	if s.Saves, err = ParseMixture("never:50,10m:50", 0); err != nil {
		t.Fatal(err)
	}
	s.Seed, s.Reported = 5, true
	manners := func(s Setup) map[string]sim.Saves {
		out := map[string]sim.Saves{}
		for a := range s.arrivals(&Refused{}) {
			out[a.Work.Name] = a.Work.Saves
		}
		return out
	}
	all := manners(s)
	big := on(t, s, "4x8")
	big.Scheduler = "tiresias-l"
	if d := cmp.Diff(all, manners(big)); d != "" {
		t.Error(d)
	}
	for _, p := range s.privates() {
		for id, how := range manners(p.setup) {
			if all[id] != how {
				t.Errorf("on its private fleet job %s saves as %d, else as %d", id, how, all[id])
			}
		}
	}
	r := run1(t, s)
	if want := "50 % never, 50 % periodic=10m (drawn by kind), saves reported"; r.Saves != want {
		t.Errorf("the scores rest on %q, want %q", r.Saves, want)
	}
	if r.Jobs.Finished != 200 {
		t.Errorf("%+v", r.Jobs)
	}
	if again := run1(t, s); again.Completion != r.Completion || again.Overhead != r.Overhead {
		t.Errorf("%+v and %+v", r.Overhead, again.Overhead)
	}
}

// Two jobs that alternate on one GPU and never save would do so for ever: the run ends and says
// so.
func TestJobsThatBeginAnewForEver(t *testing.T) {
	s := ideal(t, "1x1", 15*cluster.Minute, job("1", "a", 0, 1, 2*cluster.Hour), job("2", "b", 0, 1, 2*cluster.Hour))
	s.Saves, s.Scheduler = Only(sim.Never), "gandiva-fair"
	r := run1(t, s)
	if r.Endless != 2 || r.Jobs.Unfinished != 2 || r.CutShort || r.To.Sub(r.From) > 6*cluster.Day {
		t.Errorf("%d endless, %+v, cut short %v, over %s", r.Endless, r.Jobs, r.CutShort, r.To.Sub(r.From))
	}
	s.Saves = Only(sim.AtEnd)
	if r := run1(t, s); r.Endless != 0 || r.Jobs.Finished != 2 {
		t.Errorf("with saves: %d endless, %+v", r.Endless, r.Jobs)
	}
}
