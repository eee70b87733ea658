package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// Result is the result of a run.
type Result struct {
	score.Scores
	Refused Refused
	// TimedOut counts the jobs that reached their time limit here but not in the trace, because
	// of the costs of leases.
	TimedOut int
	// Endless counts the jobs that would never end: each requeue restarts them from the
	// beginning.
	Endless int
	Turns   int         // rounds that were not quiet
	Kept    []score.Job // all jobs, with Setup.Keep

	jobs []score.Job // for an audit
}

// idleFor is the maximum time without an event while jobs wait, before a run is given up.
const idleFor = 30 * cluster.Day

// endlessFor, plus twenty times the longest run time of the present jobs, is the maximum time in
// which no job arrives, ends or keeps work at a requeue, before a run is ended. It leaves a
// margin for GPUs slower than the reference.
const endlessFor = 2 * cluster.Day

// Run runs one setup, without its audit. told, if not nil, is called with the number of ended
// jobs after each change. When ctx ends, the result has the scores so far and is marked as cut
// short; that is no error. An error is about the setup, or about jobs that wait for ever.
func Run(ctx context.Context, s Setup, told func(over int)) (Result, error) {
	return Watch(ctx, s, told, nil)
}

// Watch is Run, and calls see, if not nil, with the plan of each round that was not quiet. A plan is valid during the call.
func Watch(ctx context.Context, s Setup, told func(over int), see func(*cluster.Plan)) (Result, error) {
	if err := s.Check(); err != nil {
		return Result{}, err
	}
	r, err := newRun(&s)
	if err != nil {
		return Result{}, err
	}
	r.see = see
	defer r.world.Feed(func(yield func(sim.Arrival) bool) {
		s.arrivals(&r.result.Refused)(yield)
		r.came = true
	})()
	return r.run(ctx, told)
}

// run is a setup that is being run.
type run struct {
	setup   *Setup
	world   *sim.Virtual
	eye     *eye
	loop    *loop.Loop
	witness *witness
	last    cluster.Plan
	came    bool // all jobs of the load have arrived
	see     func(*cluster.Plan)
	result  Result
}

// eye is the loop's view of the cluster; it keeps copies of nodes that may fail.
type eye struct {
	world *sim.Virtual
	nodes []cluster.Node // nil where none fails
	fails bool
}

// Observe implements loop.Cluster.
func (e *eye) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := e.world.Observe(ctx, since)
	if e.fails {
		e.nodes = seen.Nodes
	}
	return seen, err
}

// Apply implements loop.Cluster.
func (e *eye) Apply(ctx context.Context, actions []cluster.Action) []cluster.Outcome {
	return e.world.Apply(ctx, actions)
}

func newRun(s *Setup) (*run, error) {
	nodes, settings := s.Fleet.Nodes(), s.Settings
	if settings.Slices != nil {
		settings.Slices = &cluster.Slices{Quantum: settings.Slices.Quantum, Pairs: settings.Slices.Pairs, Jobs: settings.Slices.Jobs}
		for i := range nodes {
			nodes[i].Shards = settings.Slices.Most()
		}
		for _, g := range s.Fleet.Models() {
			settings.Slices.Memory = append(settings.Slices.Memory, cluster.GPUMemory{Model: cmp.Or(g.Model, unnamed), Bytes: 80 << 30})
		}
	}
	v := sim.NewVirtual(Start, nodes, s.accounts())
	v.Costs, v.Term, v.Speeds, v.Mixed, v.Forget, v.Lend = s.Costs, s.Settings.Term, s.Speeds, s.Mixed, true, true
	v.Beside, v.ReportSaves = s.Beside, s.Reported
	learns := s.Load.Anywhere && s.Declared != nil && settings.ScatterWait > 0
	if learns || s.Load.Steps || settings.Slices != nil && settings.Slices.Pairs {
		v.Reports = 10 * cluster.Second
	}
	if s.Between > 0 {
		until := s.Until
		if until == 0 {
			until = 10 * 365 * cluster.Day
		}
		v.Fail(sim.Failures(s.Seed, nodes, Start, Start.Add(until), s.Between, s.Repair)...)
	}
	limits, err := s.Limits.of(s.Weights)
	if err != nil {
		return nil, err
	}
	limits.into(v)
	// Nothing can die here, so gates need no extension.
	v.Gate = 2 * Forever
	settings.Breaker = settings.Breaker.Fixed()
	if settings.StopsPerHour.Auto { // it follows from what was observed before, and nothing was
		settings.StopsPerHour.Auto = false
	}
	settings.GateTTL = v.Gate
	if settings.Users == cluster.UsersByJob {
		settings.Users = cluster.UsersBooked
	}
	r := &run{setup: s, world: v, eye: &eye{world: v, fails: s.Between > 0}}
	scheduler, err := s.scheduler(v, func(j *cluster.Job) cluster.Span { return r.witness.jobs[j.ID].Runs })
	if err != nil {
		return nil, err
	}
	r.witness = newWitness(score.NewMeter(s.setting(scheduler.Leases), s.Measures), s.Fleet, s.Speeds, s.Settings, s.Mixed, s.Audit || s.Keep)
	v.Watch = r.witness.watch
	memory := sim.NewMemory()
	memory.Trust = true
	rules := everybody
	if scheduler.Chooser != "" {
		settings.Preset, settings.Chooser = preset.Hived, scheduler.Chooser
		settings.AffinityWait = cmp.Or(settings.AffinityWait, config.Default().Cells.AffinityWait.Span())
		if rules.Cells, err = s.cells(); err != nil {
			return nil, err
		}
	}
	if scheduler.Divide != "" {
		settings.Divide, settings.DivideJobs = scheduler.Divide, preset.OfJobs(scheduler.Divide)
		settings.Mechanism = cmp.Or(preset.Mechanism(scheduler.Divide, s.Chooser), settings.Mechanism)
		settings.DivideEvery = max(int64(config.Default().Models.DivideEvery.Span()/settings.Interval), 1)
	}
	if scheduler.Divide != "" || settings.ScatterWait > 0 {
		rules.Profiles = s.profiles()
	}
	r.loop = &loop.Loop{Cluster: r.eye, Journal: memory, Decide: scheduler.Decide, Divide: engine.Divide, Brief: true,
		Configure: func() (loop.Rules, cluster.Settings) { return rules, settings }}
	return r, nil
}

var (
	// errStuck ends a run without further events.
	errStuck = errors.New("nothing happens any more")
	// errEnough ends a run in which no job can end before Until.
	errEnough = errors.New("the jobs that are left run for longer")
	// errEndless ends a run whose jobs will never end.
	errEndless = errors.New("the jobs that are left begin anew for ever")
)

func (r *run) run(ctx context.Context, told func(int)) (Result, error) {
	end := Start.Add(Forever)
	if r.setup.Until > 0 {
		end = Start.Add(r.setup.Until)
	}
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := r.witness
	err := sim.Run(inner, r.world, r.loop, r.setup.Settings.Interval, end, func(report loop.Report) {
		r.result.Turns++
		r.last = report.Plan
		if r.see != nil {
			r.see(&report.Plan)
		}
		before := w.ended
		w.turn(&report.Plan, r.eye.nodes)
		if w.err != nil {
			stop(w.err)
		}
		if r.waits() {
			stop(errStuck)
		}
		if r.setup.Until == 0 && r.came && w.endless(r.world.Now()) {
			stop(errEndless)
		}
		if r.setup.Enough && r.came && !w.any(func(j *life) bool { return j.Runs < r.setup.Until }) {
			stop(errEnough)
		}
		if told != nil && w.ended > before {
			told(w.ended)
		}
	})
	switch {
	case w.err != nil:
		return Result{}, w.err
	case ctx.Err() != nil:
		r.result.CutShort = true
	case errors.Is(context.Cause(inner), errEnough):
	case errors.Is(context.Cause(inner), errEndless):
		r.result.Endless = len(w.jobs)
	case errors.Is(context.Cause(inner), errStuck) || err == nil && r.setup.Until == 0 && !r.world.Drained():
		return Result{}, r.stuck()
	case err != nil:
		return Result{}, err
	}
	return r.close()
}

// waits tells whether jobs wait and there are no further events.
func (r *run) waits() bool {
	w := r.witness
	return w.running == 0 && r.world.Now().Sub(w.stirred) > idleFor && len(w.jobs) > 0
}

// stuck names the jobs that wait for ever.
func (r *run) stuck() error {
	there := r.witness.there()
	first := r.witness.jobs[there[0]]
	return fmt.Errorf("%s on %s: %d jobs wait for ever, the first of them %s of %s with %d GPUs", r.setup.Scheduler, r.setup.Fleet,
		len(there), first.ID, first.Tenant, first.GPUs)
}

// close charges up to now and gives the scores.
func (r *run) close() (Result, error) {
	if !r.world.Drained() || len(r.witness.over) > 0 {
		_, plan, err := r.loop.Preview(context.Background())
		if err != nil {
			return Result{}, err
		}
		r.last = plan
		r.witness.turn(&plan, r.eye.nodes)
	}
	cut := r.result.CutShort
	scores, err := r.witness.close(&r.last, r.world.Job)
	if err != nil {
		return Result{}, err
	}
	r.result.Scores, r.result.CutShort = scores, cut
	r.result.TimedOut, r.result.jobs = r.witness.timedOut, r.witness.kept
	if r.setup.Keep {
		r.result.Kept = r.witness.kept
	}
	return r.result, nil
}
