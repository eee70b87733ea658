package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
	"github.com/fairlease/fairlease/sidecar/store"
	"github.com/fairlease/fairlease/sidecar/telemetry/gpu"
)

// Daemon runs rounds. Set the exported fields, then call Serve or Once.
type Daemon struct {
	Cluster loop.Cluster
	// Connect opens the database. It is called again until that succeeds.
	Connect func(context.Context) (Store, error)
	// Identify gives the identity of this cluster; nil = the first look does.
	Identify func(context.Context) (cluster.Identity, error)
	// Probe looks at the cluster without a lead, and changes nothing; nil = a standby does not ask which cluster it is on.
	Probe func(context.Context) (cluster.Observation, error)
	// Decide is the engine.
	Decide func(cluster.Snapshot) cluster.Plan
	// Divide is the engine's policy. It runs beside the rounds.
	Divide func(cluster.AllocationRequest) cluster.Allocation
	// Audit measures the fairness of the policy's answers, beside the rounds; nil = no audits.
	Audit func(cluster.Snapshot) (cluster.Audit, bool)
	// Study replays the journal's last days with several terms, beside the rounds, and measures what happened in them;
	// nil = no tuning.
	Study func(context.Context) (tune.Study, error)
	// Foresee estimates when jobs start and end, beside the rounds; nil = no forecasts.
	Foresee func(context.Context) (*forecast.Forecast, error)
	// Counters makes the source of the GPUs' counters; nil = the configuration's own.
	Counters func(*config.GPUCounters) (gpu.Source, error)
	// Config is the configuration at the start. Hangup reloads it with Reload.
	Config *config.Config
	Reload func() (*config.Config, error)
	Hangup <-chan os.Signal
	// Notes gives what the last look at the cluster omitted; nil = nothing ever.
	Notes   func() []string
	Manager Manager
	Log     zerolog.Logger
	// Meter measures rounds; nil = nothing is measured.
	Meter *metrics.Meter

	config atomic.Pointer[config.Config]
	sight  sight
	ears   ears
	gauges gauges
	nights atomic.Bool // a study is under way
	ahead  foresight
	leads  atomic.Pointer[Leadership] // lead, for work that may not hold up a turn; nil = none
	turns  turnstile                  // one turn at a time; it also guards the fields below
	began  atomic.Int64               // start of the current turn, unix ms; 0 = none is running
	ended  atomic.Int64               // end of the last turn
	waits  atomic.Pointer[time.Time]  // when another daemon was last seen to lead; nil = this one may
	late   atomic.Int64               // beats that were skipped because a turn was running, since the last log line

	store   Store
	lead    *Leadership
	unkeep  context.CancelFunc // ends the lead's keeper
	loop    *loop.Loop
	mine    cluster.Identity // the cluster that last matched the journal
	single  bool             // one round only: an answer of Divide after this round would be lost
	beats   heartbeats
	pause   pause
	heard   heard
	kin     kin
	top     top
	last    cluster.Snapshot // of the last round
	tuned   *tune.Change     // the newest change that determines the term in force
	budgets budgets
	audits  cluster.Instant // the day that has an audit, or is about to have one
	said    changes         // safe for concurrent use

	// Of Serve's goroutine alone:
	accepted *config.Accepted // the configuration that was taken over last; nil = none
	refused  *config.Config   // one that was refused for what it leaves out; nil = none
	looked   time.Time        // change of the file of what is accepted, when it was read last
}

// heard is how a standby knows that the leader gets on.
type heard struct {
	known       bool
	term, turns int64
	at          time.Time // when a new turn was last seen to come; zero = none yet
}

// hear tells of the leader's turns, and whether one came lately.
func (h *heard) hear(term, turns int64, lately time.Duration) bool {
	if h.known && (term != h.term || turns != h.turns) {
		h.at = time.Now()
	}
	h.known, h.term, h.turns = true, term, turns
	return !h.at.IsZero() && time.Since(h.at) <= lately
}

// turnstile lets one through at a time.
type turnstile chan struct{}

func (t turnstile) enter() { t <- struct{}{} }
func (t turnstile) leave() { <-t }

// try enters if the turnstile is free.
func (t turnstile) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

const (
	// turnLimit is the maximum duration of a turn. The next turn does what is left.
	turnLimit = 5 * time.Minute
	// shutdownLimit is how long a stop waits for the current turn.
	shutdownLimit = time.Minute
	// keepEvery is how often the lead is renewed. It is lost after 15 s of silence.
	keepEvery = 4 * time.Second
	// pulse is how often the daemon checks itself.
	pulse = time.Second
	// pruneEvery is how often the journal is pruned.
	pruneEvery = time.Hour
	// auditEvery is how often the daemon checks whether the day has an audit.
	auditEvery = time.Hour
)

// beat is a schedule on the multiples of an interval since the epoch. If the interval divides the
// grid of terms, a round falls on every boundary of a term.
type beat time.Duration

// Next gives the first beat after t.
func (b beat) Next(t time.Time) time.Time {
	step := time.Duration(b)
	return t.Add(step - time.Duration(t.UnixNano()%int64(step)))
}

// Serve makes rounds until ctx ends. Then it finishes the current turn, removes the heartbeats
// and resigns. Running jobs continue; gates expire. Errors of rounds do not end it. A database
// schema that does not fit, an address that cannot be listened on, and a configuration that leaves
// out what was in force before, do.
func (d *Daemon) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.wish(d.Config); err != nil {
		return err
	}
	d.taken(d.Config)
	d.turns = make(turnstile, 1)
	d.config.Store(d.Config)
	d.beats.dir = d.Config.Files.Heartbeats
	if d.Counters == nil {
		d.Counters = (*config.GPUCounters).Open
	}
	stopListening, err := d.listen(ctx)
	if err != nil {
		return err
	}
	defer stopListening()
	d.expose(ctx)
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
	rounds := clock.Schedule(d.interval(), cron.FuncJob(turn))
	clock.Schedule(beat(pruneEvery), cron.FuncJob(func() { d.prune(ctx) }))
	clock.Schedule(beat(auditEvery), cron.FuncJob(func() { d.audit(ctx) }))
	clock.Schedule(beat(weighEvery), cron.FuncJob(func() { d.weigh(ctx) }))
	clock.Schedule(beat(time.Minute), cron.FuncJob(func() { d.tune(ctx) }))
	clock.Schedule(beat(time.Minute), cron.FuncJob(func() { d.foresee(ctx) }))
	clock.Start()
	d.Log.Info().Str("mode", string(d.Config.Mode)).Strs("acting", d.acting()).Stringer("interval", d.Config.Interval).
		Stringer("term", d.Config.Lease.Term).Int("pid", os.Getpid()).Msg("started")
	d.tell("READY=1", "STATUS=started")
	go turn() // no need to wait for the first beat
	go d.gauge(ctx)

	tick := time.NewTicker(pulse)
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
		case <-d.Hangup:
			if d.reload() {
				clock.Remove(rounds)
				rounds = clock.Schedule(d.interval(), cron.FuncJob(turn))
			}
		case now := <-tick.C:
			if d.reconsider() && d.reload() {
				clock.Remove(rounds)
				rounds = clock.Schedule(d.interval(), cron.FuncJob(turn))
			}
			if d.stalled(now) {
				// The clock was set back: the scheduled rounds are far in the future now.
				clock.Remove(rounds)
				rounds = clock.Schedule(d.interval(), cron.FuncJob(turn))
			}
			if looked := d.waits.Load(); looked != nil && time.Since(*looked) >= keepEvery {
				go turn() // a standby sees a silent leader soon, however long rounds are apart
			}
			if d.Manager.Watchdog > 0 && time.Since(lastPing) >= d.Manager.Watchdog/3 && d.alive(now) {
				lastPing = now
				d.tell("WATCHDOG=1")
			}
		}
	}
}

func (d *Daemon) interval() beat { return beat(d.config.Load().Interval.Span().Duration()) }

// ttl is how long gates last without this daemon.
func (d *Daemon) ttl() time.Duration { return d.config.Load().Gate.TTL.Span().Duration() }

func (d *Daemon) acting() []string {
	rules := d.config.Load().Rules()
	return rules.Acting()
}

// gated gives the partitions that are acted on, as of the last round: the submit plugin may gate their jobs.
func (d *Daemon) gated() []string {
	return slices.DeleteFunc(slices.Clone(d.acting()), func(name string) bool {
		return slices.ContainsFunc(d.last.Preempted, func(p cluster.Preempted) bool { return p.Partition == name })
	})
}

// stalled tells whether beats have stopped although no turn is running.
func (d *Daemon) stalled(now time.Time) bool {
	ended := d.ended.Load()
	return d.began.Load() == 0 && ended != 0 && now.UnixMilli() < ended-time.Minute.Milliseconds()
}

// Alive tells whether no turn hangs. It is safe for concurrent use.
func (d *Daemon) Alive() bool { return d.alive(time.Now()) }

func (d *Daemon) alive(now time.Time) bool {
	began := d.began.Load()
	return began == 0 || now.Sub(time.UnixMilli(began)) < turnLimit+time.Minute
}

// tell tells the service manager.
func (d *Daemon) tell(words ...string) {
	if err := d.Manager.tell(words...); err != nil {
		d.once("notify", err)
	}
}

// stop ends the daemon cleanly.
func (d *Daemon) stop(clock *cron.Cron) {
	d.tell("STOPPING=1", "STATUS=finishing the present round")
	clock.Stop()
	d.turns.enter() // the current turn is over
	defer d.turns.leave()
	if err := d.beats.stop(nil); err != nil {
		d.Log.Warn().Err(err).Msg("heartbeat")
	}
	if err := d.resign(); err != nil {
		d.Log.Warn().Err(err).Msg("leader")
	}
	d.Log.Info().Msg("stopped; running jobs run on, gates lapse by themselves")
}

// resign gives up the lead, if there is one.
func (d *Daemon) resign() error {
	lead := d.lead
	if lead == nil {
		return nil
	}
	d.leave()
	ctx, cancel := context.WithTimeout(context.Background(), keepEvery)
	defer cancel()
	return lead.Resign(ctx)
}

// leave discards the lead and all state that depends on it.
func (d *Daemon) leave() {
	if d.unkeep != nil {
		d.unkeep()
	}
	d.lead, d.unkeep, d.loop, d.budgets = nil, nil, nil, budgets{}
	d.leads.Store(nil)
	d.ears.leases.Store(nil)
}

// beat handles one beat of the clock. It returns an error only if the daemon should end.
func (d *Daemon) beat(ctx context.Context) error {
	if !d.turns.try() {
		d.late.Add(1)
		return nil
	}
	defer d.turns.leave()
	now := time.Now()
	if ctx.Err() != nil || now.Before(d.pause.until) {
		return nil
	}
	d.began.Store(now.UnixMilli())
	defer func() {
		d.ended.Store(time.Now().UnixMilli())
		d.began.Store(0)
	}()
	turning, cancel := outlive(ctx, shutdownLimit)
	defer cancel()
	err := d.guarded(turning)
	interval := d.config.Load().Interval.Span().Duration()
	switch {
	case errors.Is(err, ErrTaken):
		d.Meter.Well(metrics.Standby, firstLine(err.Error()), interval)
	case err != nil:
		d.Meter.Ill(err)
	default:
		d.Meter.Well(metrics.Leader, "", interval)
	}
	d.waits.Store(nil)
	var broke *loop.Breakdown
	switch {
	case errors.Is(err, ErrSchema), errors.Is(err, store.ErrSchema), errors.Is(err, ErrCells), errors.Is(err, ErrCluster):
		return err
	case errors.Is(err, ErrTaken):
		d.wait(err)
		switch err := d.relay(turning); {
		case errors.Is(err, ErrCluster):
			return err
		case err != nil:
			d.Meter.Ill(err)
			d.fail(err)
		}
		looked := time.Now()
		d.waits.Store(&looked)
	case errors.Is(err, ErrStranger):
		d.tidy()
		if err := d.resign(); err != nil { // a daemon of the right cluster may lead
			d.Log.Warn().Err(err).Msg("leader")
		}
		d.fail(err)
	case errors.Is(err, errDeposed):
		d.Log.Error().Err(err).Msg("stopped acting")
		d.leave()
		d.tidy()
	case errors.Is(err, store.ErrYounger):
		// Nothing was started. The daemon's memory is of another journal: it begins again, in a new term.
		d.Log.Error().Err(err).Msg("stopped acting")
		if err := d.resign(); err != nil {
			d.Log.Warn().Err(err).Msg("leader")
		}
		d.tidy()
	case errors.As(err, &broke):
		// Nothing was started. Then all waiting jobs go to Slurm: gates expire, and no new ones
		// are set.
		d.loop = nil
		d.tidy()
		d.broken(broke)
		d.fail(err)
	case err != nil:
		d.loop = nil // changes seen in the failed turn are still news to the next
		d.fail(err)
	default:
		d.recover()
	}
	return nil
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
func (d *Daemon) guarded(ctx context.Context) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = loop.BreakdownOf(cause)
		}
	}()
	return d.round(ctx)
}

// round makes one turn if this daemon has the lead or can get it.
func (d *Daemon) round(ctx context.Context) error {
	began := time.Now()
	if err := d.sit(ctx); err != nil {
		return err
	}
	report, err := d.turn(ctx)
	took := time.Since(began)
	d.Meter.Round(&report, err, took)
	d.report(report, err, took)
	if err != nil {
		return err
	}
	d.lead.Turned()
	d.beaten(d.beats.beat(d.gated(), d.ttl(), time.Now()))
	return nil
}

// relay writes a standby's heartbeats while turns of the leading daemon succeed: slurmctld and its
// submit plugin may run on the standby's host. They are never removed but expire, since the
// leader's heartbeats may be in the same folder. Only turns count that were seen to come, by this
// host's clock.
func (d *Daemon) relay(ctx context.Context) error {
	const missed = 3
	if err := d.probe(ctx); err != nil {
		return err
	}
	if !d.kin.sure {
		if d.said.is("kin", "unknown") {
			d.Log.Info().Msg("no heartbeat is relayed yet: no job of this Slurm tells whether it is the journal's cluster")
		}
		return nil
	}
	term, turns, round, err := d.store.Turns(ctx)
	d.top.see(term, round)
	if err == nil && d.heard.hear(term, turns, missed*d.config.Load().Interval.Span().Duration()+keepEvery) {
		err = d.beats.touch(d.acting(), d.ttl(), time.Now())
	}
	d.beaten(err)
	return nil
}

// beaten logs the result of the heartbeats, if that is news.
func (d *Daemon) beaten(err error) {
	if err != nil {
		d.once("heartbeat", err)
	} else {
		d.said.clear("heartbeat")
	}
}

// turn makes one turn of the loop with the lead.
func (d *Daemon) turn(ctx context.Context) (loop.Report, error) {
	if d.loop == nil {
		journal, err := record(d.lead.Journal, d.config.Load().Files.State, d.lead.Term, &d.top, d.restored)
		if err != nil {
			return loop.Report{}, err
		}
		d.loop = &loop.Loop{Cluster: watched{d.Cluster, d}, Journal: ordered{journal, d}, Decide: d.decide, Divide: d.Divide, Beside: !d.single, Schedulers: d.schedulers(), Past: d.past(ctx),
			Configure: d.configure, Keep: d.keep}
	}
	act, cancel := acting(ctx, d.lead)
	defer cancel()
	report, err := d.loop.Turn(act)
	if lost(d.lead) {
		return report, errDeposed
	}
	if cause := context.Cause(act); err != nil && errors.Is(cause, errDeposed) {
		return report, fmt.Errorf("%w: %w", cause, err)
	}
	if err == nil {
		d.told(act, &report)
		d.spent(&report)
		d.publish(&report)
	}
	return report, err
}

// decide calls the engine, and keeps its input.
func (d *Daemon) decide(s cluster.Snapshot) cluster.Plan {
	d.last = s
	d.hold(&s)
	began := time.Now()
	defer func() { d.Meter.Phase(metrics.Decide, time.Since(began)) }()
	return d.Decide(s)
}

func (d *Daemon) configure() (loop.Rules, cluster.Settings) {
	c, settings := d.config.Load().At(time.Now(), d.tuned)
	rules := c.Rules()
	rules.Budgets = d.budgets.book.States()
	return rules, settings
}

// sit makes sure that this daemon has the lead for now.
func (d *Daemon) sit(ctx context.Context) error {
	if d.store == nil {
		store, err := d.Connect(ctx)
		if err != nil {
			return err
		}
		d.store = store
	}
	if d.lead != nil && lost(d.lead) {
		return errDeposed
	}
	if d.lead != nil && time.Now().After(d.lead.Sure()) {
		err := d.lead.Keep(ctx)
		if lost(d.lead) {
			return errDeposed
		}
		return err
	}
	if d.lead != nil {
		return nil
	}
	if d.Identify != nil && d.mine == (cluster.Identity{}) {
		// A standby is refused, too. While Slurm is away, the first look with the lead decides.
		if is, err := d.Identify(ctx); err == nil {
			if err := d.claim(ctx, is); err != nil {
				return err
			}
		}
	}
	if d.kin.not != nil {
		if err := d.probe(ctx); err != nil {
			return err
		}
	}
	if !d.top.filed {
		d.top.filed = true
		if file, err := ReadState(d.config.Load().Files.State); err == nil { // else the turn says why not
			d.top.see(file.Term, file.Round)
		}
	}
	lead, err := d.store.Acquire(ctx, d.top.term)
	if err != nil {
		return err
	}
	d.lead, d.mine, d.heard = lead, cluster.Identity{}, heard{}
	d.top.see(lead.Term, 0)
	d.leads.Store(lead)
	d.said.clear("leader")
	keep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.unkeep = cancel
	go keeper(keep, lead, keepEvery)
	d.beats.beats = append([]string(nil), d.config.Load().Partitions...) // whatever an earlier process left
	d.Log.Info().Msg("leadership acquired")
	return nil
}

// claim makes sure that the journal belongs to this cluster.
func (d *Daemon) claim(ctx context.Context, is cluster.Identity) error {
	if is == d.mine {
		return nil
	}
	if err := d.store.Claim(ctx, is); err != nil {
		return err
	}
	d.mine = is
	return nil
}

// Once makes one turn by hand: it takes the lead and resigns.
func (d *Daemon) Once(ctx context.Context) (loop.Report, error) {
	if err := d.wish(d.Config); err != nil {
		return loop.Report{}, err
	}
	d.config.Store(d.Config)
	if err := d.sit(ctx); err != nil {
		return loop.Report{}, err
	}
	d.single = true
	report, err := d.turn(ctx)
	if err == nil && report.Plan.AllocationRequest != nil && d.Divide != nil {
		report, err = d.turn(ctx) // with the answer, which is committed too
	}
	return report, errors.Join(err, d.resign())
}

// reload applies a new configuration, or keeps the old one and logs why. It tells whether the
// interval changed.
func (d *Daemon) reload() bool {
	d.tell("RELOADING=1")
	defer d.tell("READY=1")
	was := d.config.Load()
	now, err := d.Reload()
	var keys []string
	if err == nil {
		if err = d.wish(now); err != nil {
			d.refused = now
		}
	}
	read := now
	if err == nil {
		keys = was.Restart(now)
		now = was.Keep(now)
		err = d.fits(now)
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			d.Log.Error().Str("error", strings.TrimSpace(line)).Msg("the new configuration is not taken over, the old one stays")
		}
		return false
	}
	if len(keys) > 0 {
		d.Log.Warn().Strs("keys", keys).Msg("these changes need a restart: systemctl restart fairlease")
	}
	d.config.Store(now)
	d.taken(read)
	if d.sight.last.Load() != nil {
		d.sight.fitted.Store(now)
	}
	d.Log.Info().Str("mode", string(now.Mode)).Strs("acting", d.acting()).Msg("configuration taken over")
	return was.Interval != now.Interval
}

// prune deletes expired rows of the journal.
func (d *Daemon) prune(ctx context.Context) {
	d.turns.enter()
	store, leading := d.store, d.lead != nil
	d.turns.leave()
	if !leading {
		return
	}
	c := d.config.Load()
	began := time.Now()
	days, rows, err := store.Prune(ctx, c.Database.KeepRounds.Span().Duration(), c.Database.Keep.Span().Duration())
	if err != nil {
		d.once("prune", err)
		return
	}
	d.said.clear("prune")
	d.Log.Info().Int("days", days).Int64("rows", rows).Dur("took_ms", time.Since(began)).Msg("journal pruned")
}

// audit stores the fairness of the policy's answers once a day.
func (d *Daemon) audit(ctx context.Context) {
	d.turns.enter()
	lead, last := d.lead, d.last
	day := last.Now - last.Now%cluster.Instant(cluster.Day)
	due := lead != nil && d.Audit != nil && last.Allocation != nil && day != d.audits
	if due {
		d.audits = day
	}
	d.turns.leave()
	if !due {
		return
	}
	began := time.Now()
	a, ok := d.audited(last)
	if !ok {
		return
	}
	if err := lead.Audit(ctx, a); err != nil {
		d.once("audit", err)
		d.turns.enter()
		d.audits = 0 // it will be retried
		d.turns.leave()
		return
	}
	d.said.clear("audit")
	d.Log.Info().Str("policy", a.Policy).Int("misreports", len(a.Misreports)).Dur("took_ms", time.Since(began)).Msg("division audited")
}

// audited makes an audit. A panic in it is logged, and there is no other attempt before the next
// day.
func (d *Daemon) audited(s cluster.Snapshot) (a cluster.Audit, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			d.keep(s, loop.BreakdownOf(cause))
			ok = false
		}
	}()
	return d.Audit(s)
}

// tidy removes the heartbeats if this daemon does not act.
func (d *Daemon) tidy() {
	if err := d.beats.stop(nil); err != nil {
		d.once("heartbeat", err)
	}
}
