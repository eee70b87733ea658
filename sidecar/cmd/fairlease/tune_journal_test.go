package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/operate/beside"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store/storetest"
)

// acted is a journal of 26 hours of a crowded cluster on which fairlease acts, and a function that gives the
// environment with a configuration.
func acted(t *testing.T) (s *story, with func(text string) []string) {
	t.Helper()
	dsn, lead := leading(t)
	set := simtest.Product()
	set.JobOrder, set.RepayFloorPercent = cluster.ByRho, 50
	w := simtest.New(t, set, simtest.Nodes("v", "v100", 2, 4), "nlp", "vision")
	w.Loop.Journal = lead.Journal()
	for range 13 {
		w.Submit("nlp", 2, 4, 70*cluster.Minute)
		w.Submit("vision", 3, 2, 40*cluster.Minute)
		w.Run(2 * cluster.Hour)
	}
	s = &story{world: w, end: w.Now().Time()}
	return s, func(text string) []string {
		dir := t.TempDir()
		path := dir + "/fairlease.yaml"
		write(t, path, fmt.Sprintf("files: {state: %s/state.json}\n%s", dir, text))
		return []string{"FAIRLEASE_DATABASE_URL=" + dsn, "FAIRLEASE_CONFIG=" + path}
	}
}

// when matches the times of the database's clock.
var when = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?( \([^)]*\))?`)

// By hand: the terms that the last day is replayed with, the proposal, its takeover, what is watched of it, its end.
func TestTuneJournal(t *testing.T) {
	s, with := acted(t)
	const plain = "mode: observe\n"
	const act = "mode: act\ntune: {at: 0 3 * * *, terms: [5m, 15m, 30m, 1h]}\n"
	do := func(config string, code int, args ...string) result {
		t.Helper()
		r := run(t, s.end, with(config), append([]string{"tune"}, args...)...)
		if r.code != code {
			t.Fatalf("%v: exit code %d\n%s%s", args, r.code, r.out, r.err)
		}
		return r
	}
	r := do(plain, failure.OK, "journal", "--last", "25h")
	golden(t, "tune-journal", r.out+r.err)
	r = do(plain, failure.OK, "journal", "--last", "25h", "--json")
	study, err := tune.ParseStudy([]byte(r.out))
	if err != nil || len(study.Trials) != 6 || study.Was.Jobs == 0 || study.Was.To.Sub(study.Was.From) < 24*cluster.Hour {
		t.Errorf("%v: %+v", err, study)
	}
	golden(t, "tune-journal-parsable", do(act, failure.OK, "journal", "--last", "25h", "-P").out)
	do(act, failure.OK, "list", "-n") // nothing was recorded
	for _, x := range []struct{ config, want string }{{"mode: act", "tune.at is empty"}, {"tune: {at: 0 3 * * *}", "in mode observe"}} {
		if r := do(x.config, failure.No, "journal", "--apply"); !strings.Contains(r.err, x.want) || !strings.Contains(r.err, "lease.term") {
			t.Errorf("%s: %s", x.config, r.err)
		}
	}
	if r := do(act, failure.No, "undo", "--reason", "x"); !strings.Contains(r.err, "no term is in place of lease.term") {
		t.Error(r.err)
	}
	r = do(act, failure.OK, "journal", "--last", "25h", "--apply")
	if !strings.Contains(r.out, "A term of 30 min is taken over in place of 15 min") || !strings.Contains(r.out, "This takes effect in the next round.") {
		t.Errorf("not taken over:\n%s", r.out)
	}
	// The takeover is dated into the journal's time, to see what has happened since.
	db := storetest.Connect(t, strings.TrimPrefix(with("")[0], "FAIRLEASE_DATABASE_URL="))
	if _, err := db.Exec(t.Context(), "update fairlease.tunings set at = $1, by = 'ann', why = 'as proposed'", s.end.Add(-14*time.Hour)); err != nil {
		t.Fatal(err)
	}
	r = do(act, failure.OK, "journal", "--last", "25h")
	golden(t, "tune-journal-watched", r.out+r.err)
	r = do(strings.Replace(act, "tune: {", "tune: {worse_by: 0, ", 1), failure.OK, "journal", "--last", "25h")
	if !strings.Contains(r.out, "The term goes back from 30 min to 15 min by ") || !strings.Contains(r.out, "Nothing was changed; --apply does it.") {
		t.Errorf("worse, but not to be undone:\n%s", r.out)
	}
	if r := do(act, failure.Misuse, "undo"); !strings.Contains(r.err, "needs a reason") {
		t.Error(r.err)
	}
	r = do(act, failure.OK, "undo", "--reason", "the demo is over")
	if !strings.HasPrefix(r.out, "the term goes back from 30 min to 15 min by ") || !strings.HasSuffix(r.out, ": the demo is over; this takes effect in the next round\n") {
		t.Error(r.out)
	}
	me := regexp.MustCompile(`\|[^|]*\|the demo`)
	golden(t, "tune-list", me.ReplaceAllString(when.ReplaceAllString(do(act, failure.OK, "list", "-P").out, "WHEN"), "|ME|the demo"))
}

func TestTuneJournalOfNothing(t *testing.T) {
	env := []string{"FAIRLEASE_DATABASE_URL=" + storetest.Database(t), "FAIRLEASE_CONFIG=" + empty(t)}
	for args, want := range map[string]string{
		"journal":             "the journal does not cover that time",
		"journal --last soon": `--last: "soon" is no length of time`,
		"journal x":           "takes no argument",
	} {
		r := (&story{env: env}).run(t, append([]string{"tune"}, strings.Fields(args)...)...)
		if r.code == failure.OK || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d, %s", args, r.code, r.err)
		}
	}
}

// The daemon's study is this program in a process of its own; what it says of a journal that is too short is the error.
func TestTuneBeside(t *testing.T) {
	t.Setenv("FAIRLEASE_DATABASE_URL", storetest.Database(t))
	c, err := config.Load(empty(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	study := beside.Process{Path: "/proc/self/exe", Args: studyArgs, Limit: time.Minute, In: func() ([]byte, error) { return json.Marshal(c.Texts()) }}
	if _, err := study.Study(t.Context()); err == nil || !strings.Contains(err.Error(), "the journal does not cover that time") {
		t.Error(err)
	}
}
