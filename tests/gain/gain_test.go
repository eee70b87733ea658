package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

func TestGainIsOverTheHonestRowsOfTheSameGround(t *testing.T) {
	rows := []row{
		{pairing: pairing{"forky", "begin", honest}, strategist: 100}, {pairing: pairing{"forky", "begin", honest}, strategist: 300},
		{pairing: pairing{"forky", "begin", strategy{name: "tiny"}}, strategist: 250},
		{pairing: pairing{"trixie", "begin", honest}, strategist: 50},
		{pairing: pairing{"trixie", "begin", strategy{name: "tiny"}}, strategist: 40},
		{pairing: pairing{"trixie", "licence", strategy{name: "tiny"}}, strategist: 40},
		{pairing: pairing{"trixie", "begin", strategy{name: "long"}}, err: errors.New("no")},
		{pairing: pairing{"forky", "begin", honestLong}, strategist: 400}, {pairing: pairing{"forky", "begin", strategy{name: "stays", jobs: long}}, strategist: 500},
	}
	judge(rows)
	for i, want := range []float64{-50, 50, 25, 0, -20, 0, 0, 0, 25} {
		if got := rows[i].gain; got < want-0.01 || got > want+0.01 {
			t.Errorf("row %d: gain %.1f %%, want %.1f", i, got, want)
		}
	}
}

func TestHonestRowsAreJudgedByThemselves(t *testing.T) {
	for _, r := range references {
		if by := r.judgedBy(); by.name != r.name {
			t.Errorf("%s is judged by %s", r.name, by.name)
		}
	}
}

func TestLossAndIdleAreOfTheDueAndOfAll(t *testing.T) {
	r := row{strategist: 60, opponent: 30, capacity: 100}
	if r.loss() != 40 || r.idle() < 9.99 || r.idle() > 10.01 {
		t.Errorf("loss %.1f, idle %.1f; want 40 of its due of 50, and 10", r.loss(), r.idle())
	}
	if r := (row{opponent: 70, capacity: 100}); r.loss() != 0 {
		t.Errorf("a tenant above its due has lost %.1f", r.loss())
	}
}

// Jobs that take turns are measured by their run times, which begin anew when they are requeued; where both ran, each had half of the GPU.
func TestHeldInTurns(t *testing.T) {
	s := &site{ran: map[string]time.Duration{}}
	for _, looks := range [][]queued{
		{{id: "1", user: "alice", state: "RUNNING", ran: 3 * time.Second}, {id: "2", user: "bob", state: "SUSPENDED", ran: 40 * time.Second}},
		{{id: "1", user: "alice", state: "SUSPENDED", ran: 30 * time.Second}, {id: "2", user: "bob", state: "RUNNING", ran: 60 * time.Second}},
		{{id: "1", user: "alice", state: "PENDING"}, {id: "2", user: "bob", state: "RUNNING", ran: 70 * time.Second}},
		{{id: "1", user: "alice", state: "RUNNING", ran: 2 * time.Second}, {id: "2", user: "bob", state: "RUNNING", ran: 80 * time.Second}},
	} {
		s.count(looks)
	}
	got := heldInTurns(s.sinceForgotten(), 100*time.Second, 2) // 32 and 80 s of 100
	if got[strategistsOwn] != 26 || got[opponents] != 74 {
		t.Errorf("of 100 s of the GPU: %v", got)
	}
	if got := heldInTurns(map[string]time.Duration{strategistsOwn: 100 * time.Second, opponents: 200 * time.Second}, 120*time.Second, 3); got[strategistsOwn] != 40 || got[opponents] != 80 {
		t.Errorf("of 120 s of the GPU on which three ran for 90 s: %v", got)
	}
	s.forget()
	s.count([]queued{{id: "1", user: "alice", state: "RUNNING", ran: 7 * time.Second}})
	if got := s.sinceForgotten()[strategistsOwn]; got != 5*time.Second {
		t.Errorf("%s since then, want 5s", got)
	}
}

// Rows go into the table of a text, and the worst are read from it again.
func TestTableKeepsItsRows(t *testing.T) {
	play := func(name, suite string, gain float64) row {
		i := slices.IndexFunc(strategies, func(s strategy) bool { return s.name == name })
		return row{pairing: pairing{suite, "begin", strategies[i]}, capacity: 100, strategist: 40, opponent: 30, gain: gain}
	}
	text := merged("# A title\n\n| strategy | other table |\n|---|---|\n| tiny | 900 |\n\nText.\n", []row{play("tiny", "forky", 150), play("long", "forky", 3), play("long", "trixie", -20)})
	text = strings.Replace(text, "# A title", "# The title", 1) + "\nMore text.\n"
	failed := play("tiny", "forky", 0)
	failed.err = errors.New("no cluster")
	text = merged(text, []row{failed, play("long", "trixie", 7), {pairing: pairing{"forky", "begin", honest}, capacity: 100, strategist: 50, opponent: 40}})
	got := worstOf(text, 3)
	if want := []string{"tiny, forky, begin", "long, trixie, begin", "long, forky, begin"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q of\n%s", got, want, text)
	}
	if all := cells(text); all["long, trixie, begin"] != "+7 (40, 30)" || all["honest, forky, begin"] != "(20, 10)" || len(all) != 4 {
		t.Errorf("the table has %v", all)
	}
	if !strings.HasPrefix(text, "# The title\n") || !strings.HasSuffix(text, "\nMore text.\n") || strings.Count(text, "| tiny |") != 2 {
		t.Errorf("the text around the table is lost:\n%s", text)
	}
	if got := worstOf(merged("", nil), 8); len(got) != 8 || got[0] != strategies[0].name+", forky, licence" {
		t.Errorf("of a table without gains %q are the worst", got)
	}
	known := cells(text)
	o := options{suites: []string{"forky"}, gates: []string{"begin"}, only: regexp.MustCompile("^(tiny|long|array)$"), known: known}
	if missing := chosen(o); len(missing) != 1 || missing[0].name != "array" {
		t.Errorf("%d pairings are missing", len(missing))
	}
}

func TestEveryBatchHasItsHonestRows(t *testing.T) {
	o := options{suites: []string{"trixie", "forky"}, gates: gates, only: regexp.MustCompile("")}
	for _, side := range []int{2, 3, 8} {
		played := map[string]int{}
		for _, b := range batches(chosen(o), side) {
			if len(b) > side {
				t.Fatalf("a batch of %d, want at most %d", len(b), side)
			}
			honestOn := map[string]bool{}
			for _, p := range b {
				if p.isHonest() {
					honestOn[p.key()] = true
					continue
				}
				played[p.key()]++
				if !honestOn[p.base()] {
					t.Errorf("%s has no honest row before it", p.key())
				}
			}
		}
		if want := 4 * len(strategies); len(played) != want {
			t.Errorf("%d pairings are played, want %d", len(played), want)
		}
		for key, n := range played {
			if n != 1 {
				t.Errorf("%s is played %d times", key, n)
			}
		}
	}
}

func TestStrategiesHaveNamesForTables(t *testing.T) {
	if len(strategies) < 40 {
		t.Errorf("only %d strategies", len(strategies))
	}
	names := map[string]bool{honest.name: true, honestLong.name: true, day.name: true, thousand.name: true}
	for _, s := range strategies {
		if names[s.name] || s.does == "" || strings.ContainsAny(s.name+s.does, "|\n") || strings.Contains(s.name, ", ") {
			t.Errorf("strategy %q (%s): names are unique, and neither has a bar", s.name, s.does)
		}
		names[s.name] = true
		if s.play == nil && s.depth < 1 {
			t.Errorf("strategy %q does nothing", s.name)
		}
	}
}

func TestSlurmsTimesAndResources(t *testing.T) {
	for text, want := range map[string]time.Duration{"0:00": 0, "1:05": 65 * time.Second, "1:00:01": time.Hour + time.Second, "INVALID": 0} {
		if got := elapsed(text); got != want {
			t.Errorf("%s is read as %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]int{"billing=4,cpu=4,gres/gpu:v100=4,gres/gpu=4,mem=400M,node=1": 4, "cpu=1": 0, "": 0} {
		if got := testcluster.GPUsOf(text); got != want {
			t.Errorf("%s has %d GPUs, want %d", text, got, want)
		}
	}
}

func TestReportEndsWithFigures(t *testing.T) {
	rows := []row{
		{pairing: pairing{"forky", "licence", honest}, strategist: 45, opponent: 45, capacity: 100},
		{pairing: pairing{"forky", "licence", day}, strategist: 90, grants: 200, failed: 3, capacity: 100},
		{pairing: pairing{"forky", "licence", thousand}, strategist: 40, opponent: 42, capacity: 100},
		{pairing: pairing{"forky", "licence", strategy{name: "tiny", does: "x"}}, strategist: 54, opponent: 40, capacity: 100},
	}
	var text strings.Builder
	if err := report(&text, rows); err != nil {
		t.Error(err)
	}
	if want := "\ngain_worst_pct 20.0\nflood_idle_pct 8.0\ngrants_failed_pct 1.50\n"; !strings.HasSuffix(text.String(), want) {
		t.Errorf("the report is\n%s\nand should end with %q", text.String(), want)
	}
}

// Rows that failed, or that no honest row judges, are in no figure: the run fails and names them.
func TestFailedRowsAreInNoFigure(t *testing.T) {
	rows := []row{
		{pairing: pairing{"forky", "licence", honest}, strategist: 45, opponent: 45, capacity: 100},
		{pairing: pairing{"forky", "licence", strategy{name: "tiny", does: "x"}}, err: errors.New("slurmctld is gone"), capacity: 100},
		{pairing: pairing{"trixie", "begin", strategy{name: "tiny", does: "x"}}, strategist: 90, capacity: 100},
	}
	var text strings.Builder
	err := report(&text, rows)
	if err == nil || !strings.Contains(err.Error(), "2 of 3 rows failed") || strings.Contains(text.String(), "gain_worst_pct") || !strings.Contains(text.String(), `no row "honest, trixie, begin"`) {
		t.Errorf("%v\n%s", err, &text)
	}
}

// docs/faults.md has a row for each strategy, whether it was played or not.
func TestDocumentHasAllStrategies(t *testing.T) {
	const path = "../../docs/faults.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if merged(string(text), nil) != string(text) {
		t.Errorf("the table of %s has other strategies than strategies.go: run `go run ./tests/gain -only '^$' -out docs/faults.md`", path)
	}
}
