package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Headline figures of the first three days, with rounds of 20 s, are within the spreads that research/results.md prints: those of real
// jobs where FAIRLEASE_TRACES names the traces, those of made-up ones anywhere.
func TestHeadlines(t *testing.T) {
	seeds.Slow(t)
	dir := os.Getenv("FAIRLEASE_TRACES")
	printed := onPage(t, "window")
	w := window()
	if len(printed) != len(w.rows) {
		t.Fatalf("the page has %d rows, the table %d: make results TABLE=window", len(printed), len(w.rows))
	}
	b := bank{traces: dir, dir: t.TempDir()}
	for i, row := range w.rows {
		r := row.runs[0][slices.IndexFunc(row.runs[0], func(r run) bool { return r.Round == 20 })]
		t.Run(strings.Join(row.names, ", "), func(t *testing.T) {
			if dir == "" && !r.MadeUp {
				t.Skip("FAIRLEASE_TRACES names no folder with the traces")
			}
			s, err := b.one(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			for k, m := range w.measures {
				least, most := bounds(t, printed[i][len(row.names)+k])
				if got, _ := bounds(t, fmt.Sprintf(m.format, m.of(s))); got < least || got > most {
					t.Errorf("%s is %v, the page has %s; where the change is meant, make results TABLE=window", m.head, got, printed[i][len(row.names)+k])
				}
			}
		})
	}
}

// onPage gives the rows of a table of the pages.
func onPage(t *testing.T, name string) [][]string {
	t.Helper()
	for _, path := range pages {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mark.FindAllStringSubmatch(string(text), -1) {
			if m[1] == name {
				return cells(m[4])
			}
		}
	}
	t.Fatalf("no page has the table %s", name)
	return nil
}

// bounds reads a spread as it is printed.
func bounds(t *testing.T, cell string) (least, most float64) {
	t.Helper()
	from, to, ok := strings.Cut(cell, " to ")
	if !ok {
		to = from
	}
	least, err := strconv.ParseFloat(from, 64)
	if err != nil {
		t.Fatal(err)
	}
	if most, err = strconv.ParseFloat(to, 64); err != nil {
		t.Fatal(err)
	}
	return least, most
}

// Every table has a place on a page, and every place a table: a start without names makes them all. Pictures are of the engines of their tables.
func TestPlaces(t *testing.T) {
	var names []string
	engines := map[string]string{} // by table
	for _, x := range tables() {
		names = append(names, x.name)
		if rows := onPage(t, x.name); len(rows) == 0 {
			t.Errorf("the table %s is empty", x.name)
		}
	}
	for _, path := range pages {
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		found := mark.FindAllStringSubmatch(string(text), -1)
		if n := strings.Count(string(text), "<!-- results: "); n != len(found) {
			t.Errorf("%s: %d of %d marks have a table", path, len(found), n)
		}
		for _, m := range found {
			engines[m[1]] = m[2]
			if !slices.Contains(names, m[1]) {
				t.Errorf("%s: the table %s is none of %v", path, m[1], names)
			}
		}
	}
	drawn, err := filepath.Glob("../../" + pictures)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range drawn {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := pictureMark.FindStringSubmatch(string(text))
		if m == nil || engines[m[1]] == "" || engines[m[1]] != "unknown" && engines[m[1]] != m[2] {
			t.Errorf("%s is not by the engine of its table: make results", path)
		}
	}
	if _, err := choose([]string{"order", "nothing"}); err == nil || !strings.Contains(err.Error(), "comparison") {
		t.Errorf("an unknown table: %v; want the names of all", err)
	}
}

// Kept runs are not run again; those of another engine, or with another trace, are. An interrupted start leaves what is done.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	runs := rounds(run{Scene: "venus100", Scheduler: "fifo", MadeUp: true, Window: 1, Days: 1}, 600, 900)
	first := bank{dir: dir, engine: "one"}
	if err := first.missing(runs); err != nil || len(first.due) != 2 {
		t.Fatalf("%d due, %v", len(first.due), err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	if err := first.work(stopped, 1); err == nil {
		t.Error("an interrupted start has no error")
	}
	if err := first.work(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	for engine, want := range map[string]int{"one": 0, "two": 2} {
		b := bank{dir: dir, engine: engine}
		if err := b.missing(runs); err != nil || len(b.due) != want {
			t.Errorf("engine %s: %d due, want %d, %v", engine, len(b.due), want, err)
		}
		if want == 0 && b.has[runs[0]].Completion != first.has[runs[0]].Completion {
			t.Errorf("kept %+v, made %+v", b.has[runs[0]].Completion, first.has[runs[0]].Completion)
		}
	}
	traced := bank{dir: dir, engine: "one", traces: t.TempDir()}
	r := run{Scene: "philly64", Scheduler: "fifo", Round: 10}
	var paths []string
	for _, content := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(traced.traces, "philly_2w_most_demand.csv.gz"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		traced.files = nil
		path, err := traced.path(r)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if paths[0] == paths[1] {
		t.Error("runs of two traces have the same file")
	}
}

// The headline has a bar for each scheduler, trace and manner of saving, with its spread, and says where a mean leaves out jobs.
func TestHeadlinePicture(t *testing.T) {
	x, has := firstDay(), map[run]*score.Scores{}
	for _, r := range x.runs() {
		var s score.Scores
		s.Completion.Mean, s.Jobs.All = 3600*float64(r.Round), 200
		if r.Scheduler == "slurm-preempt" && r.Saves == "never" {
			s.Jobs.Unfinished = 30
		}
		has[r] = &s
	}
	p := headline(x.rows, has)
	if len(p.charts) != 1 || len(p.charts[0].Panels) != 3 {
		t.Fatalf("%+v", p)
	}
	for _, panel := range p.charts[0].Panels {
		if len(panel.Names) != 4 || len(panel.Curves) != 3 {
			t.Errorf("%s has %d groups and %d schedulers, want 4 and 3", panel.Title, len(panel.Names), len(panel.Curves))
		}
	}
	want := []string{"10.0 to 30.0, 15 % unfinished", "10.0 to 30.0", "10.0 to 30.0, 15 % unfinished", "10.0 to 30.0"}
	if c := p.charts[0].Panels[2].Curves[2]; !slices.Equal(c.Texts, want) || c.Low[0] != 10 || c.Y[0] != 20 || c.High[0] != 30 {
		t.Errorf("%+v, want %q", c, want)
	}
}

// Tables and pictures of another engine are named.
func TestStale(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"docs/results.md":      "By " + markOf("order", engine{"12ab", "1"}) + "\n\n| a |\n",
		"research/results.md":  "By " + markOf("idle", engine{"34cd", "2 with changes"}) + "\n\n| a |\n",
		"docs/results-new.svg": "<svg/>\n" + markOf("order", engine{"12ab", "1"}) + "\n",
		"docs/results-old.svg": "<svg/>\n" + markOf("order", engine{"34cd", "1"}) + "\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"research/results.md: table idle is stale: another engine made it (commit 2 with changes)", "docs/results-old.svg is stale: another engine made it"}
	if got, err := stale("12ab"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// A table goes between its marks, and nothing else of the page changes.
func TestReplace(t *testing.T) {
	x := table{name: "order", about: "Text.", heads: []string{"trace"}, measures: []measure{meanJCT}, rows: []row{{[]string{"a"}, [][]run{{{Round: 1}, {Round: 2}}}}}}
	scores := func(hours float64) *score.Scores {
		var s score.Scores
		s.Completion.Mean = 3600 * hours
		return &s
	}
	body := x.markdown(map[run]*score.Scores{{Round: 1}: scores(2), {Round: 2}: scores(1)})
	if want := "| trace | mean JCT h |\n|---|---|\n| a | 1.0 to 2.0 |\n"; body != want {
		t.Fatalf("%q, want %q", body, want)
	}
	block := x.block(body, engine{"12ab", "34cd"})
	const other = "before\nold <!-- results: idle, engine 1, commit 2 -->\n\n| a |\n\n"
	page, want := other+"old <!-- results: order, engine unknown, commit 1 with changes -->\n\n| a |\n|---|\n\nafter\n", other+block+"\nafter\n"
	for range 2 {
		var ok bool
		if page, ok = replace(page, "order", block); !ok || page != want {
			t.Fatalf("%v, %q, want %q", ok, page, want)
		}
	}
	if _, ok := replace(page, "window", block); ok {
		t.Error("a table without marks was placed")
	}
}
