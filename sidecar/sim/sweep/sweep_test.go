package sweep_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/sweep"
)

// There is a setup for each setting; omitted ones are configured.
func TestSetups(t *testing.T) {
	w := input.World{Generate: "gavel", Nodes: "2x8", Length: "1d", Tenants: 2, Load: 1, Weights: "equal", Repair: "1h", Saving: input.Saving{Saves: "never", By: "kind"}}
	base, err := w.Setup(config.Default(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	s := sweep.Sweep{Terms: []string{"5m", " 1h"}, Intervals: []string{"10s", "1m"}, Scheduler: "astraea"}
	setups, err := s.Setups(base)
	var got []string
	for i := range setups {
		set := &setups[i].Settings
		got = append(got, fmt.Sprintf("%v/%v", set.Interval, set.Term))
		if set.Window != base.Settings.Window {
			t.Errorf("window %v", set.Window)
		}
	}
	if want := "10 s/5 min 10 s/1 h 1 min/5 min 1 min/1 h"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v: %v, want %s", err, got, want)
	}
	for _, wrong := range []sweep.Sweep{{Terms: []string{"x"}, Scheduler: "astraea"}, {Windows: []string{"x"}, Scheduler: "astraea"}, {Scheduler: "nobody"}} {
		if setups, err := wrong.Setups(base); err == nil {
			t.Errorf("%+v: %d setups", wrong, len(setups))
		}
	}
}

// Collected results equal the saved ones, and missing ones are named.
func TestCollect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "of[a]sweep*")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sweep.Collect(dir); err == nil {
		t.Error("an empty folder has results")
	}
	for _, task := range []int{2, 0} {
		r := sweep.Result{Task: task, Of: 3, Trial: score.Trial{Window: cluster.Span(task)}}
		if path, err := r.Save(dir); err != nil || filepath.Base(path) != fmt.Sprintf("trial-%05d.json", task) {
			t.Errorf("%s: %v", path, err)
		}
	}
	trials, missing, err := sweep.Collect(dir)
	if err != nil || len(trials) != 2 || trials[1].Window != 2 || missing == nil || !strings.Contains(missing.Error(), "1 of 3 tasks have left no result: 1") {
		t.Errorf("%v, missing %v: %+v", err, missing, trials)
	}
	if _, err := (&sweep.Result{Task: 1, Of: 4}).Save(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sweep.Collect(dir); err == nil || !strings.Contains(err.Error(), "the folder holds two sweeps") {
		t.Errorf("two sweeps in a folder: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "*.part")); err != nil || left != nil {
		t.Errorf("%v: %v", err, left)
	}
}

// A job array repeats the flags, with absolute paths.
func TestArray(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("history.csv", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := pflag.NewFlagSet("tune", pflag.ContinueOnError)
	f.StringSlice("terms", nil, "")
	f.String("html", "", "")
	f.Bool("json", false, "")
	if err := f.Parse([]string{"--terms", "5m,1h", "--html", "x.html", "--json"}); err != nil {
		t.Fatal(err)
	}
	text, err := (&sweep.Array{Program: "/bin/fairlease", Args: []string{"history.csv"}, Flags: f, Into: "it's", Tasks: 6}).Script()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"#SBATCH --array=0-5\n", "exec /bin/fairlease tune " + dir + "/history.csv --terms=5m,1h --workers=1 '--into=" + dir + `/it'\''s' --task=`} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "x.html") || strings.Contains(text, "--json") {
		t.Errorf("tasks are told what is for the whole sweep:\n%s", text)
	}
	if _, err := (&sweep.Array{Flags: f, Into: "a%b"}).Script(); err == nil {
		t.Error("a folder into which Slurm cannot write")
	}
}

// Without a complete setting there is none to recommend.
func TestWrite(t *testing.T) {
	var out bytes.Buffer
	if err := sweep.Write(&view.Page{Out: &out}, nil, ""); err != nil || !strings.Contains(out.String(), "No setting can be chosen") {
		t.Errorf("%v: %s", err, &out)
	}
	html := filepath.Join(t.TempDir(), "x.html")
	trials := []score.Trial{{Window: cluster.Day}}
	out.Reset()
	if err := sweep.Write(&view.Page{Out: &out, Form: view.Form{Parsable: true}}, trials, html); err != nil || strings.Contains(out.String(), "written") {
		t.Errorf("%v: %s", err, &out)
	}
	if page, err := os.ReadFile(html); err != nil || !strings.Contains(string(page), "</html>") {
		t.Errorf("%v", err)
	}
}
