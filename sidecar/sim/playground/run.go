package playground

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Schedulers are those that a page compares: fairlease, plain Slurm, and Slurm's own preemption.
func Schedulers() []string { return []string{"astraea", "slurm-multifactor", "slurm-preempt"} }

// Outcome is a run of a scheduler.
type Outcome struct {
	Scores score.Scores `json:"scores"`
	Notes  []string     `json:"notes"` // jobs that the scores leave out
}

// Run simulates a scheduler. told is called with the number of ended jobs as it grows.
func (w *World) Run(ctx context.Context, c *Choice, scheduler string, told func(over int)) (Outcome, error) {
	s, err := w.setup(c, scheduler)
	if err != nil {
		return Outcome{}, err
	}
	r, err := experiment.Run(ctx, s, told)
	if err != nil {
		return Outcome{}, err
	}
	o := Outcome{Scores: r.Scores}
	if n := r.Refused.Jobs; n > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: %d jobs were not submitted; %s", scheduler, n, r.Refused.Named[0]))
	}
	if r.Endless > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: the run ends after %s: %d jobs would never end, for they are requeued again and again and begin anew each time", scheduler, r.To.Sub(r.From), r.Endless))
	}
	if r.TimedOut > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: %d jobs reached their time limit here, but not in the trace", scheduler, r.TimedOut))
	}
	return o, nil
}

// Report is the scores of several runs, for a page and for files.
type Report struct {
	Head string `json:"head"` // a table of the measures that people look at first, as HTML
	Body string `json:"body"` // all of a report below its title, as HTML
	File string `json:"file"` // the page of `fairlease simulate --html`
	JSON string `json:"json"` // the output of `fairlease simulate --json`
}

// Write writes the report of scores, which are a list in JSON.
func Write(scores []byte) (Report, error) {
	var runs []score.Scores
	if err := json.Unmarshal(scores, &runs); err != nil {
		return Report{}, fmt.Errorf("the scores cannot be read: %w", err)
	}
	var head, body, file, list bytes.Buffer
	for _, err := range []error{report.Head(&head, runs), report.Body(&body, runs), report.HTML(&file, "fairlease: schedulers compared", runs), report.JSON(&list, runs)} {
		if err != nil {
			return Report{}, err
		}
	}
	return Report{Head: head.String(), Body: strings.TrimSpace(body.String()), File: file.String(), JSON: list.String()}, nil
}
