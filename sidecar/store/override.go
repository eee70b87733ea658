package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// Order is an override with its history.
type Order struct {
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
}

var (
	overridesAt  = sql.Query("overrides_at")
	overrideAdd  = sql.Query("override_add")
	overrideEnd  = sql.Query("override_end")
	overrideList = query[Order]("override_list")
)

// OverridesAt gives the orders in force at now, sorted by id.
func (s *Store) OverridesAt(ctx context.Context, now cluster.Instant) ([]cluster.Override, error) {
	rows, err := s.pool.Query(ctx, overridesAt, now.Time())
	if err != nil {
		return nil, fmt.Errorf("reading the overrides: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o cluster.Override, err error) {
		var until time.Time
		err = row.Scan(&o.ID, &o.Kind, &o.Scope, &o.Name, &until, &o.Reason, &o.By)
		o.Until = cluster.InstantOf(until)
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the overrides: %w", err)
	}
	return all, nil
}

// AddOverride adds an order and returns its id; o.ID is ignored. It refuses orders without a
// name, a future end or a reason.
func (s *Store) AddOverride(ctx context.Context, o cluster.Override) (int64, error) {
	if err := checkOverride(o); err != nil {
		return 0, err
	}
	var id int64
	err := s.pool.QueryRow(ctx, overrideAdd, o.Kind, o.Scope, o.Name, o.Until.Time(), o.Reason, o.By).Scan(&id)
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
	if o.Scope == "job" {
		_, err := cluster.ParseJobID(o.Name)
		return err
	}
	return nil
}

// EndOverride ends an order early.
func (s *Store) EndOverride(ctx context.Context, id int64, by string) error {
	done, err := s.pool.Exec(ctx, overrideEnd, id, by)
	if err != nil {
		return fmt.Errorf("ending override %d: %w", id, denied(err))
	}
	if done.RowsAffected() == 0 {
		return fmt.Errorf("override %d is not in force: it never was, has lapsed or was ended", id)
	}
	return nil
}

// Overrides lists all orders, newest first, at most limit.
func (s *Store) Overrides(ctx context.Context, limit int) ([]Order, error) {
	return collect[Order](ctx, s, "reading the overrides", overrideList, limit)
}
