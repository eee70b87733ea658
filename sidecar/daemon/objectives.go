package daemon

import (
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// objectives counts how the site's objectives are kept, and writes that down every minute.
type objectives struct {
	meter   *metrics.Meter
	counts  objective.Counts // that are not written down yet
	written time.Time
}

// turned counts a turn, and what it decided of a snapshot. err is its error; nil = it succeeded.
func (o *objectives) turned(r *loop.Report, err error, s *cluster.Snapshot, targets objective.Targets, took, interval time.Duration) {
	var counts objective.Counts
	counts.Beats(cluster.SpanOf(took), cluster.SpanOf(interval), err != nil)
	if err == nil && !r.Quiet {
		counts.Decided(s, &r.Plan, targets.Within)
	}
	for _, c := range counts {
		o.counts.Add(c.Objective, c.Tenant, c.Total, c.Bad)
	}
	o.meter.Objectives(counts, targets)
}

// write writes the counts down if a minute has passed. Counts that cannot be written wait for the next time.
func (o *objectives) write(ctx context.Context, in Objectives, targets objective.Targets) error {
	if len(o.counts) == 0 || time.Since(o.written) < time.Minute {
		return nil
	}
	if err := in.Count(ctx, o.counts, targets); err != nil {
		return err
	}
	o.counts, o.written = nil, time.Now()
	return nil
}
