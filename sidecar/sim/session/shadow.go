package session

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Assumptions replace what the journal lacks for a shadow.
type Assumptions struct {
	Times  input.Times
	Saving input.Saving
	Seed   uint64
}

// Shadow simulates a window of the journal and writes the results beside the past. date formats a
// moment.
func (s *Session) Shadow(ctx context.Context, past *store.Past, a *Assumptions, o *outlet.Outlet, date func(time.Time) string) error {
	begin, end := past.Begin.Plan.At.Time(), past.End.Plan.At.Time()
	sh := backtest.Of(past, fmt.Sprintf("%s to %s", date(begin), date(end)))
	if sh.Jobs.Compared == 0 {
		return &failure.Error{Code: failure.No, What: "no job with GPUs ran or waited in that window", Err: fmt.Errorf("%s", sh.Setup.Load.Name),
			Next: "see fairlease status and fairlease doctor, whether the daemon sees the jobs that it should; or name another window"}
	}
	if err := a.Times.Into(&sh.Setup); err != nil {
		return err
	}
	sh.Setup.Settings, sh.Setup.Seed = experiment.Fit(sh.Setup.Settings), a.Seed
	if err := a.Saving.Into(&sh.Setup); err != nil {
		return err
	}
	sh.Assume(sh.Setup.Saves)
	if err := sh.Setup.Check(); err != nil {
		return failure.Usage("%v", err)
	}
	out := s.notes(o)
	notes.Shadow(out, date, past, &sh)
	was, err := sh.Score()
	if err != nil {
		return &failure.Error{Code: failure.No, What: "the journal contradicts itself", Err: err, Next: "try a window that begins later: --since"}
	}
	past.Jobs, sh.Was.Jobs = nil, nil // the runs need the memory
	results, err := s.All(ctx, sh.Setups())
	if err != nil {
		return err
	}
	if whole(results) < len(results) {
		return &failure.Error{Code: failure.No, What: "interrupted", Err: ctx.Err(), Next: "a shorter window takes less time: --since"}
	}
	window, long := &results[0], &results[1]
	notes.Result(out, &sh.Setup, window)
	fmt.Fprintf(out, "  %d jobs finished in the window as it was, %d in the shadow; there %d more are followed beyond its end, so that\n"+
		"  completion and delay are of the same jobs: those that were over as it was, which it favours if the window is short\n\n",
		was.Jobs.Finished, window.Jobs.Finished, long.Jobs.Finished-window.Jobs.Finished)
	would := backtest.Join(window.Scores, long.Scores)
	would.Kinds = sh.Kinds(window.Kept)
	return o.Write(s.Out, []score.Scores{was, would})
}
