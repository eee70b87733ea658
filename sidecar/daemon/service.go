package daemon

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop/effect"
)

// service lets the clock make rounds, and does the work beside them.
type service struct {
	rounds    *rounds
	gate      turnstile // one turn at a time; it guards rounds
	inForce   *atomic.Pointer[config.Config]
	read      func() (*config.Config, error) // the configuration anew
	report    *reporter
	accepted  acceptance
	forecasts foresight
	notices   sender
	syslog    copier
	audits    audits
	divide    effect.Divide // nil = a policy is not asked again
}

// serve makes rounds until ctx ends, under the configuration of the start.
func (d *service) serve(ctx context.Context, c *config.Config, hangup <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopListening, err := d.rounds.progress.listen(ctx, &c.Models.Progress)
	if err != nil {
		return err
	}
	defer stopListening()
	exposed := d.expose(ctx, &c.Output.Metrics)
	defer func() { // its log comes before the end
		cancel()
		<-exposed
	}()
	fatal := make(chan error, 1)
	turn := func() {
		if err := d.beat(ctx); err != nil {
			select {
			case fatal <- err:
			default:
			}
		}
	}
	clock := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cron.DiscardLogger))
	var scheduled cron.EntryID
	schedule := func() {
		clock.Remove(scheduled)
		scheduled = clock.Schedule(beat(d.rounds.interval()), cron.FuncJob(turn))
	}
	schedule()
	clock.Schedule(beat(pruneEvery), cron.FuncJob(func() { d.prune(ctx) }))
	clock.Schedule(beat(auditEvery), cron.FuncJob(func() { d.audit(ctx) }))
	clock.Schedule(beat(weighEvery), cron.FuncJob(func() { d.weigh(ctx) }))
	clock.Schedule(beat(time.Minute), cron.FuncJob(func() { d.rounds.terms.tune(ctx, d.inForce.Load, d.rounds.candidate.beside.Load()) }))
	clock.Schedule(beat(time.Minute), cron.FuncJob(func() {
		d.forecasts.foresee(ctx, d.inForce.Load().Forecast.Every.Span().Duration(), d.rounds.candidate.beside.Load())
	}))
	clock.Schedule(beat(noticeEvery), cron.FuncJob(func() { d.notices.send(ctx, d.inForce.Load(), d.rounds.candidate.beside.Load()) }))
	clock.Schedule(beat(syslogEvery), cron.FuncJob(func() { d.syslog.send(ctx, d.rounds.candidate.beside.Load()) }))
	clock.Start()
	d.report.log.Info().Str("mode", string(c.Mode)).Strs("acting", d.rounds.acting()).Stringer("interval", c.Interval).
		Stringer("term", c.Lease.Term).Int("pid", os.Getpid()).Msg(saysStarted)
	d.report.tell("READY=1", "STATUS=started")
	go turn() // no need to wait for the first beat
	go d.rounds.gauges.run(ctx, d.inForce.Load, d.rounds.candidate.beside.Load)

	turns, tick := &d.rounds.turns, time.NewTicker(pulse)
	defer tick.Stop()
	for lastPing := time.Now(); ; {
		select {
		case <-ctx.Done():
			d.stop(clock)
			return nil
		case err := <-fatal:
			cancel()
			d.stop(clock)
			return err
		case <-hangup:
			if d.reload() {
				schedule()
			}
		case now := <-tick.C:
			if d.accepted.reconsider() && d.reload() {
				schedule()
			}
			if turns.stalled(now) { // the clock was set back: the scheduled rounds are far in the future now
				schedule()
			}
			if turns.stands() {
				go turn()
			}
			if d.report.manager.Watchdog > 0 && time.Since(lastPing) >= d.report.manager.Watchdog/3 && turns.alive(now) {
				lastPing = now
				d.report.tell("WATCHDOG=1")
			}
		}
	}
}

// stop ends the daemon cleanly.
func (d *service) stop(clock *cron.Cron) {
	d.report.tell("STOPPING=1", "STATUS=finishing the present round")
	clock.Stop()
	d.gate.enter() // the current turn is over
	defer d.gate.leave()
	d.rounds.tidy()
	d.rounds.resign()
	d.report.about("daemons", d.rounds.candidate.depart())
	d.report.log.Info().Msg(saysStopped)
}

// beat handles one beat of the clock. It returns an error only if the daemon should end.
func (d *service) beat(ctx context.Context) error {
	if !d.gate.try() {
		d.rounds.turns.missed.Add(1)
		return nil
	}
	defer d.gate.leave()
	return d.rounds.beat(ctx)
}

// reload applies a new configuration, or keeps the old one and logs why. It tells whether the
// interval changed.
func (d *service) reload() bool {
	d.report.tell("RELOADING=1")
	defer d.report.tell("READY=1")
	was := d.inForce.Load()
	now, err := d.read()
	var keys []string
	if err == nil {
		err = d.accepted.wish(now)
	}
	cells, read := &d.rounds.cells, now
	if err == nil {
		keys = was.Restart(now)
		now = was.Keep(now)
		err = cells.fits(now)
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			d.report.log.Error().Str("error", strings.TrimSpace(line)).Msg(saysRefused)
		}
		return false
	}
	how, may := d.permitted(was, now, read)
	if !may {
		return false
	}
	if len(keys) > 0 {
		d.report.log.Warn().Strs("keys", keys).Msg(saysRestart)
	}
	d.rounds.record.standing.Store(takenOver(read, how))
	d.inForce.Store(now)
	d.taken(read)
	if cells.last.Load() != nil {
		cells.fitted.Store(now)
	}
	d.report.log.Info().Str("mode", string(now.Mode)).Strs("acting", d.rounds.acting()).Msg(saysTaken)
	return was.Interval != now.Interval
}

// leading gives the store of a daemon that leads; nil = it does not.
func (d *service) leading() Store {
	d.gate.enter()
	defer d.gate.leave()
	if d.rounds.candidate.lead == nil {
		return nil
	}
	return d.rounds.candidate.store
}

// prune deletes expired rows of the journal.
func (d *service) prune(ctx context.Context) {
	store := d.leading()
	if store == nil {
		return
	}
	c := d.inForce.Load()
	began := time.Now()
	days, rows, err := store.Prune(ctx, c.Database.KeepRounds.Span().Duration(), c.Database.Keep.Span().Duration())
	if d.report.about("prune", err); err != nil {
		return
	}
	d.report.log.Info().Int("days", days).Int64("rows", rows).Dur("took_ms", time.Since(began)).Msg("journal pruned")
}

// audit stores the fairness of the policy's answers once a day.
func (d *service) audit(ctx context.Context) {
	d.gate.enter()
	lead, last := d.rounds.candidate.lead, d.rounds.last
	due := lead != nil && d.audits.due(&last)
	d.gate.leave()
	if due && !d.audits.audit(ctx, lead, last, d.rounds.keep) {
		d.gate.enter()
		d.audits.day = 0 // it will be retried
		d.gate.leave()
	}
}

// taken notes that a configuration is in force.
func (d *service) taken(c *config.Config) {
	if err := d.accepted.taken(c); err != nil {
		d.report.log.Warn().Err(err).Msg("a start with an empty or cut configuration would not be noticed")
	}
	d.report.meter.Waits(false)
}
