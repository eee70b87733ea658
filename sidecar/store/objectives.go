package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/objective"
	"github.com/fairlease/fairlease/sql"
)

// countRow is what is added to a row of objective_days.
type countRow struct {
	Objective objective.Name `json:"objective"`
	Tenant    string         `json:"tenant"`
	Target    float64        `json:"target_percent"`
	Within    *cluster.Span  `json:"within_ms"`
	Total     float64        `json:"total"`
	Bad       float64        `json:"bad"`
}

var (
	objectiveCount = sql.Query("objective_count")
	objectivesNow  = query[Objective]("objectives")
)

// Counter counts events of objectives while its leader leads.
type Counter struct{ Lead *Leadership }

// Count adds events of objectives to those of today. It fails with ErrDeposed when the lead is lost.
func (s Counter) Count(ctx context.Context, counts objective.Counts, targets objective.Targets) error {
	rows := make([]countRow, len(counts))
	for i, c := range counts {
		rows[i] = countRow{Objective: c.Objective, Tenant: c.Tenant, Target: targets.Percent[c.Objective], Total: c.Total, Bad: c.Bad}
		if c.Objective == objective.FirstLease {
			rows[i].Within = &targets.Within
		}
	}
	text, err := rowsText(rows)
	if err == nil {
		err = s.Lead.inTerm(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, objectiveCount, string(text))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("writing the counts of objectives down: %w", err)
	}
	return nil
}

// Objective is how an objective was kept over the last 28 days.
type Objective struct {
	Objective string        `json:"objective"`
	Tenant    string        `json:"tenant"` // "" = the whole site
	Target    float64       `json:"target_percent" db:"target_percent"`
	Within    *cluster.Span `json:"within_ms" db:"within_ms"` // nil = the objective has no such bound
	Total     float64       `json:"total"`
	Bad       float64       `json:"bad"`
	Reached   float64       `json:"reached_percent" db:"reached_percent"`
	Left      float64       `json:"budget_left_percent" db:"budget_left_percent"`
	From      time.Time     `json:"from_day,omitzero" db:"from_day"`
	To        time.Time     `json:"to_day,omitzero" db:"to_day"`
}

// Objectives gives how all objectives were kept, by objective and tenant.
func (s Tenants) Objectives(ctx context.Context) ([]Objective, error) {
	return collect[Objective](ctx, s.base, "reading the objectives", objectivesNow)
}
