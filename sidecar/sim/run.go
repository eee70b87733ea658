package sim

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Run lets the loop govern a virtual cluster until the moment end, or, where it is fed,
// until it is drained and the loop has seen that. There is a turn at once, and then at
// a multiple of the interval wherever something has changed or the last plan said that
// time alone changes something. each, if not nil, is called after every turn that was
// not quiet; it may change the cluster (a rule or an order that it changes is heeded in
// the next turn that there is anyway). An error of a turn, or the end of ctx, ends the run.
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

// pass lets time pass to the next moment at which a turn is worth its while: the
// first multiple of the interval after now at which something has changed, or at
// which next has come (0 = never).
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
