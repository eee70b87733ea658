package scene

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// The bounds of the Past.
const (
	MaxRows   = 1000                // rows of a list
	MaxLeases = 8000                // rows of Leases
	MaxShares = 50_000              // rows of Shares
	MaxWindow = 32 * 24 * time.Hour // length of a window
	maxAtOnce = 3                   // queries at the same time; a store has four connections
	maxQuery  = 5 * time.Second     // time for a query, with its wait for the others
)

// Past is history in the journal. Its methods show what a scope may see, and fail with ErrNone if that is nothing, and with ErrBusy
// while too many ask. All other errors mean that the journal does not answer. Lists are newest first and have at most MaxRows rows,
// unless they say otherwise.
type Past struct {
	PastJobs
	PastRounds
}

// PastJobs is the history of jobs, with their leases and trades.
type PastJobs interface {
	// Job explains the newest job with that id in Slurm, also one that has ended.
	Job(ctx context.Context, scope Scope, id cluster.JobID) (store.Explanation, error)
	// Find gives the newest job with that id in Slurm, also one that has ended.
	Find(ctx context.Context, scope Scope, id cluster.JobID, key cluster.JobKey) (store.Job, error)
	// Told gives what only the journal knows of a live job. The caller has looked at rights.
	Told(ctx context.Context, job *store.Job) (Told, error)
	// GPUHours gives what the GPUs of a job did. The caller has looked at rights.
	GPUHours(ctx context.Context, key cluster.JobKey, limit int) ([]store.GPUHour, error)
	// Leases lists leases that were in force in a window, at most MaxLeases. Its Tenants are set from the scope.
	Leases(ctx context.Context, scope Scope, w store.LeaseWindow) ([]store.Lease, error)
	// Trades lists present and past trades.
	Trades(ctx context.Context, scope Scope, limit int) ([]store.Trade, error)
}

// PastRounds is the history of rounds and tenants.
type PastRounds interface {
	// Rounds lists rounds before a number; 0 = the newest.
	Rounds(ctx context.Context, before int64, limit int) ([]store.Round, error)
	// Decided gives what a round knew and decided, for those who may see everything.
	Decided(ctx context.Context, scope Scope, number int64) (store.Edge, error)
	// Events lists the events before one; round 0 = the newest.
	Events(ctx context.Context, scope Scope, round int64, ordinal, limit int) ([]store.Noted, error)
	// Shares gives what every tenant had and was due, as means of steps; a step without a row is like the one before. A window is
	// shortened to MaxWindow, and a step lengthened so that there are at most 500.
	Shares(ctx context.Context, since, until time.Time, step time.Duration) ([]store.Share, error)
	// Acts lists the record of administration, for those who may see everything.
	Acts(ctx context.Context, scope Scope, of store.Acts) ([]store.Act, error)
}

// Told is what only the journal knows of a live job.
type Told struct {
	Leases   []store.Lease  // the newest
	Actions  []store.Action // the newest
	Remarks  []store.Remark // by telemetry, that hold now
	Forecast *store.JobForecast
}

// Errors of the Past.
var (
	ErrNone = store.ErrNone
	ErrBusy = errors.New("too many ask for history at the same time: try again in a few seconds")
	// ErrAway means that the journal has not been reached yet.
	ErrAway = errors.New("the journal does not answer")
)

// past is the Past of a store, which may come and go.
type past struct {
	store func() *store.Store // nil = there is none
	slots chan struct{}
	whole chan struct{} // for whole rounds, which take tens of megabytes
}

func newPast(s func() *store.Store) *past {
	return &past{s, make(chan struct{}, maxAtOnce), make(chan struct{}, 1)}
}

// ask runs a query within the bounds.
func ask[T any](ctx context.Context, p *past, slots chan struct{}, query func(context.Context, *store.Store) (T, error)) (out T, err error) {
	s := p.store()
	if s == nil {
		return out, ErrAway
	}
	ctx, cancel := context.WithTimeout(ctx, maxQuery)
	defer cancel()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return out, ErrBusy
	}
	return query(ctx, s)
}

// maxNamesakes is the maximum number of jobs with one id that are looked through: Slurm reuses ids.
const maxNamesakes = 20

func (p *past) Find(ctx context.Context, scope Scope, id cluster.JobID, key cluster.JobKey) (store.Job, error) {
	all, err := ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Job, error) {
		return s.Jobs.AllOf(ctx, id, maxNamesakes)
	})
	if err != nil {
		return store.Job{}, err
	}
	for _, j := range all {
		if scope.Sees(j.Tenant) && (key == 0 || j.Key == key) {
			j.TellRequeue()
			return j, nil
		}
	}
	return store.Job{}, fmt.Errorf("job %s: %w", id, ErrNone)
}

// Job looks first whether the scope has the job: a stranger neither costs much nor learns by the time whether there is one.
func (p *past) Job(ctx context.Context, scope Scope, id cluster.JobID) (store.Explanation, error) {
	j, err := p.Find(ctx, scope, id, 0)
	if err != nil {
		return store.Explanation{}, err
	}
	return ask(ctx, p, p.whole, func(ctx context.Context, s *store.Store) (store.Explanation, error) {
		return s.Jobs.ExplainKey(ctx, j.Key)
	})
}

// told is the number of leases and actions in the history of a job, as in store.Explanation.
const told = 20

func (p *past) Told(ctx context.Context, job *store.Job) (Told, error) {
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) (out Told, err error) {
		if out.Actions, err = s.Jobs.Actions(ctx, job.Key, told); err != nil {
			return Told{}, err
		}
		if out.Remarks, err = s.GPUs.Remarks(ctx, job.Key, MaxRows); err != nil {
			return Told{}, err
		}
		if out.Forecast, err = s.Forecasts.Of(ctx, job.Key); err != nil {
			return Told{}, err
		}
		out.Leases, err = s.Jobs.LeasesBetween(ctx, &store.LeaseWindow{Job: job.Key, Limit: told})
		return out, err
	})
}

func (p *past) GPUHours(ctx context.Context, key cluster.JobKey, limit int) ([]store.GPUHour, error) {
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.GPUHour, error) {
		return s.GPUs.Hours(ctx, key, rows(limit))
	})
}

func (p *past) Leases(ctx context.Context, scope Scope, w store.LeaseWindow) ([]store.Lease, error) {
	w.Tenants = scope.Names()
	if w.Limit <= 0 || w.Limit > MaxLeases {
		w.Limit = MaxLeases
	}
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Lease, error) { return s.Jobs.LeasesBetween(ctx, &w) })
}

func (p *past) Rounds(ctx context.Context, before int64, limit int) ([]store.Round, error) {
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Round, error) {
		return s.Rounds.Before(ctx, before, rows(limit))
	})
}

func (p *past) Acts(ctx context.Context, scope Scope, of store.Acts) ([]store.Act, error) {
	if !scope.All {
		return nil, fmt.Errorf("record of administration: %w", ErrNone)
	}
	of.Limit = rows(of.Limit)
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Act, error) { return s.Administration.List(ctx, of) })
}

func (p *past) Decided(ctx context.Context, scope Scope, number int64) (store.Edge, error) {
	if !scope.All {
		return store.Edge{}, fmt.Errorf("round %d: %w", number, ErrNone)
	}
	return ask(ctx, p, p.whole, func(ctx context.Context, s *store.Store) (store.Edge, error) { return s.Rounds.Decided(ctx, number) })
}

func (p *past) Events(ctx context.Context, scope Scope, round int64, ordinal, limit int) ([]store.Noted, error) {
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Noted, error) {
		return s.Rounds.EventsBefore(ctx, scope.Names(), round, ordinal, rows(limit))
	})
}

func (p *past) Trades(ctx context.Context, scope Scope, limit int) ([]store.Trade, error) {
	all, err := ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Trade, error) {
		return s.Jobs.Trades(ctx, true, rows(limit))
	})
	return marketFor(Market{Trades: all}, scope.Sees).Trades, err
}

func (p *past) Shares(ctx context.Context, since, until time.Time, step time.Duration) ([]store.Share, error) {
	since, step = Steps(since, until, step)
	return ask(ctx, p, p.slots, func(ctx context.Context, s *store.Store) ([]store.Share, error) {
		return s.Tenants.Shares(ctx, since, until, step, MaxShares)
	})
}

// Steps bounds a window and the steps in it: at most MaxWindow, and at most 500 steps of at least a minute.
func Steps(since, until time.Time, step time.Duration) (time.Time, time.Duration) {
	if until.Sub(since) > MaxWindow {
		since = until.Add(-MaxWindow)
	}
	return since, max(step, until.Sub(since)/500, time.Minute).Round(time.Minute)
}

func rows(limit int) int {
	if limit <= 0 {
		return MaxRows
	}
	return min(limit, MaxRows)
}
