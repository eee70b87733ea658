// Package spending counts what tenants use of their budgets.
//
// A budget is GPU hours for a period of the calendar, at prices by GPU model. An account is a budget in one period. A tenant
// has used the GPU time that its jobs received since the period began, by the accounts of fairness (SEMANTICS §2): work
// that stops destroyed does not count.
package spending

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/cluster/localtime"
)

// Per is the length of a period.
type Per string

// The lengths. Periods begin at 00:00 on Monday, on the first of a month, of January, April, July and October, and of January.
const (
	Week    Per = "week"
	Month   Per = "month"
	Quarter Per = "quarter"
	Year    Per = "year"
)

// Pers lists the lengths as words.
var Pers = []string{string(Week), string(Month), string(Quarter), string(Year)}

// AtEnd says what follows when a budget is used up.
type AtEnd string

// Warn tells people. IdleOnly lets the tenant have only GPUs that would be idle otherwise. Refuse does, too, and before that the
// submit plugin refuses jobs that may use more than is left.
const (
	Warn     AtEnd = "warn"
	IdleOnly AtEnd = "idle-only"
	Refuse   AtEnd = "refuse"
)

// AtEnds lists these as words.
var AtEnds = []string{string(Warn), string(IdleOnly), string(Refuse)}

// Budget is what a tenant may use in a period.
type Budget struct {
	Tenant string
	Hours  float64            // GPU hours at prices
	Prices map[string]float64 // by GPU model; a model that is not named costs 1
	Per    Per
	Zone   *time.Location // of the calendar
	AtEnd  AtEnd
}

// Price returns the price of a GPU hour of a model.
func (b *Budget) Price(model string) float64 {
	if price, ok := b.Prices[model]; ok {
		return price
	}
	return 1
}

// same tells whether two budgets are alike.
func (b *Budget) same(o *Budget) bool {
	return b.Tenant == o.Tenant && b.Hours == o.Hours && b.Per == o.Per && b.AtEnd == o.AtEnd && fmt.Sprint(b.Prices) == fmt.Sprint(o.Prices)
}

// Period returns the begin and the end of the period that contains a moment.
func (b *Budget) Period(at cluster.Instant) (start, end cluster.Instant) {
	t := localtime.Reached(at.Time().In(b.Zone)) // midnight may have come already, and clocks been set back to the day before
	year, month, day := t.Date()
	days, months := 0, 0
	switch b.Per {
	case Week:
		day -= (int(t.Weekday()) + 6) % 7
		days = 7
	case Quarter:
		month, day, months = month-(month-1)%3, 1, 3
	case Year:
		month, day, months = 1, 1, 12
	default:
		day, months = 1, 1
	}
	from := localtime.Date(year, month, day, 0, 0, b.Zone)
	return cluster.InstantOf(from), cluster.InstantOf(localtime.Date(year, month+time.Month(months), day+days, 0, 0, b.Zone))
}

// Account is a budget in one period.
type Account struct {
	Budget
	Start, End cluster.Instant
	// Base is what the tenant had received when the period began, since the beginning of the journal; Received is what it
	// has received since then, up to At. Both are by GPU model.
	Base, Received map[string]cluster.GPUTime
	At             cluster.Instant
	Used           float64         // GPU hours at prices
	Warned, Spent  cluster.Instant // when 80 % and 100 % were used; 0 = not yet
	Told           int             // the largest limit that an event has told, in percent
}

// Limits are the percents of a budget that are told when they are reached.
var Limits = []int{80, 100}

// Standing is what a tenant has received of a GPU model since the beginning of the journal, and how many GPUs it holds.
type Standing struct {
	Model    string
	Received cluster.GPUTime
	Holds    cluster.GPUCount
}

// Count brings an account up to now. standing is as of at; what runs then is taken to run until now.
func (a *Account) Count(standing []Standing, at, now cluster.Instant) {
	a.At, a.Used = max(now, at), 0
	a.Received = make(map[string]cluster.GPUTime, len(standing))
	for _, s := range standing {
		got := max(s.Received+cluster.MicroGPU(s.Holds).Over(max(now.Sub(at), 0))-a.Base[s.Model], 0)
		if got > 0 {
			a.Received[s.Model] = got
		}
		a.Used += got.Hours() * a.Price(s.Model)
	}
	a.mark()
}

// mark notes which limits have been reached. A limit stays reached until the budget changes.
func (a *Account) mark() {
	if a.Warned == 0 && a.Percent() >= 80 {
		a.Warned = a.At
	}
	if a.Spent == 0 && a.Percent() >= 100 {
		a.Spent = a.At
	}
}

// Percent returns how much of the budget is used.
func (a *Account) Percent() float64 { return 100 * a.Used / a.Hours }

// change replaces the budget. Limits are reached or not by the new one; those that are not will be told again.
func (a *Account) change(to *Budget) {
	a.Budget, a.Used = *to, 0
	for model, got := range a.Received {
		a.Used += got.Hours() * a.Price(model)
	}
	if a.Percent() < 80 {
		a.Warned, a.Told = 0, 0
	}
	if a.Percent() < 100 {
		a.Spent, a.Told = 0, min(a.Told, 80)
	}
	a.mark()
}

// Reached returns the largest limit that has been reached; 0 = none.
func (a *Account) Reached() int {
	switch {
	case a.Spent > 0:
		return 100
	case a.Warned > 0:
		return 80
	}
	return 0
}

// State returns what the engine needs to know.
func (a *Account) State() (s cluster.TenantBudget) {
	if a.Spent > 0 && a.AtEnd != Warn {
		s.Since, s.Until = a.Spent, a.End
	}
	if reached := a.Reached(); reached > a.Told {
		s.News = fmt.Sprintf("tenant %s has used %d %% of its budget of %s GPU-hours for the %s from %s", a.Tenant, reached,
			strconv.FormatFloat(a.Hours, 'f', -1, 64), a.Per, a.Start.Time().In(a.Zone).Format(time.DateOnly))
		if s.Since > 0 {
			s.News += "; until " + a.End.Time().In(a.Zone).Format(time.DateTime) + " it gets only GPUs that no other tenant wants"
		}
	}
	return s
}

// Book is the accounts of all budgets, by tenant.
type Book []Account

// Configure brings the accounts to the budgets of the configuration, and drops those whose period is over. It returns the budgets that
// have no account yet.
func (b Book) Configure(budgets []Budget, now cluster.Instant) (kept Book, missing []Budget) {
	for i := range budgets {
		budget := &budgets[i]
		start, end := budget.Period(now)
		k := slices.IndexFunc(b, func(a Account) bool { return a.Tenant == budget.Tenant && a.Start == start && a.End == end })
		if k < 0 {
			missing = append(missing, *budget)
			continue
		}
		a := b[k]
		if a.Zone = budget.Zone; !a.same(budget) {
			a.change(budget)
		}
		kept = append(kept, a)
	}
	slices.SortFunc(kept, func(x, y Account) int { return cmp.Compare(x.Tenant, y.Tenant) })
	return kept, missing
}

// States returns the states of the tenants about which there is something to say; nil = there is nothing.
func (b Book) States() map[string]cluster.TenantBudget {
	var out map[string]cluster.TenantBudget
	for i := range b {
		if s := b[i].State(); s != (cluster.TenantBudget{}) {
			if out == nil {
				out = map[string]cluster.TenantBudget{}
			}
			out[b[i].Tenant] = s
		}
	}
	return out
}
