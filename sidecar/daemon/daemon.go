package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/daemon/metrics"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/tune"
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
	// Takes asks Slurm whether it takes a user's token of auth/jwt; nil = jobs report without.
	Takes func(ctx context.Context, user, token string) (bool, error)
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

	inForce atomic.Pointer[config.Config]
	service *service
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

// InForce gives the configuration in force, as JSON of its texts, for processes beside the daemon: the file may be another one by now.
func (d *Daemon) InForce() ([]byte, error) { return json.Marshal(d.inForce.Load().Texts()) }

// Once makes one turn by hand: it takes the lead and resigns.
func (d *Daemon) Once(ctx context.Context) (loop.Report, error) {
	s := d.open()
	if err := s.accepted.wish(d.Config); err != nil {
		return loop.Report{}, err
	}
	x := s.rounds
	if err := x.acquire(ctx); err != nil {
		return loop.Report{}, err
	}
	x.single = true
	x.record.standing.Store(takenOver(d.Config, "fairlease round"))
	report, err := x.turn(ctx)
	if err == nil && report.Plan.AllocationRequest != nil && d.Divide != nil {
		report, err = x.turn(ctx) // with the answer, which is committed too
	}
	lead := x.candidate.lead
	x.leave()
	return report, errors.Join(err, resign(lead))
}

// Serve makes rounds until ctx ends. Then it finishes the current turn, removes the heartbeats
// and resigns. Running jobs continue; gates expire. Errors of rounds do not end it. A database
// schema that does not fit, an address that cannot be listened on, and a configuration that leaves
// out what was in force before, do.
func (d *Daemon) Serve(ctx context.Context) error {
	s := d.open()
	if err := s.accepted.wish(d.Config); err != nil {
		return err
	}
	if kept := config.ReadAccepted(s.accepted.path); kept != nil && kept.Waiting != nil && kept.Waiting.Digest == config.Digest(d.Config) {
		d.Log.Warn().Str("effect", kept.Waiting.Says).Msg("this start takes over the configuration that waited to be accepted")
	}
	s.taken(d.Config)
	return s.serve(ctx, d.Config, d.Hangup)
}

// open joins the parts of the daemon, under the configuration of the start.
func (d *Daemon) open() *service {
	d.inForce.Store(d.Config)
	report := &reporter{log: d.Log, meter: d.Meter, manager: &d.Manager}
	open := d.Counters
	if open == nil {
		open = (*config.GPUCounters).Open
	}
	d.service = &service{
		rounds: &rounds{cluster: d.Cluster, engine: d.Decide, divide: d.Divide, notes: d.Notes, inForce: d.inForce.Load, report: report,
			candidate: candidate{connect: d.Connect, identify: d.Identify, look: d.Probe, file: d.Config.Files.State},
			cells:     sight{remark: report.cells}, progress: progress{report: report, takes: d.Takes}, gauges: gauges{source: open, to: report},
			terms: terms{study: d.Study, report: report}, budgets: budgets{meter: d.Meter}, goals: objectives{meter: d.Meter}, beats: heartbeats{dir: d.Config.Files.Heartbeats}},
		gate: make(turnstile, 1), inForce: &d.inForce, read: d.Reload, report: report,
		accepted:  acceptance{path: d.Config.AcceptedPath()},
		forecasts: foresight{make: d.Foresee, report: report}, notices: sender{report: report}, syslog: copier{report: report}, audits: audits{make: d.Audit, report: report}, divide: d.Divide,
	}
	d.service.rounds.record.standing.Store(takenOver(d.Config, "start"))
	return d.service
}
