package daemon

import (
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// audits measures the fairness of the policy's answers once a day, beside the rounds.
type audits struct {
	make   func(cluster.Snapshot) (cluster.Audit, bool) // nil = no audits
	report *reporter
	day    cluster.Instant // the day that has an audit, or is about to have one
}

// due tells whether the day of a round has no audit yet. From then on it is about to have one.
func (x *audits) due(last *cluster.Snapshot) bool {
	day := last.Now - last.Now%cluster.Instant(cluster.Day)
	due := x.make != nil && last.Allocation != nil && day != x.day
	if due {
		x.day = day
	}
	return due
}

// audit makes an audit of a round and writes it down. It tells whether that may not be tried again on the same day. A panic is
// given to keep, and ends the day's attempts.
func (x *audits) audit(ctx context.Context, lead *Leadership, s cluster.Snapshot, keep func(cluster.Snapshot, *loop.Breakdown)) (done bool) {
	began := time.Now()
	defer func() {
		if cause := recover(); cause != nil {
			keep(s, loop.BreakdownOf(cause))
			done = true
		}
	}()
	a, ok := x.make(s)
	if !ok {
		return true
	}
	err := lead.Audit(ctx, a)
	if x.report.about("audit", err); err != nil {
		return false
	}
	x.report.log.Info().Str("policy", a.Policy).Int("misreports", len(a.Misreports)).Dur("took_ms", time.Since(began)).Msg("division audited")
	return true
}
