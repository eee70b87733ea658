package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// Override is one with its history.
type Override struct {
	ID      int64      `json:"id"`
	Kind    string     `json:"kind"`
	Scope   string     `json:"scope"`
	Name    string     `json:"name"`
	Until   time.Time  `json:"until,omitzero" db:"until_at"`
	Reason  string     `json:"reason"`
	By      string     `json:"by"`
	Created time.Time  `json:"created,omitzero" db:"created_at"`
	Ended   *time.Time `json:"ended,omitempty" db:"ended_at"`
	EndedBy *string    `json:"ended_by,omitempty"`
	// The job that it is for: see cluster.Override. They are nil for users and tenants.
	JobKey    *cluster.JobKey `json:"job_key,omitempty"`
	JobUser   *string         `json:"job_user,omitempty"`
	Submitted *time.Time      `json:"job_submitted,omitempty" db:"job_submitted_at"`
}

// For reports whether an order is for a job, or for its user or tenant.
func (o *Override) For(j *Job) bool {
	switch o.Scope {
	case "user":
		return o.Name == j.User
	case "tenant":
		return o.Name == j.Tenant
	}
	array, _, _ := strings.Cut(j.SlurmID, "_")
	if o.Name != j.SlurmID && o.Name != array || o.JobKey == nil {
		return false
	}
	return j.Key <= *o.JobKey || o.JobUser != nil && *o.JobUser == j.User && o.Submitted != nil && j.Submitted != nil && !j.Submitted.After(*o.Submitted)
}

var (
	overridesAt  = sql.Query("overrides_at")
	overrideAdd  = sql.Query("override_add")
	overrideEnd  = sql.Query("override_end")
	overrideOver = sql.Query("override_lapse")
	jobOfID      = query[Target]("override_target")
	overrideList = query[Override]("override_list")
)

// At gives the orders in force at now, sorted by id.
func (s Overrides) At(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	rows, err := s.pool.Query(ctx, overridesAt, now.Time())
	if err != nil {
		return nil, fmt.Errorf("reading the overrides: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o cluster.Override, err error) {
		var until time.Time
		var submitted *time.Time
		err = row.Scan(&o.ID, &o.Kind, &o.Scope, &o.Name, &until, &o.Reason, &o.By, &o.Job, &o.User, &submitted)
		if o.Until = cluster.InstantOf(until); submitted != nil {
			o.Submit = cluster.InstantOf(*submitted)
		}
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the overrides: %w", err)
	}
	return all, nil
}

// Target is the job, or the tasks of an array, that an override for an id would be for.
type Target struct {
	Key       cluster.JobKey `db:"key"` // the highest
	User      string         `db:"user_name"`
	Submitted *time.Time     `db:"submitted_at"` // the first
	Waiting   int            `db:"waiting"`      // jobs or tasks that wait
	Running   int            `db:"running"`      // that run, or clean up
	Done      *time.Time     `db:"done_at"`      // when the last one ended; nil unless all have
}

// TargetOf gives the newest job with an id, or all tasks of the newest array with it; ErrNone if there never was one.
func (s Overrides) TargetOf(ctx context.Context, id cluster.JobID) (Target, error) {
	_, task := id.Index()
	all, err := collect[Target](ctx, s.base, "looking for job "+id.String(), jobOfID, id.ID, id.String(), !task)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("job %s: %w", id, ErrNone)
	}
	if err != nil {
		return Target{}, err
	}
	return all[0], nil
}

// Add adds an order and returns its id; o.ID is ignored. It refuses orders without a
// name, a future end or a reason, and those for an id without a job (see TargetOf).
func (s Overrides) Add(ctx context.Context, o cluster.Override) (int64, error) {
	if err := checkOverride(o); err != nil {
		return 0, err
	}
	var id int64
	err := s.pool.QueryRow(ctx, overrideAdd, o.Kind, o.Scope, o.Name, o.Until.Time(), o.Reason, o.By, o.Job, o.User, stampOf(o.Submit)).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("writing the override down: %w", denied(err))
	}
	return id, nil
}

func checkOverride(o cluster.Override) error {
	switch {
	case !slices.Contains([]cluster.OverrideKind{cluster.Exempt, cluster.Boost, cluster.Freeze}, o.Kind):
		return fmt.Errorf("an override is exempt, boost or freeze, not %q", o.Kind)
	case !slices.Contains([]string{"job", "user", "tenant"}, o.Scope):
		return fmt.Errorf("an override is for a job, a user or a tenant, not for a %q", o.Scope)
	case o.Name == "":
		return fmt.Errorf("the override does not say for which %s", o.Scope)
	case o.Reason == "":
		return fmt.Errorf("an override needs a reason: others will ask")
	case o.By == "":
		return fmt.Errorf("the override does not say who orders it")
	case !o.Until.Time().After(time.Now()):
		return fmt.Errorf("the override ends at %s, which is past: give an end to come", o.Until)
	}
	if o.Scope != "job" {
		return nil
	}
	if _, err := cluster.ParseJobID(o.Name); err != nil {
		return err
	}
	if o.Job == 0 || o.User == "" {
		return fmt.Errorf("the override does not say which job has the id %s", o.Name)
	}
	return nil
}

// stampOf gives a moment for a column; nil = unknown.
func stampOf(t cluster.Instant) *time.Time {
	if t == 0 {
		return nil
	}
	at := t.Time()
	return &at
}

// endOverrides ends orders whose jobs have ended.
func endOverrides(ctx context.Context, tx pgx.Tx, ends []cluster.OverrideEnd) error {
	for _, e := range ends {
		if _, err := tx.Exec(ctx, overrideOver, e.ID, "fairlease: "+e.Why); err != nil {
			return fmt.Errorf("ending override %d: %w", e.ID, err)
		}
	}
	return nil
}

// End ends an order early.
func (s Overrides) End(ctx context.Context, id int64, by string) error {
	done, err := s.pool.Exec(ctx, overrideEnd, id, by)
	if err != nil {
		return fmt.Errorf("ending override %d: %w", id, denied(err))
	}
	if done.RowsAffected() == 0 {
		return fmt.Errorf("override %d is not in force: it never was, has lapsed or was ended", id)
	}
	return nil
}

// List lists all orders, newest first, at most limit.
func (s Overrides) List(ctx context.Context, limit int) ([]Override, error) {
	return collect[Override](ctx, s.base, "reading the overrides", overrideList, limit)
}
