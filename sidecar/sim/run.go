package sim

import (
	"context"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Run lets the loop govern a virtual cluster until the moment end, with a turn
// at every multiple of the interval. each, if not nil, is called after every turn
// that was not quiet; it may change the cluster. An error of a turn ends the run.
func Run(ctx context.Context, v *Virtual, l *loop.Loop, interval cluster.Span, end cluster.Instant, each func(loop.Report)) error {
	for v.Now() < end {
		report, err := l.Turn(ctx)
		if err != nil {
			return err
		}
		if each != nil && !report.Quiet {
			each(report)
		}
		step := cluster.Instant(interval)
		v.Advance(min(v.Now()-v.Now()%step+step, end))
	}
	return nil
}
