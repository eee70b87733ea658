// Package session runs experiments interactively: in parallel, with a progress bar, and with
// notes beside the scores. An interrupt ends an experiment with the results so far.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/show/failure"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/input"
	"github.com/fairlease/fairlease/sidecar/sim/notes"
	"github.com/fairlease/fairlease/sidecar/sim/outlet"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Session is the environment and the output of experiments.
type Session struct {
	Out, Errors io.Writer
	Terminal    io.Writer // for the bar; nil = none
	Workers     int       // parallel runs; 0 = number of cores
}

// notes gives the destination of notes: beside scores for people, else separate from them.
func (s *Session) notes(o *outlet.Outlet) io.Writer {
	if o.CSV || o.JSON {
		return s.Errors
	}
	return s.Out
}

// Compare runs setups of a world and writes the results.
func (s *Session) Compare(ctx context.Context, w *input.World, setups []experiment.Setup, o *outlet.Outlet) error {
	out := s.notes(o)
	w.Tell(out, &setups[0])
	fmt.Fprintf(out, "  interval %v, term %v\n", config.Duration(setups[0].Settings.Interval), config.Duration(setups[0].Settings.Term))
	results, err := s.All(ctx, setups)
	if err != nil {
		return err
	}
	var scores []score.Scores
	for i := range results {
		if results[i].Scheduler == "" {
			continue // the interrupt came before it began
		}
		notes.Result(out, &setups[i], &results[i])
		scores = append(scores, results[i].Scores)
	}
	fmt.Fprintln(out)
	if err := o.Write(s.Out, scores); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &failure.Error{Code: failure.No, What: "interrupted", Err: fmt.Errorf("%d of %d runs had come to their end", whole(results), len(results)),
			Next: "what is shown above is how far it had come; --until ends all runs at the same time"}
	}
	return nil
}

// All runs setups on all cores, with a progress bar.
func (s *Session) All(ctx context.Context, setups []experiment.Setup) ([]experiment.Result, error) {
	defer moreMemory()()
	bar := view.NewBar(s.Terminal, time.Now())
	results, err := experiment.All(ctx, setups, s.Workers, func(over, of int) { bar.Set(over, of, time.Now()) })
	bar.End()
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, &failure.Error{Code: failure.No, What: "the simulation cannot go on", Err: err}
	}
	return results, err
}

// whole counts the complete runs.
func whole(results []experiment.Result) int {
	n := 0
	for i := range results {
		if results[i].Scheduler != "" && !results[i].CutShort {
			n++
		}
	}
	return n
}

// moreMemory lets a simulation, whose memory is mostly short-lived, use five times the live
// memory to spend less time on garbage collection.
func moreMemory() (restore func()) {
	was := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(was) }
}
