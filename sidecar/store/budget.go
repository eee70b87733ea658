package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/spending"
	"github.com/fairlease/fairlease/sql"
)

// budgetRow is a row of budget_periods as it is written.
type budgetRow struct {
	Tenant   string         `json:"tenant"`
	Start    stamp          `json:"start_at"`
	End      stamp          `json:"end_at"`
	Current  bool           `json:"current"`
	Per      spending.Per   `json:"per"`
	Hours    float64        `json:"gpu_hours"`
	Prices   document       `json:"prices"`
	AtEnd    spending.AtEnd `json:"at_end"`
	Base     document       `json:"base_gpu_ms"`
	Received document       `json:"received_gpu_ms"`
	Used     float64        `json:"used_gpu_hours"`
	At       stamp          `json:"at"`
	Warned   stamp          `json:"warned_at"`
	Spent    stamp          `json:"spent_at"`
	Told     int            `json:"told_percent"`
}

var (
	budgetAccounts = sql.Query("budget_accounts")
	budgetPut      = query[budgetRow]("budget_put")
	budgetRetire   = sql.Query("budget_retire")
	budgetBase     = sql.Query("budget_base")
	budgetsNow     = query[Budget]("budgets")
)

// Accounts gives what the journal has of the present periods of budgets. Their calendar is that of the host.
func (s Tenants) Accounts(ctx context.Context) (spending.Book, error) {
	rows, err := s.pool.Query(ctx, budgetAccounts)
	if err != nil {
		return nil, fmt.Errorf("reading the budgets: %w", denied(err))
	}
	var out spending.Book
	var a spending.Account
	var start, end, at time.Time
	var warned, spent *time.Time
	_, err = pgx.ForEachRow(rows, []any{&a.Tenant, &start, &end, &a.Per, &a.Hours, &a.Prices, &a.AtEnd, &a.Base, &a.Received, &a.Used, &at, &warned, &spent, &a.Told}, func() error {
		a.Start, a.End, a.At, a.Warned, a.Spent = cluster.InstantOf(start), cluster.InstantOf(end), cluster.InstantOf(at), instantOf(warned), instantOf(spent)
		a.Zone = time.Local
		out = append(out, a)
		a.Prices, a.Base, a.Received = nil, nil, nil // the next row has its own
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the budgets: %w", denied(err))
	}
	return out, nil
}

// OpenAccount gives the account of a budget in the period that contains a moment. The GPU time that the tenant
// had received before is read from the history. Count the account before use.
func (s Tenants) OpenAccount(ctx context.Context, b spending.Budget, at cluster.Instant) (spending.Account, error) {
	a := spending.Account{Budget: b, Base: map[string]cluster.GPUTime{}}
	a.Start, a.End = b.Period(at)
	rows, err := s.pool.Query(ctx, budgetBase, b.Tenant, a.Start.Time())
	if err != nil {
		return a, fmt.Errorf("reading what tenant %s had received before its budget's period: %w", b.Tenant, err)
	}
	var model string
	var received cluster.GPUTime
	if _, err := pgx.ForEachRow(rows, []any{&model, (*int64)(&received)}, func() error { a.Base[model] = received; return nil }); err != nil {
		return a, fmt.Errorf("reading what tenant %s had received before its budget's period: %w", b.Tenant, err)
	}
	return a, nil
}

// Spend writes the accounts of the present periods down; others are not current any more. It fails with ErrDeposed when the lead is
// lost.
func (s *Leadership) Spend(ctx context.Context, book spending.Book) error {
	rows := make([]budgetRow, len(book))
	for i := range book {
		a := &book[i]
		rows[i] = budgetRow{Tenant: a.Tenant, Start: stamp(a.Start), End: stamp(a.End), Current: true, Per: a.Per, Hours: a.Hours, Prices: mapping(a.Prices),
			AtEnd: a.AtEnd, Base: mapping(a.Base), Received: mapping(a.Received), Used: a.Used, At: stamp(a.At), Warned: stamp(a.Warned), Spent: stamp(a.Spent), Told: a.Told}
	}
	text, err := rowsText(rows)
	if err == nil {
		err = s.inTerm(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, budgetPut, string(text)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, budgetRetire, string(text))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("writing the budgets down: %w", err)
	}
	return nil
}

// mapping gives a mapping as JSON; none as an empty one.
func mapping[V any](m map[string]V) document {
	if m == nil {
		return "{}"
	}
	return documentOf(m)
}

// Budget is what a tenant has used of its budget in the present period. Hours count prices.
type Budget struct {
	Tenant     string                     `json:"tenant"`
	Per        string                     `json:"per"`
	Start      time.Time                  `json:"start_at,omitzero" db:"start_at"`
	End        time.Time                  `json:"end_at,omitzero" db:"end_at"`
	Hours      float64                    `json:"gpu_hours" db:"gpu_hours"`
	Used       float64                    `json:"used_gpu_hours" db:"used_gpu_hours"`
	Percent    float64                    `json:"used_percent" db:"used_percent"`
	AtEnd      string                     `json:"at_end" db:"at_end"`
	Prices     map[string]float64         `json:"prices"`
	Received   map[string]cluster.GPUTime `json:"received_gpu_ms" db:"received_gpu_ms"`
	PerDay     float64                    `json:"gpu_hours_per_day" db:"gpu_hours_per_day"`
	UsedUp     *time.Time                 `json:"used_up_at" db:"used_up_at"` // was, or will be at that rate; nil = never
	EndPercent float64                    `json:"end_percent" db:"end_percent"`
	Warned     *time.Time                 `json:"warned_at" db:"warned_at"`
	Spent      *time.Time                 `json:"spent_at" db:"spent_at"`
	IdleOnly   bool                       `json:"idle_only" db:"idle_only"`
	AsOf       time.Time                  `json:"as_of,omitzero" db:"as_of"`
}

// Budgets gives the budgets of all tenants, by name, or of one; "" = all.
func (s Tenants) Budgets(ctx context.Context, tenant string) ([]Budget, error) {
	return collect[Budget](ctx, s.base, "reading the budgets", budgetsNow, tenant)
}
