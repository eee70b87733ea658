package sim

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Run runs the loop on a virtual cluster until the moment end or, with a feed, until it is
// drained and the loop has seen that. The first turn is immediate. Later ones are at multiples of
// the interval after a change, or when the last plan said that time alone changes a decision.
// each, if not nil, is called after every turn that was not quiet. It may change the cluster (a
// change of rules or overrides applies at the next turn, but causes none). An error of a turn, or
// the end of ctx, ends the run.
func Run(ctx context.Context, v *Virtual, l *loop.Loop, interval cluster.Span, end cluster.Instant, each func(loop.Report)) error {
	for v.Now() < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		report, err := l.Turn(ctx)
		if err != nil {
			return err
		}
		if each != nil && !report.Quiet {
			each(report)
		}
		if v.Drained() && !v.changed {
			return nil
		}
		v.pass(interval, l.Next(), end)
	}
	return nil
}

// pass advances the time to the next useful turn: the first multiple of the interval after now at
// which something has changed, or next has come (0 = never).
func (v *Virtual) pass(interval cluster.Span, next, end cluster.Instant) {
	soonest := ceil(v.now+1, interval)
	stop := end
	if next > 0 {
		stop = min(stop, max(soonest, ceil(next, interval)))
	}
	for !v.changed {
		at := v.nextEvent()
		if at == 0 || at > stop {
			break
		}
		v.step(at)
	}
	if v.changed {
		stop = min(stop, max(soonest, ceil(v.now, interval)))
	}
	v.Advance(stop)
}

// ceil gives the first multiple of step at t or later.
func ceil(t cluster.Instant, step cluster.Span) cluster.Instant {
	s := cluster.Instant(step)
	return (t + s - 1) / s * s
}
