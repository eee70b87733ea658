package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

var (
	pastEdges = sql.Query("past_edges")
	pastJobs  = query[PastJob]("past_jobs")
	pastStood = sql.Query("past_tenants")
	pastGPUs  = sql.Query("past_gpus")
	pastActed = sql.Query("past_acted")
)

// Past is the journal's content for a window of time, from one round to another.
type Past struct {
	Begin, End Edge
	Jobs       []PastJob // present in the window or later, by key
	// Tenants is the state of the tenants after Begin and before End, by time, one row per minute
	// and tenant. The rows are read from the database during the iteration, and not kept.
	Tenants iter.Seq2[PastTenant, error]
	GPUs    []GPUsThen // the first is Begin's
	// Seen lists jobs, by key, as in the newest of some rounds of the window, Begin and End
	// included. It omits jobs that came and went between two of these.
	Seen  []cluster.Case
	Acted Acted
}

// Edge is the first or last round of a window: its full input and output.
type Edge struct {
	Snapshot cluster.Snapshot
	Plan     cluster.Plan
}

// PastJob is a job, as known in the newest round of all.
type PastJob struct {
	Key       cluster.JobKey
	SlurmID   string `db:"slurm_id"`
	Name      string
	User      string `db:"user_name"`
	Tenant    string // "" = none
	Control   cluster.Control
	GPUs      cluster.GPUCount `db:"gpus"` // allocated, else requested; 0 = never seen in time
	Model     string           // requested; "" = any
	Outcome   string
	Submitted *time.Time   `db:"submitted_at"` // or last requeued
	Eligible  *time.Time   `db:"eligible_at"`  // first seen waiting for GPUs
	Started   *time.Time   `db:"started_at"`   // first; nil = never, or not seen
	Done      *time.Time   `db:"done_at"`
	Limit     cluster.Span `db:"limit_ms"` // as Slurm shows it: after a stop, what is left; 0 = none
	Restarts  int
	Others    *int            `db:"others_requeues"`  // of the restarts, those that fairlease did not order; nil = none
	Preempted *int            `db:"others_preempted"` // of these, those that Slurm may have ordered; nil = none
	Alloc     cluster.GPUTime `db:"alloc_gpu_ms"`
	Due       cluster.GPUTime `db:"due_gpu_ms"`
	Lost      cluster.GPUTime `db:"lost_gpu_ms"`
	extraColumns
}

// Preemptions counts the job's requeues that were stops by a scheduler, or may have been.
func (p *PastJob) Preemptions() int { return p.Restarts - orZero(p.Others) + orZero(p.Preempted) }

// Work returns the work that the job received and was due.
func (p *PastJob) Work() (received, due cluster.GPUTime) {
	return p.Alloc + p.Extra, p.Due + p.ExtraDue
}

// PastTenant is a tenant's state in a pool from a moment on.
type PastTenant struct {
	Tenant, Pool string
	At           time.Time
	Rate         cluster.MicroGPU // due, ASTRAEA eq. 8
	Holds        cluster.GPUCount
	Alloc, Due   cluster.GPUTime // since the beginning; work, where a policy divides GPU models
}

// GPUsThen is the number of healthy GPUs from a moment on.
type GPUsThen struct {
	At   time.Time
	GPUs int `db:"gpus"`
}

// Acted sums up the rounds in which fairlease changed something.
type Acted struct {
	Rounds int64
	First  *time.Time `db:"first_at"` // nil = none
	Last   *time.Time `db:"last_at"`
}

// WindowError says that the journal does not cover a window.
type WindowError struct {
	// Oldest and Newest bound the covered time: the rounds whose snapshots are kept.
	Oldest, Newest time.Time
	// Pruned is true where the window begins before Oldest, and there were rounds then.
	Pruned bool
}

func (e *WindowError) Error() string {
	if e.Pruned {
		return fmt.Sprintf("the rounds before %s are pruned", e.Oldest)
	}
	return fmt.Sprintf("there are not two rounds in the window; there are rounds from %s to %s", e.Oldest, e.Newest)
}

// edges is the result of past_edges.
type edges struct {
	First    int64      `db:"first_round"`
	Last     int64      `db:"last_round"`
	Oldest   *int64     `db:"oldest_round"`
	OldestAt *time.Time `db:"oldest_at"`
	NewestAt *time.Time `db:"newest_at"`
}

// endless is later than all rounds.
var endless = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Past gives the window from since until until; where these are zero, from the oldest round with
// a kept snapshot, until the newest. It fails with ErrNone if there is no round at all, and with
// a WindowError if there are none in the window.
func (s Rounds) Past(ctx context.Context, since, until time.Time) (Past, error) {
	const doing = "reading what became of jobs"
	if until.IsZero() {
		until = endless
	}
	found, err := collect[edges](ctx, s.base, doing, pastEdges, since, until)
	if err != nil {
		return Past{}, err
	}
	e := found[0] // there is always one row
	if e.Oldest == nil {
		return Past{}, fmt.Errorf("%s: a round: %w", doing, ErrNone)
	}
	pruned := !since.IsZero() && since.Before(*e.OldestAt) && *e.Oldest > 1
	if pruned || e.First == 0 || e.First >= e.Last {
		return Past{}, &WindowError{Oldest: *e.OldestAt, Newest: *e.NewestAt, Pruned: pruned}
	}
	var p Past
	if p.Begin, err = s.viewer().edge(ctx, e.First); err != nil {
		return Past{}, err
	}
	if p.End, err = s.viewer().edge(ctx, e.Last); err != nil {
		return Past{}, err
	}
	from, to := p.Begin.Plan.At.Time(), p.End.Plan.At.Time()
	if p.Jobs, err = collect[PastJob](ctx, s.base, doing, pastJobs, from, to); err != nil {
		return Past{}, err
	}
	if p.Seen, err = s.seen(ctx, &p); err != nil {
		return Past{}, err
	}
	p.Tenants = s.each(ctx, from, to)
	if p.GPUs, err = collect[GPUsThen](ctx, s.base, doing, pastGPUs, e.First, e.Last); err != nil {
		return Past{}, err
	}
	acted, err := collect[Acted](ctx, s.base, doing, pastActed, e.First, e.Last)
	if err != nil {
		return Past{}, err
	}
	p.Acted = acted[0] // there is always one row
	return p, nil
}

// each reads the tenants' states row by row; an error is the last item.
func (s Rounds) each(ctx context.Context, from, to time.Time) iter.Seq2[PastTenant, error] {
	return func(yield func(PastTenant, error) bool) {
		rows, err := s.pool.Query(ctx, pastStood, from, to)
		if err != nil {
			yield(PastTenant{}, fmt.Errorf("reading how tenants stood: %w", err))
			return
		}
		pastTenants(rows)(yield)
	}
}

// pastTenants reads rows, once, and closes them.
func pastTenants(rows pgx.Rows) iter.Seq2[PastTenant, error] {
	return func(yield func(PastTenant, error) bool) {
		defer rows.Close()
		for rows.Next() {
			var t PastTenant
			// Not by name, which takes three times as long.
			if err := rows.Scan(&t.Tenant, &t.Pool, &t.At, (*int64)(&t.Rate), (*int64)(&t.Holds), (*int64)(&t.Alloc), (*int64)(&t.Due)); err != nil {
				yield(PastTenant{}, fmt.Errorf("reading how tenants stood: %w", err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(PastTenant{}, fmt.Errorf("reading how tenants stood: %w", err))
		}
	}
}

// looks is the number of rounds that Seen uses, in addition to the first and the last.
const looks = 14

// seen reads jobs from rounds that are evenly spaced in a window.
func (s Rounds) seen(ctx context.Context, p *Past) ([]cluster.Case, error) {
	first, last := p.Begin.Plan.Round, p.End.Plan.Round
	of := map[cluster.JobKey]cluster.Case{}
	take := func(cases []cluster.Case) {
		for i := range cases {
			c := cases[i]
			if _, ok := of[c.Record.Key]; !ok || !c.Gone {
				of[c.Record.Key] = c
			}
		}
	}
	take(p.Begin.Snapshot.Cases)
	before, view := first, s.viewer()
	for i := range int64(looks) {
		number := first + (last-first)*(i+1)/(looks+1)
		if number == before || number == last {
			continue
		}
		before = number
		e, err := view.edge(ctx, number)
		switch {
		case errors.Is(err, ErrNone): // its snapshot is not kept
			continue
		case err != nil:
			return nil, err
		}
		take(e.Snapshot.Cases)
	}
	take(p.End.Snapshot.Cases)
	out := slices.Collect(maps.Values(of))
	slices.SortFunc(out, func(a, b cluster.Case) int { return cmp.Compare(a.Record.Key, b.Record.Key) })
	return out, nil
}

func (v *viewer) edge(ctx context.Context, number int64) (e Edge, err error) {
	e.Snapshot, e.Plan, err = v.round(ctx, number)
	return e, err
}
