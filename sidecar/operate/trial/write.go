package trial

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// write writes the results of the trials.
func write(ctx context.Context, p *view.Page, o *Request, trials []*Trial) error {
	slowest := 0.0
	all := true
	for _, x := range trials {
		if x.Profile != nil && (slowest == 0 || x.Profile.Rate < slowest) {
			slowest = x.Profile.Rate
		}
	}
	for _, x := range trials {
		switch {
		case x.Profile != nil:
			x.Profile.Speedup = x.Profile.Rate / slowest
		case x.State == "skipped" || x.State == "refused" || !o.Wait:
		default:
			x.Note = x.unmeasured()
		}
		all = all && (x.Profile != nil || !o.Wait && x.Job != "")
	}
	if err := p.List(table(p, trials), trials); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted(trials)
	}
	if !o.Wait && !p.JSON && !p.Parsable {
		p.Printf("\nresults: fairlease profiles %s\n", o.Kind)
	}
	if !all {
		return failure.Quiet(failure.No)
	}
	return nil
}

// unmeasured says why a job's speed is unknown.
func (x *Trial) unmeasured() string {
	see := ""
	if x.output != "" {
		see = "; see " + x.output
	}
	switch {
	case x.State == "PENDING":
		return strings.TrimSuffix("it waits: "+x.Note, ": ")
	case !x.over:
		return "it has not reported twice, ten seconds apart"
	case strings.HasPrefix(x.State, "CANCELLED") && x.Nodes == "":
		return "cancelled before it started"
	case x.State == "COMPLETED" || x.State == "TIMEOUT":
		return "it did not report twice, ten seconds apart" + see
	case x.State == "forgotten":
		return "Slurm no longer knows its job"
	}
	return "its job ended as " + x.State + ", exit code " + cmp.Or(x.exit, "unknown") + see
}

// interrupted lists the remaining jobs.
func interrupted(trials []*Trial) error {
	var left []string
	for _, x := range unfinished(trials) {
		left = append(left, x.Job)
	}
	f := &failure.Error{Code: failure.No, What: "interrupted: jobs that had not started are cancelled, and none is left"}
	if len(left) > 0 {
		f.What = "interrupted: jobs that had not started are cancelled; left " + strings.Join(left, ", ")
		f.Next = "scancel " + strings.Join(left, " ") + " ends them; their reports count all the same"
	}
	return f
}

func table(p *view.Page, trials []*Trial) *view.Table {
	t := &view.Table{Head: []string{"MODEL", "PARTITION", ">JOB", "STATE", "NODES", ">STEPS/S", ">SPEEDUP", ">SAMPLES", ">SPREAD", ">AGE", "NOTE"}}
	for _, x := range trials {
		cells := []string{x.Model, x.Partition, x.Job, strings.ToLower(x.State), x.Nodes, "", "", "", "", "", x.Note}
		if m := x.Profile; m != nil {
			copy(cells[5:], []string{fmt.Sprintf("%.4g", m.Rate), fmt.Sprintf("%.2f", m.Speedup), strconv.Itoa(m.Samples), fmt.Sprintf("%.1f%%", 100*m.Spread), view.Span(p.Form, max(p.Now.Sub(m.At), 0))})
		}
		t.Add(cells...)
	}
	return t
}
