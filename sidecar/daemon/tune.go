package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
)

// ordered is a journal that reads the term in force, and counts what budgets are left, with the orders in force.
type ordered struct {
	loop.Journal
	daemon *Daemon
}

// Overrides implements loop.Journal.
func (o ordered) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	if err := o.daemon.readTerm(ctx); err != nil {
		return nil, err
	}
	if err := o.daemon.spend(ctx, now); err != nil {
		return nil, err
	}
	return o.Journal.Overrides(ctx, now)
}

// Commit implements loop.Journal.
func (o ordered) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	began := time.Now()
	defer func() { o.daemon.Meter.Phase(metrics.Commit, time.Since(began)) }()
	return o.Journal.Commit(ctx, snap, plan)
}

// readTerm reads which term is in force for a turn, and ends a takeover that the configuration no longer allows.
func (d *Daemon) readTerm(ctx context.Context) error {
	newest, err := d.lead.Terms.Tuning(ctx)
	if err != nil {
		return err
	}
	c := d.config.Load()
	rule, file := c.Tune.Rule(), c.Lease.Term.Span()
	if _, why := rule.Holds(file, newest); why != "" {
		err := d.lead.Terms.Tune(ctx, tune.Change{Kind: tune.Ended, File: file, Before: newest.Term, Term: file, By: tune.Daemon, Why: why})
		if err != nil {
			return err
		}
		if newest, err = d.lead.Terms.Tuning(ctx); err != nil {
			return err
		}
	}
	d.tuned = newest
	return nil
}

// told records that a round has said what has changed about the term. After an error the next round says it again.
func (d *Daemon) told(ctx context.Context, r *loop.Report) {
	if r.Quiet || d.tuned == nil || d.tuned.Round > 0 {
		return
	}
	if err := d.lead.Terms.Told(ctx, d.tuned.ID, r.Plan.Round); err != nil {
		d.once("term", err)
		return
	}
	d.said.clear("term")
}

// tune chooses the term anew, beside the rounds, if a time of tune.at has come and this daemon leads. Without a leader
// at that time, the night is left out.
func (d *Daemon) tune(ctx context.Context) {
	c, lead := d.config.Load(), d.leads.Load()
	if d.Study == nil || lead == nil || !c.Tune.Due(time.Now().Truncate(time.Minute)) || !d.nights.CompareAndSwap(false, true) {
		return
	}
	defer d.nights.Store(false)
	leading, cancel := acting(ctx, lead)
	defer cancel()
	began := time.Now()
	change, err := d.night(leading, lead)
	if err != nil {
		if ctx.Err() == nil {
			d.once("tune", err)
		}
		return
	}
	d.said.clear("tune")
	if change != nil {
		d.Log.Info().Str("decision", string(change.Kind)).Dur("took_ms", time.Since(began)).Msg(change.Words())
	}
}

// night studies the last days, decides and records the decision; nil = tuning was switched off meanwhile. A panic is an
// error. The configuration and the record are read after the study, since that may take hours.
func (d *Daemon) night(ctx context.Context, lead *Leadership) (change *tune.Change, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			change, err = nil, loop.BreakdownOf(cause)
		}
	}()
	study, err := d.Study(ctx)
	if err != nil {
		return nil, fmt.Errorf("the last days could not be studied: %w", err)
	}
	c, now := d.config.Load(), cluster.InstantOf(time.Now())
	rule := c.Tune.Rule()
	if rule.Off {
		return nil, nil
	}
	record, err := lead.Terms.Tunings(ctx, now.Add(-rule.Rest).Time(), tune.MostChanges)
	if err != nil {
		return nil, err
	}
	n := tune.Night{Now: now, File: c.Lease.Term.Span(), Rule: rule, Take: rule.Apply && len(d.acting()) > 0, By: tune.Daemon, Study: study, Record: record}
	decided := n.Decide()
	return &decided, lead.Terms.Tune(ctx, decided)
}
