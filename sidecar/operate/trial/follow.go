package trial

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// submit submits the jobs of all possible trials. It fails if sbatch accepts none.
func (d *Desk) submit(ctx context.Context, o *Request, trials []*Trial) error {
	var refused error
	taken := false
	for _, x := range trials {
		if x.State != "" || ctx.Err() != nil {
			continue
		}
		id, err := o.Login.Submit(ctx, o.Sbatch(x))
		if err != nil {
			x.State, x.Note = "refused", failure.Cause(err)
			refused = cmp.Or(refused, err)
			continue
		}
		x.ID, x.Job, x.State, x.Began, taken = id, id.String(), "submitted", d.Now(), true
	}
	if refused != nil && !taken {
		return &failure.Error{Code: failure.No, What: "sbatch refused all jobs", Err: refused, Next: "try the line that --dry-run shows"}
	}
	return nil
}

// lateReports is the maximum delay until reports of an ended job are in the journal.
const lateReports = 30 * cluster.Second

// await follows the jobs to their ends, or to an interrupt, which cancels those that have not
// started.
func (d *Desk) await(ctx context.Context, o *Request, trials []*Trial, receive func(context.Context, []*Trial) (cluster.Instant, error)) {
	line := &view.Line{Out: d.Errors, Terminal: d.Terminal}
	defer line.End()
	for {
		over, last := true, cluster.Instant(0)
		for _, x := range submitted(trials) {
			d.look(ctx, o, x)
			over, last = over && x.over, max(last, x.ended)
		}
		upTo, err := receive(ctx, trials)
		if err != nil && ctx.Err() == nil {
			line.Say("the jobs' reports cannot be read: " + failure.Cause(err))
		}
		line.Set(following(trials, line.Terminal))
		if over && (err == nil && upTo >= last || d.Now().Sub(last) > lateReports) {
			return
		}
		select {
		case <-time.After(d.Poll):
		case <-ctx.Done():
			d.abandon(context.WithoutCancel(ctx), o, trials)
			return
		}
	}
}

// look updates the state of a trial's job.
func (d *Desk) look(ctx context.Context, o *Request, x *Trial) {
	if x.over {
		return
	}
	j, known, err := o.Login.Job(ctx, x.ID)
	switch {
	case err != nil: // it will be retried
		x.Note = failure.Cause(err)
	case !known:
		x.State, x.over, x.ended = "forgotten", true, d.Now()
	default:
		x.State, x.Nodes, x.exit, x.output, x.Note = j.State, j.Nodes, j.Exit, j.Output, ""
		if j.State == "PENDING" {
			x.Note = j.Reason
		}
		if j.Over() {
			x.over, x.ended = true, d.Now()
		}
	}
}

// abandon cancels the jobs that have not started.
func (d *Desk) abandon(ctx context.Context, o *Request, trials []*Trial) {
	var left []cluster.JobID
	for _, x := range unfinished(trials) {
		left = append(left, x.ID)
	}
	if len(left) == 0 {
		return
	}
	if err := o.Login.CancelWaiting(ctx, left); err != nil {
		fmt.Fprintf(d.Errors, "fairlease: jobs that have not started could not be cancelled: %s\n", failure.Cause(err))
	}
	for _, x := range submitted(trials) {
		d.look(ctx, o, x)
	}
}

// following words the state of the jobs, with their speeds if requested.
func following(trials []*Trial, speeds bool) string {
	var words []string
	for _, x := range submitted(trials) {
		word := fmt.Sprintf("%s: job %s %s", x.Model, x.Job, strings.ToLower(x.State))
		if x.Note != "" {
			word += " (" + x.Note + ")"
		} else if speeds && x.Profile != nil {
			word += fmt.Sprintf(", %.4g steps/s", x.Profile.Rate)
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}
