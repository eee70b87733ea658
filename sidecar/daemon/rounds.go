package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/store"
)

// rounds makes rounds while this daemon leads, and relays heartbeats while another one does. It is for one goroutine at a time.
type rounds struct {
	cluster loop.Cluster
	engine  func(cluster.Snapshot) cluster.Plan
	divide  func(cluster.AllocationRequest) cluster.Allocation
	notes   func() []string // nil = nothing ever
	inForce func() *config.Config
	report  *reporter
	single  bool // one round only: an answer of divide after this round would be lost

	candidate candidate
	cells     sight
	progress  progress
	gauges    gauges
	terms     terms
	budgets   budgets
	goals     objectives
	beats     heartbeats
	record    administration
	turns     turns
	pause     pause

	loop *loop.Loop
	last cluster.Snapshot // of the last round
}

// interval is the time between two rounds.
func (x *rounds) interval() time.Duration { return x.inForce().Interval.Span().Duration() }

// ttl is how long gates last without this daemon.
func (x *rounds) ttl() time.Duration { return x.inForce().Gate.TTL.Span().Duration() }

// acting lists the partitions that are acted on.
func (x *rounds) acting() []string {
	rules := x.inForce().Rules()
	return rules.Acting()
}

// gated gives the partitions that are acted on, as of the last round: the submit plugin may gate their jobs.
func (x *rounds) gated() []string {
	if x.tripped() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.acting()), func(name string) bool {
		return slices.ContainsFunc(x.last.Preempted, func(p cluster.Preempted) bool { return p.Partition == name })
	})
}

// tripped tells whether the breaker was open in the last round.
func (x *rounds) tripped() bool { return x.last.Breaker.Open(&x.last.Resumed) }

// beat makes a round, unless rounds pause. It returns an error only if the daemon should end.
func (x *rounds) beat(ctx context.Context) error {
	now := time.Now()
	if ctx.Err() != nil || now.Before(x.pause.until) {
		return nil
	}
	defer x.turns.begin(now)()
	turning, cancel := outlive(ctx, shutdownLimit)
	defer cancel()
	err := x.guarded(turning)
	switch {
	case errors.Is(err, ErrTaken):
		x.report.meter.Well(metrics.Standby, firstLine(err.Error()), x.interval())
	case err != nil:
		x.report.meter.Ill(err)
	default:
		x.report.meter.Well(metrics.Leader, "", x.interval())
	}
	if err == nil || errors.Is(err, ErrTaken) {
		x.report.about("daemons", x.candidate.attend(turning, x.interval()))
	}
	x.turns.waits.Store(nil)
	return x.judge(turning, err)
}

// judge draws the consequences of a round's error. It returns an error only if the daemon should end.
func (x *rounds) judge(ctx context.Context, err error) error {
	var broke *loop.Breakdown
	switch {
	case errors.Is(err, ErrSchema), errors.Is(err, store.ErrSchema), errors.Is(err, ErrCells), errors.Is(err, ErrCluster):
		return err
	case errors.Is(err, ErrTaken):
		x.report.succeeds(x.pause)
		x.pause = pause{}
		x.report.waits(err)
		switch err := x.relay(ctx); {
		case errors.Is(err, ErrCluster):
			return err
		case err != nil:
			x.report.meter.Ill(err)
			x.fail(err)
		}
		looked := time.Now()
		x.turns.waits.Store(&looked)
	case errors.Is(err, ErrStranger):
		x.tidy()
		x.resign() // a daemon of the right cluster may lead
		x.fail(err)
	case errors.Is(err, errDeposed):
		x.report.log.Error().Err(err).Msg("stopped acting")
		x.leave()
		x.tidy()
	case errors.Is(err, store.ErrYounger):
		// Nothing was started. The daemon's memory is of another journal: it begins again, in a new term.
		x.report.log.Error().Err(err).Msg("stopped acting")
		x.resign()
		x.tidy()
	case errors.As(err, &broke):
		// Nothing was started. Then all waiting jobs go to Slurm: gates expire, and no new ones
		// are set.
		x.loop = nil
		x.tidy()
		x.report.broken(broke)
		x.fail(err)
	case err != nil:
		x.loop = nil // changes seen in the failed turn are still news to the next
		x.fail(err)
	default:
		x.report.succeeds(x.pause)
		x.pause = pause{}
	}
	return nil
}

// fail logs a failed round, and pauses.
func (x *rounds) fail(err error) {
	x.pause.fail(x.interval(), x.ttl())
	x.report.failed(err, x.pause.failures)
}

// outlive gives a context for one turn: it lasts turnLimit, and outlives ctx by at most grace.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	turning, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnLimit)
	unwatch := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(grace, cancel)
		context.AfterFunc(turning, func() { end.Stop() })
	})
	return turning, func() { unwatch(); cancel() }
}

// guarded makes a round, and turns a panic in it into an error.
func (x *rounds) guarded(ctx context.Context) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = loop.BreakdownOf(cause)
		}
	}()
	return x.round(ctx)
}

// round makes one turn if this daemon has the lead or can get it.
func (x *rounds) round(ctx context.Context) error {
	began := time.Now()
	if err := x.acquire(ctx); err != nil {
		return err
	}
	report, err := x.turn(ctx)
	took := time.Since(began)
	x.report.meter.Round(&report, err, took)
	x.goals.turned(&report, err, &x.last, x.inForce().Objectives.Targets(), took, x.interval())
	if x.notes != nil {
		x.report.notes(x.notes())
	}
	if err == nil || len(report.Outcomes) > 0 {
		const patience = 10 // intervals
		x.report.round(&report, took, x.turns.missed.Swap(0), patience*cluster.SpanOf(x.interval()))
	}
	if err != nil {
		return err
	}
	if !x.tripped() { // else standbys would relay heartbeats
		x.candidate.lead.Turned()
	}
	x.report.about("objectives", x.goals.write(ctx, x.candidate.lead.Objectives, x.inForce().Objectives.Targets()))
	x.report.about("heartbeat", errors.Join(x.beats.beat(x.gated(), x.ttl(), time.Now()), x.beats.budgets(x.left())))
	return nil
}

// left is the list of budgets that refuse jobs; nil = no budget does, jobs are only observed, or some are left alone (canary_jobs), which the submit plugin cannot tell.
func (x *rounds) left() []byte {
	c := x.inForce()
	if rules := c.Rules(); !x.tripped() && len(rules.Acting()) > 0 && !rules.Selects() && slices.ContainsFunc(c.Spending(), func(b spending.Budget) bool { return b.AtEnd == spending.Refuse }) {
		_, of := loop.Tenants(x.budgets.accounts, &rules)
		return x.budgets.list(&x.last, of)
	}
	return nil
}

// acquire makes sure that this daemon has the lead for now.
func (x *rounds) acquire(ctx context.Context) error {
	news, err := x.candidate.acquire(ctx)
	if news {
		x.report.said.clear("leader")
		x.beats.beats, x.beats.list = append([]string(nil), x.inForce().Partitions...), true // whatever an earlier process left
		x.report.log.Info().Msg(saysLeads)
	}
	return err
}

// leave discards the lead and all state that depends on it.
func (x *rounds) leave() {
	x.candidate.leave()
	x.loop, x.budgets = nil, budgets{meter: x.budgets.meter}
	x.record.config = nil
	x.progress.leases.Store(nil)
}

// resign gives up the lead, if there is one.
func (x *rounds) resign() {
	lead := x.candidate.lead
	x.leave()
	if err := resign(lead); err != nil {
		x.report.log.Warn().Err(err).Msg("leader")
	}
}

// relay writes a standby's heartbeats while turns of the leading daemon succeed: slurmctld and its
// submit plugin may run on the standby's host. They are never removed but expire, since the
// leader's heartbeats may be in the same folder. Only turns count that were seen to come, by this
// host's clock.
func (x *rounds) relay(ctx context.Context) error {
	const missed = 3
	if err := x.candidate.probe(ctx); err != nil {
		return err
	}
	if !x.candidate.kin.sure {
		if x.report.said.is("kin", "unknown") {
			x.report.log.Info().Msg("no heartbeat is relayed yet: no job of this Slurm tells whether it is the journal's cluster")
		}
		return nil
	}
	lately, err := x.candidate.follow(ctx, missed*x.interval()+keepEvery)
	if lately {
		err = x.beats.touch(x.acting(), x.ttl(), time.Now())
	}
	x.report.about("heartbeat", err)
	return nil
}

// turn makes one turn of the loop with the lead.
func (x *rounds) turn(ctx context.Context) (loop.Report, error) {
	lead, c := x.candidate.lead, x.inForce()
	if x.loop == nil {
		journal, err := record(lead.Journal, c.Files.State, lead.Term, &x.candidate.top, x.report.restored)
		if err != nil {
			return loop.Report{}, err
		}
		x.loop = &loop.Loop{Cluster: watched{x.cluster, x}, Journal: ordered{journal, x}, Decide: x.decide, Divide: x.divide, Beside: !x.single,
			Schedulers: schedulers(x.report), Past: past(ctx, x.cluster, c.Models.Speedups.History.Span(), &x.report.log), Configure: x.configure, Keep: x.keep}
	}
	act, cancel := acting(ctx, lead)
	defer cancel()
	report, err := x.loop.Turn(act)
	if lost(lead) {
		return report, errDeposed
	}
	if cause := context.Cause(act); err != nil && errors.Is(cause, errDeposed) {
		return report, fmt.Errorf("%w: %w", cause, err)
	}
	if err == nil {
		if report.Quiet {
			x.report.about("record", x.record.quiet(act, lead.Records, x.candidate.top.round))
		}
		x.terms.told(act, lead.Terms, &report)
		x.budgets.spent(&report, len(x.inForce().Budgets))
		x.progress.publish(&x.last, &report)
	}
	return report, err
}

// decide calls the engine, and keeps its input.
func (x *rounds) decide(s cluster.Snapshot) cluster.Plan {
	x.last = s
	x.record.seen.Store(&seen{s, x.terms.tuned, slices.Clone(x.budgets.book)})
	if x.inForce().Telemetry.GPU.On() {
		x.gauges.hold(&s)
	}
	began := time.Now()
	defer func() { x.report.meter.Phase(metrics.Decide, time.Since(began)) }()
	return x.engine(s)
}

func (x *rounds) configure() (loop.Rules, cluster.Settings) {
	now := x.inForce()
	x.record.propose(now, x.candidate.lead.Records)
	x.candidate.lead.Notices.Rule(noticeRules(&now.Notices))
	c, settings := now.At(time.Now(), x.terms.tuned)
	rules := c.Rules()
	rules.Budgets, rules.Resumed = x.budgets.book.States(), x.record.resumed
	return rules, settings
}

// tidy removes the heartbeats if this daemon does not act.
func (x *rounds) tidy() {
	if err := errors.Join(x.beats.stop(nil), x.beats.budgets(nil)); err != nil {
		x.report.once("heartbeat", err)
	}
}

// watched is the cluster of rounds: a look also has what jobs and GPUs report, and fails if it contradicts the journal or the
// configuration.
type watched struct {
	loop.Cluster
	rounds *rounds
}

// Observe implements loop.Cluster.
func (w watched) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	began, x := time.Now(), w.rounds
	seen, err := w.Cluster.Observe(ctx, since)
	took := time.Since(began)
	x.report.meter.Phase(metrics.Observe, took)
	seen.Latency = cluster.SpanOf(took)
	if err != nil {
		return seen, err
	}
	if err := x.candidate.meets(ctx, &seen, began); err != nil {
		return seen, err
	}
	c := x.inForce()
	x.budgets.looked, x.budgets.accounts, x.budgets.members = began, seen.Accounts, seen.Members
	x.progress.hear(&seen)
	x.gauges.measure(&seen, c.Idle.ReclaimAfter.Span())
	return seen, x.cells.check(&seen, c)
}

// Apply implements loop.Cluster.
func (w watched) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	began := time.Now()
	defer func() { w.rounds.report.meter.Phase(metrics.Act, time.Since(began)) }()
	return w.Cluster.Apply(ctx, actions)
}

// ordered is a journal that reads the term in force, and counts what budgets are left, with the overrides in force.
type ordered struct {
	loop.Journal
	rounds *rounds
}

// Overrides implements loop.Journal.
func (o ordered) Overrides(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	x, c := o.rounds, o.rounds.inForce()
	if err := x.terms.read(ctx, x.candidate.lead.Terms, c); err != nil {
		return nil, err
	}
	if err := x.budgets.spend(ctx, x.candidate.lead.Budgets, c.Spending(), now); err != nil {
		return nil, err
	}
	if err := x.record.listen(ctx, &x.last, x.candidate.lead.Records); err != nil {
		return nil, err
	}
	return o.Journal.Overrides(ctx, now)
}

// Commit implements loop.Journal.
func (o ordered) Commit(ctx context.Context, snap cluster.Snapshot, plan cluster.Plan) error {
	began := time.Now()
	defer func() { o.rounds.report.meter.Phase(metrics.Commit, time.Since(began)) }()
	err := o.Journal.Commit(ctx, snap, plan)
	if err == nil {
		o.rounds.record.written()
		o.rounds.candidate.apart = apart{}
	}
	return err
}
