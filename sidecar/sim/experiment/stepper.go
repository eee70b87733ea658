package experiment

import (
	"context"
	"errors"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// Stepper is a run that stops at moments of the caller's choice, for measurements beyond a
// Result: the caller observes the cluster in between, and receives all events.
type Stepper struct {
	World *sim.Virtual // at the moment that was reached
	Turns int          // rounds that were not quiet

	run   *run
	close func()
}

// Open prepares a run of a setup. It calls see for all events of jobs. The caller closes the
// Stepper.
func Open(s *Setup, see func(sim.Event)) (*Stepper, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r, err := newRun(s)
	if err != nil {
		return nil, err
	}
	watch := r.world.Watch
	r.world.Watch = func(e sim.Event) {
		watch(e)
		see(e)
	}
	return &Stepper{World: r.world, run: r, close: r.world.Feed(s.arrivals(&r.result.Refused))}, nil
}

// To continues until a moment, counted from Start. It returns an error early when ctx ends or
// jobs wait for ever.
func (p *Stepper) To(ctx context.Context, until cluster.Span) error {
	r := p.run
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := sim.Run(inner, p.World, r.loop, r.setup.Settings.Interval, Start.Add(until), func(report loop.Report) {
		p.Turns++
		r.witness.turn(&report.Plan, nil)
		if r.waits() {
			stop(errStuck)
		}
	})
	if errors.Is(context.Cause(inner), errStuck) {
		return r.stuck()
	}
	return err
}

// Preview gives the input and the output of a round at the moment that was reached. The run is not changed. The snapshot is valid
// until the next call.
func (p *Stepper) Preview(ctx context.Context) (cluster.Snapshot, cluster.Plan, error) {
	return p.run.loop.Preview(ctx)
}

// Close ends the run.
func (p *Stepper) Close() { p.close() }
