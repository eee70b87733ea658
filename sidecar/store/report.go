package store

import (
	"context"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sql"
)

// Month is all that the journal tells of a tenant in a month. GPU time is as in the view gpu_hours: the days are of UTC.
type Month struct {
	Tenant  string
	Charges []Charge
	Lending []Lent
	Trades  []Traded
	Waits   []Wait // ascending
	Lost    []LostBy
	Idle    []IdleBy
	// Received and Due are work: GPU time where no policy divides GPU models. Their ratio is rho.
	Received, Due float64
	Steps         []Step      // of six hours, by model
	Budget        *PastBudget // of the newest period that touches the month; nil = none
}

// Charge is the GPU time of a user on a day.
type Charge struct {
	Day   time.Time
	User  string `db:"user_name"` // "" = of jobs that are not known any more
	Model string
	Time  cluster.GPUTime `db:"gpu_ms"`
}

// Lent is the GPU time that a tenant lent to others, and borrowed from them.
type Lent struct {
	Model    string
	Lent     cluster.GPUTime `db:"lent_gpu_ms"`
	Borrowed cluster.GPUTime `db:"borrowed_gpu_ms"`
}

// Traded is the entitlement that a tenant got and gave by trades.
type Traded struct {
	Model string
	Got   cluster.GPUTime `db:"got_gpu_ms"`
	Gave  cluster.GPUTime `db:"gave_gpu_ms"`
}

// Step is the mean of GPUs held and due in six hours. A step that is missing is like the one before.
type Step struct {
	Model      string
	At         time.Time
	Holds, Due float64
}

// Wait is how long a job waited for its first lease.
type Wait struct {
	User    string `db:"user_name"`
	Seconds float64
}

// LostBy is the work of a user that stops destroyed.
type LostBy struct {
	User  string `db:"user_name"`
	Stops int64
	Time  cluster.GPUTime `db:"gpu_ms"`
}

// IdleBy is the GPU time that jobs of a user held idle.
type IdleBy struct {
	User  string `db:"user_name"`
	Model string
	Time  cluster.GPUTime `db:"gpu_ms"`
}

// PastBudget is a budget in a period.
type PastBudget struct {
	Per    string
	Start  time.Time `db:"start_at"`
	End    time.Time `db:"end_at"`
	Hours  float64   `db:"gpu_hours"`
	Used   float64   `db:"used_gpu_hours"`
	Prices map[string]float64
	AtEnd  string     `db:"at_end"`
	Spent  *time.Time `db:"spent_at"`
}

var (
	reportTenants = sql.Query("report_tenants")
	reportCharges = sql.Query("report_charges")
	reportLending = sql.Query("report_lending")
	reportTrades  = sql.Query("report_trades")
	reportWaits   = sql.Query("report_waits")
	reportLost    = sql.Query("report_lost")
	reportIdle    = sql.Query("report_idle")
	reportRho     = sql.Query("report_rho")
	reportShares  = sql.Query("report_shares")
	reportBudget  = sql.Query("report_budget")
)

// MonthTenants gives the tenants that received or lent GPU time between two days, by name.
func (s Tenants) MonthTenants(ctx context.Context, from, until time.Time) ([]string, error) {
	rows, err := collect[struct{ Tenant string }](ctx, s.base, "reading the tenants of a month", reportTenants, from, until)
	var out []string
	for _, r := range rows {
		out = append(out, r.Tenant)
	}
	return out, err
}

// Month gives what the journal tells of a tenant between two midnights, UTC.
func (s Tenants) Month(ctx context.Context, tenant string, from, until time.Time) (*Month, error) {
	m := &Month{Tenant: tenant}
	var rho []struct{ Received, Due float64 }
	var budgets []PastBudget
	var err error
	readMonth(ctx, s.base, reportCharges, m, from, until, &m.Charges, &err)
	readMonth(ctx, s.base, reportLending, m, from, until, &m.Lending, &err)
	readMonth(ctx, s.base, reportTrades, m, from, until, &m.Trades, &err)
	readMonth(ctx, s.base, reportWaits, m, from, until, &m.Waits, &err)
	readMonth(ctx, s.base, reportLost, m, from, until, &m.Lost, &err)
	readMonth(ctx, s.base, reportIdle, m, from, until, &m.Idle, &err)
	readMonth(ctx, s.base, reportShares, m, from, until, &m.Steps, &err)
	readMonth(ctx, s.base, reportRho, m, from, until, &rho, &err)
	readMonth(ctx, s.base, reportBudget, m, from, until, &budgets, &err)
	if err != nil {
		return nil, err
	}
	for _, r := range rho {
		m.Received, m.Due = r.Received, r.Due
	}
	if len(budgets) > 0 {
		m.Budget = &budgets[0]
	}
	return m, nil
}

// readMonth reads the rows of a query into a part of a report, unless another part could not be read.
func readMonth[T any](ctx context.Context, b *base, query string, m *Month, from, until time.Time, into *[]T, err *error) {
	if *err == nil {
		*into, *err = collect[T](ctx, b, "reading the report of a month", query, m.Tenant, from, until)
	}
}
