package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/session"
	"github.com/fairlease/fairlease/sidecar/sim/sweep"
)

// small is a day of generated jobs on two nodes.
func small(t *testing.T) (*input.World, experiment.Setup) {
	t.Helper()
	w := &input.World{Generate: "gavel", Nodes: "2x8", Length: "6h", Tenants: 2, Load: 1, Weights: "equal", Repair: "1h", Saving: input.Saving{Saves: "never", By: "kind"}}
	s, err := w.Setup(config.Default(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Scheduler = "fifo"
	return w, s
}

// Scores for programs are alone on the output; notes are separate.
func TestCompare(t *testing.T) {
	w, setup := small(t)
	for _, forPrograms := range []bool{false, true} {
		var out, errs bytes.Buffer
		s := &session.Session{Out: &out, Errors: &errs}
		if err := s.Compare(t.Context(), w, []experiment.Setup{setup}, &outlet.Outlet{JSON: forPrograms}); err != nil {
			t.Fatal(err)
		}
		notes := out.String()
		if forPrograms {
			notes = errs.String()
			var scores []score.Scores
			if err := json.Unmarshal(out.Bytes(), &scores); err != nil || len(scores) != 1 || scores[0].Jobs.Finished == 0 {
				t.Errorf("%v\n%s", err, &out)
			}
		}
		if !strings.Contains(notes, "like gavel: ") || !strings.Contains(notes, "  interval ") {
			t.Errorf("for programs %v: %s", forPrograms, notes)
		}
	}
}

// An interrupt ends an experiment with the results so far, and is an error.
func TestInterrupted(t *testing.T) {
	w, setup := small(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	s := &session.Session{Out: &out, Errors: &out}
	if err := s.Compare(ctx, w, []experiment.Setup{setup}, &outlet.Outlet{}); err == nil || !strings.Contains(err.Error(), "0 of 1 runs had come to their end") {
		t.Error(err)
	}
	if err := s.Sweep(ctx, w, []experiment.Setup{setup}, &view.Page{Out: &out}, ""); err == nil || !strings.Contains(err.Error(), "0 of 1 settings") {
		t.Error(err)
	}
	if err := s.Task(ctx, []experiment.Setup{setup}, 0, t.TempDir()); err == nil || !strings.Contains(err.Error(), "the task has left no result") {
		t.Error(err)
	}
}

// Tasks leave the results of a sweep in one run.
func TestTask(t *testing.T) {
	_, setup := small(t)
	dir := filepath.Join(t.TempDir(), "new")
	var out bytes.Buffer
	s := &session.Session{Out: &out, Errors: &out}
	for task := range 2 {
		if err := s.Task(t.Context(), []experiment.Setup{setup, setup}, task, dir); err != nil {
			t.Fatal(err)
		}
	}
	trials, missing, err := sweep.Collect(dir)
	if err != nil || missing != nil || len(trials) != 2 || trials[0].Scores.Jobs.Finished == 0 {
		t.Errorf("%v, missing %v: %+v", err, missing, trials)
	}
	if _, err := os.Stat(filepath.Join(dir, "trial-00001.json")); err != nil {
		t.Error(err)
	}
	if err := s.Task(t.Context(), []experiment.Setup{setup}, 0, ""); err == nil {
		t.Error("a task without a folder")
	}
}
