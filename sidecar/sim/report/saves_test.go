package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Every report says how jobs are taken to save.
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

// Where runs rest on different assumptions, or one on none, each is named.
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
