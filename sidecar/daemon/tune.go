package daemon

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// terms is the lease term as nightly studies choose it.
type terms struct {
	study  func(context.Context) (tune.Study, error) // nil = no tuning
	report *reporter
	busy   atomic.Bool
	tuned  *tune.Change // the newest change that determines the term in force
}

// read reads which term is in force for a turn, and ends a takeover that the configuration no longer allows.
func (x *terms) read(ctx context.Context, in Terms, c *config.Config) error {
	newest, err := in.Tuning(ctx)
	if err != nil {
		return err
	}
	rule, file := c.Tune.Rule(), c.Lease.Term.Span()
	if _, why := rule.Holds(file, newest); why != "" {
		err := in.Tune(ctx, tune.Change{Kind: tune.Ended, File: file, Before: newest.Term, Term: file, By: tune.Daemon, Why: why})
		if err != nil {
			return err
		}
		if newest, err = in.Tuning(ctx); err != nil {
			return err
		}
	}
	x.tuned = newest
	return nil
}

// told records that a round has said what has changed about the term. After an error the next round says it again.
func (x *terms) told(ctx context.Context, in Terms, r *loop.Report) {
	if r.Quiet || x.tuned == nil || x.tuned.Round > 0 {
		return
	}
	x.report.about("term", in.Told(ctx, x.tuned.ID, r.Plan.Round))
}

// tune chooses the term anew, beside the rounds, if a time of tune.at has come and this daemon leads. Without a leader
// at that time, the night is left out.
func (x *terms) tune(ctx context.Context, inForce func() *config.Config, lead *Leadership) {
	if x.study == nil || lead == nil || !inForce().Tune.Due(time.Now().Truncate(time.Minute)) || !x.busy.CompareAndSwap(false, true) {
		return
	}
	defer x.busy.Store(false)
	leading, cancel := acting(ctx, lead)
	defer cancel()
	began := time.Now()
	change, err := x.night(leading, inForce, lead)
	if err == nil || ctx.Err() == nil {
		x.report.about("tune", err)
	}
	if change != nil {
		x.report.log.Info().Str("decision", string(change.Kind)).Dur("took_ms", time.Since(began)).Msg(change.Words())
	}
}

// night studies the last days, decides and records the decision; nil = tuning was switched off meanwhile. A panic is an
// error. The configuration and the record are read after the study, since that may take hours.
func (x *terms) night(ctx context.Context, inForce func() *config.Config, lead *Leadership) (change *tune.Change, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			change, err = nil, loop.BreakdownOf(cause)
		}
	}()
	study, err := x.study(ctx)
	if err != nil {
		return nil, fmt.Errorf("the last days could not be studied: %w", err)
	}
	c, now := inForce(), cluster.InstantOf(time.Now())
	rule := c.Tune.Rule()
	if rule.Off {
		return nil, nil
	}
	record, err := lead.Terms.Tunings(ctx, now.Add(-rule.Rest).Time(), tune.MostChanges)
	if err != nil {
		return nil, err
	}
	rules := c.Rules()
	n := tune.Night{Now: now, File: c.Lease.Term.Span(), Rule: rule, Take: rule.Apply && len(rules.Acting()) > 0, By: tune.Daemon, Study: study, Record: record}
	decided := n.Decide()
	if err := lead.Terms.Tune(ctx, decided); err != nil {
		return nil, err
	}
	return &decided, nil
}
