package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

var (
	pastSpan     = query[span]("past_span")
	pastRecords  = query[pastRecord]("past_records")
	pastAccounts = sql.Query("past_accounts")
	pastEnds     = query[Ends]("past_ends")
)

// span is the rounds of a window.
type span struct {
	First    int64      `db:"first_round"`
	Last     int64      `db:"last_round"`
	FirstAt  *time.Time `db:"first_at"`
	LastAt   *time.Time `db:"last_at"`
	Seen     int64      `db:"seen_round"` // its snapshot is kept
	OldestAt *time.Time `db:"oldest_at"`
	NewestAt *time.Time `db:"newest_at"`
}

// pastRecord is what was known of a job at a moment.
type pastRecord struct {
	Key   cluster.JobKey
	Alloc cluster.GPUTime `db:"alloc_gpu_ms"`
	Lost  cluster.GPUTime `db:"lost_gpu_ms"`
	Stops int
	Holds bool
}

// Ends counts the leases that ran and ended in a window, by why.
type Ends struct {
	Renewed   int64 `json:"renewed"`
	Reclaimed int64 `json:"reclaimed"` // at the end of the term
	Recalled  int64 `json:"recalled"`  // in mid-term, for another job's first lease
	Idle      int64 `json:"idle"`      // of the reclaimed, those whose GPUs idled
}

// Span is Past of a window whose rounds' snapshots may be pruned: both edges come from leases, losses and samples instead, and settings,
// nodes and weights from the newest snapshot that is kept of the window, else from the oldest of all. It needs the history of
// database.keep. Records at the edges have only what a job had received, lost and held by then; Stops counts in Restarts. If the journal
// begins in the window, or ends there, so does the past.
func (s Rounds) Span(ctx context.Context, since, until time.Time) (p Past, ends Ends, err error) {
	const doing = "reading what became of jobs"
	found, err := collect[span](ctx, s.base, doing, pastSpan, since, until)
	if err != nil {
		return p, ends, err
	}
	e := found[0] // there is always one row
	switch {
	case e.Seen == 0 || e.OldestAt == nil:
		return p, ends, fmt.Errorf("%s: a round: %w", doing, ErrNone)
	case e.First >= e.Last:
		return p, ends, &WindowError{Oldest: *e.OldestAt, Newest: *e.NewestAt}
	}
	if p.End.Snapshot, _, err = s.viewer().round(ctx, e.Seen); err != nil {
		return p, ends, err
	}
	p.Seen = p.End.Snapshot.Cases
	if p.Begin.Plan, err = s.edgeAt(ctx, *e.FirstAt); err != nil {
		return p, ends, err
	}
	if p.End.Plan, err = s.edgeAt(ctx, *e.LastAt); err != nil {
		return p, ends, err
	}
	if p.Jobs, err = collect[PastJob](ctx, s.base, doing, pastJobs, *e.FirstAt, *e.LastAt); err != nil {
		return p, ends, err
	}
	p.Tenants = s.each(ctx, *e.FirstAt, *e.LastAt)
	if p.GPUs, err = collect[GPUsThen](ctx, s.base, doing, pastGPUs, e.First, e.Last); err != nil {
		return p, ends, err
	}
	acted, err := collect[Acted](ctx, s.base, doing, pastActed, e.First, e.Last)
	if err != nil {
		return p, ends, err
	}
	p.Acted = acted[0] // there is always one row
	ended, err := collect[Ends](ctx, s.base, doing, pastEnds, *e.FirstAt, *e.LastAt)
	if err != nil {
		return p, ends, err
	}
	return p, ended[0], nil
}

// edgeAt gives what is known of a moment without its round.
func (s Rounds) edgeAt(ctx context.Context, at time.Time) (plan cluster.Plan, err error) {
	const doing = "reading the records of jobs"
	plan.At, plan.State.NextKey = cluster.InstantOf(at), math.MaxInt64
	records, err := collect[pastRecord](ctx, s.base, doing, pastRecords, at)
	if err != nil {
		return plan, err
	}
	for _, r := range records {
		x := cluster.Record{Key: r.Key, Alloc: r.Alloc, Lost: r.Lost, Restarts: r.Stops}
		if r.Holds {
			x.Held = []cluster.ModelSize{{}}
		}
		plan.State.Records = append(plan.State.Records, x)
	}
	rows, err := s.pool.Query(ctx, pastAccounts, at)
	if err != nil {
		return plan, fmt.Errorf("%s: %w", doing, err)
	}
	for t, err := range pastTenants(rows) {
		if err != nil {
			return plan, fmt.Errorf("%s: %w", doing, err)
		}
		plan.State.Ledger.Tenants = append(plan.State.Ledger.Tenants, cluster.TenantPool{Tenant: t.Tenant, Pool: t.Pool, Entitlement: t.Rate, Demand: t.Rate, Alloc: t.Alloc, Due: t.Due})
		plan.Tenants = append(plan.Tenants, cluster.TenantStatus{Tenant: t.Tenant, Pool: t.Pool, Holds: t.Holds})
	}
	return plan, nil
}
