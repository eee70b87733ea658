package rehearsal

import (
	"context"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

// About is the help of the command.
const About = `Submit a batch script, give it a lease of a minute, requeue it as fairlease would, and say whether it went on from
its save, whether it lost its output, or whether it ended by itself; and what to change. The job is cancelled at the end.

It needs the rights of a user who may submit the script, and no daemon. Whether the script resumed is told by the numbers
in its output, as in "step 1200" or "epoch: 3"; a script that prints none cannot be judged.

  RESUMED   yes, no or unknown: whether it went on from a save
  OUTPUT    kept, lost or unknown
  BEFORE    the last number before the requeue
  AFTER     the first one afterwards
  SIBLINGS  tasks of the same array that its requeue of itself took down
  CHANGE    what to change in the script, most important first

Of an array, the first two tasks are tried; one of them has the notice.

The exit code is 1 when the script does not resume, or something cannot be told.`

// Sleep waits, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Run checks and tries the script, and shows the findings.
func (r *Rehearsal) Run(ctx context.Context, p *view.Page) error {
	if err := r.Check(); err != nil {
		return err
	}
	f, err := r.Try(ctx)
	if err != nil {
		return err
	}
	if p.JSON {
		err = p.Encode(f)
	} else {
		f.show(p)
		if f.Good() {
			p.Printf("It can be stopped without a loss.%s\n", r.advice())
		}
	}
	if err == nil && !f.Good() {
		return failure.Quiet(failure.No)
	}
	return err
}

func (f *Findings) show(p *view.Page) {
	p.Printf("resumed  %s\n", f.Resumed)
	p.Printf("output   %s\n", map[string]string{"yes": "kept", "no": "lost"}[f.Kept]+map[bool]string{true: "unknown"}[f.Kept == "unknown"])
	if f.Before != "" {
		p.Printf("before   %s\nafter    %s\n", f.Before, f.After)
	}
	if f.Ended != "" {
		p.Printf("ended    %s, before the requeue\n", f.Ended)
	}
	if len(f.Siblings) > 0 {
		p.Printf("siblings %s, requeued with it\n", strings.Join(f.Siblings, ", "))
	}
	for _, change := range f.Changes {
		p.Printf("change   %s\n", change)
	}
}

// advice says how the script tells fairlease what was found; "" = it does so already.
func (r *Rehearsal) advice() string {
	switch {
	case r.declares:
		return ""
	case r.Signal != "":
		return " Say so in the script: #SBATCH --comment=saves=notice"
	}
	return " Say so in the script: #SBATCH --comment=saves=term"
}
