package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Every report says how jobs are assumed to save.
func TestReportsSayHowJobsSave(t *testing.T) {
	runs := hand()
	const assumed = "60 % never, 40 % notice (drawn by kind)"
	page := madeUp(t, 3, 40, 1, []string{"a"})
	page.Saves = assumed
	for name, c := range map[string]struct {
		write func(*bytes.Buffer) error
		want  string
	}{
		"table": {func(b *bytes.Buffer) error { return Table(b, runs) }, "Jobs are taken to save: " + assumed + "\n"},
		"csv":   {func(b *bytes.Buffer) error { return CSV(b, runs) }, "small,2,16,astraea,,overhead.lost.of_run,0.0025,\"" + assumed + "\"\n"},
		"html":  {func(b *bytes.Buffer) error { return HTML(b, "x", []score.Scores{page}) }, "<p>Jobs are taken to save: " + assumed + "</p>"},
		"json":  {func(b *bytes.Buffer) error { return JSON(b, runs) }, `"saves":"` + assumed + `"`},
		"sweep": {func(b *bytes.Buffer) error {
			return Tradeoff(b, "x", []score.Trial{{Scores: runs[0]}}, score.StandardRule())
		}, "<p>Jobs are taken to save: " + assumed + "</p>"},
	} {
		var b bytes.Buffer
		if err := c.write(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%s does not have %q:\n%s", name, c.want, b.String())
		}
	}
	var back []score.Scores
	var b bytes.Buffer
	if err := JSON(&b, runs); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || back[0].Saves != assumed || back[0].Overhead.Lost.Jobs != 7 {
		t.Errorf("%v: %+v", err, back[0].Setting)
	}
}

// Runs with different assumptions, or without one, are each named.
func TestRunsThatSaveDifferently(t *testing.T) {
	runs := hand()
	runs[1].Saves = "never"
	each := []string{"Jobs are taken to save, in astraea: 60 % never, 40 % notice (drawn by kind)", "Jobs are taken to save, in slurm-multifactor: never"}
	if d := cmp.Diff(each, groups(runs)[0].Saves()); d != "" {
		t.Error(d)
	}
	runs[0].Saves = ""
	if d := cmp.Diff(each[1:], groups(runs)[0].Saves()); d != "" {
		t.Error(d)
	}
	runs[1].Saves = ""
	if got := groups(runs)[0].Saves(); len(got) > 0 {
		t.Errorf("of runs that rest on no assumption: %q", got)
	}
}

// Kinds of jobs are listed with results, at most ten, with advice if some do not save.
func TestKindsOfJobs(t *testing.T) {
	run := madeUp(t, 3, 40, 1, []string{"a"})
	run.Kinds = []score.Kind{{User: "ann", Name: "train#.sh", GPUs: 8, Jobs: 12, Held: 1234.5, Requeued: 7, Losers: 3, Lost: 20.25, Saves: "never", Why: "assumed"},
		{User: "bob", Name: "<b>\x1b[2J", GPUs: 1, Jobs: 2, Held: 7, Requeued: 2, Saves: "periodic=1h", Why: "declared"}}
	var b bytes.Buffer
	kindLines(&b, run)
	want := `
` + run.Scheduler + `. Of 14 jobs, 9 are requeued at least once, and 3 lose work: 20.2 GPU h in all. Kinds of jobs, by GPU time:
  user  name       GPUs  jobs   GPU h  requeued  lose work  lost GPU h  saves        how known
  ann   train#.sh     8    12  1234.5         7          3        20.2  never        assumed
  bob   <b>?[2J       1     2     7.0         2          0         0.0  periodic=1h  declared
` + advice + "\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	text := html(t, []score.Scores{run})
	parse(t, text)
	for _, want := range []string{"<td>train#.sh</td>", "which jobs are requeued and lose work?", "--comment=saves=notice"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for range 11 {
		run.Kinds = append(run.Kinds, score.Kind{User: "eve", Saves: "notice", Jobs: 1})
	}
	b.Reset()
	kindLines(&b, run)
	if !strings.Contains(b.String(), "\n  and 3 more kinds\n") || strings.Count(b.String(), "\n  eve ") != 8 {
		t.Errorf("of thirteen kinds:\n%s", b.String())
	}
	run.Kinds = run.Kinds[2:]
	b.Reset()
	if kindLines(&b, run); strings.Contains(b.String(), "Talk first") {
		t.Errorf("advice though all save:\n%s", b.String())
	}
	run.Kinds = nil
	b.Reset()
	if kindLines(&b, run); b.Len() > 0 {
		t.Errorf("of no kinds:\n%s", b.String())
	}
}
