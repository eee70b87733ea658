package monthly

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Report is a tenant's month.
type Report struct {
	*store.Month
	Cluster string    // "" = unknown
	Begin   time.Time // of the month
	Until   time.Time // end of the month, or now if that is earlier
	// Prices are those of a GPU hour by model; nil = GPU time has no price.
	Prices map[string]float64
	Models []Model // by name
	Users  []User  // the most GPU time first
}

// Model is the GPU time on a model. Own and Borrowed add up to Time.
type Model struct {
	Name                                 string
	Time, Own, Borrowed, Lent, Got, Gave cluster.GPUTime
	Idle                                 cluster.GPUTime
	ByDay                                []cluster.GPUTime
}

// User is a user of the tenant.
type User struct {
	Name       string // "" = jobs that are not known any more
	Time       cluster.GPUTime
	ByModel    map[string]cluster.GPUTime
	Idle, Lost cluster.GPUTime
	Waits      []float64 // seconds, ascending
}

// Parse reads a month, such as 2026-10, and gives its begin and end, UTC.
func Parse(text string) (begin, end time.Time, err error) {
	begin, err = time.Parse("2006-01", text)
	if err != nil {
		err = fmt.Errorf("%q is no month: write one like 2026-10", text)
	}
	return begin, begin.AddDate(0, 1, 0), err
}

// Of makes the report of a month. prices count where the tenant had no budget; nil = GPU time has no price then.
func Of(m *store.Month, begin, now time.Time, cluster string, prices map[string]float64) *Report {
	r := &Report{Month: m, Cluster: cluster, Begin: begin, Until: begin.AddDate(0, 1, 0), Prices: prices}
	if now.Before(r.Until) {
		r.Until = now
	}
	if m.Budget != nil {
		r.Prices = m.Budget.Prices
	}
	if len(r.Prices) == 0 {
		r.Prices = nil
	}
	r.fill()
	return r
}

// fill sums up by model and by user.
func (r *Report) fill() {
	days := int(r.Until.Sub(r.Begin)/(24*time.Hour)) + 1
	models, users := map[string]*Model{}, map[string]*User{}
	model := func(name string) *Model {
		if models[name] == nil {
			models[name] = &Model{Name: name, ByDay: make([]cluster.GPUTime, days)}
		}
		return models[name]
	}
	user := func(name string) *User {
		if users[name] == nil {
			users[name] = &User{Name: name, ByModel: map[string]cluster.GPUTime{}}
		}
		return users[name]
	}
	for _, c := range r.Charges {
		m, u := model(c.Model), user(c.User)
		m.Time, u.Time, u.ByModel[c.Model] = m.Time+c.Time, u.Time+c.Time, u.ByModel[c.Model]+c.Time
		if day := int(c.Day.Sub(r.Begin) / (24 * time.Hour)); day < days {
			m.ByDay[day] += c.Time
		}
	}
	for _, l := range r.Lending {
		m := model(l.Model)
		m.Lent, m.Borrowed = l.Lent, min(l.Borrowed, m.Time) // borrowed GPUs count from the grant, charged ones from the start
	}
	for _, t := range r.Trades {
		m := model(t.Model)
		m.Got, m.Gave = t.Got, t.Gave
	}
	for _, i := range r.Month.Idle {
		model(i.Model).Idle += i.Time
		user(i.User).Idle += i.Time
	}
	for _, l := range r.Month.Lost {
		user(l.User).Lost += l.Time
	}
	for _, w := range r.Month.Waits {
		u := user(w.User)
		u.Waits = append(u.Waits, w.Seconds)
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		models[name].Own = models[name].Time - models[name].Borrowed
		r.Models = append(r.Models, *models[name])
	}
	for _, u := range users {
		r.Users = append(r.Users, *u)
	}
	slices.SortFunc(r.Users, func(a, b User) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
}

// sum adds up a number over all models.
func (r *Report) sum(of func(*Model) cluster.GPUTime) (sum cluster.GPUTime) {
	for i := range r.Models {
		sum += of(&r.Models[i])
	}
	return sum
}

// Time is the GPU time on all models.
func (r *Report) Time() cluster.GPUTime {
	return r.sum(func(m *Model) cluster.GPUTime { return m.Time })
}

// Idle is the GPU time that jobs held idle.
func (r *Report) Idle() cluster.GPUTime {
	return r.sum(func(m *Model) cluster.GPUTime { return m.Idle })
}

// Lost is the GPU time that stops destroyed. It is not part of Time.
func (r *Report) Lost() (sum cluster.GPUTime) {
	for _, l := range r.Month.Lost {
		sum += l.Time
	}
	return sum
}

// Waits are how long jobs waited for their first leases, in seconds, ascending.
func (r *Report) Waits() []float64 {
	out := make([]float64, len(r.Month.Waits))
	for i, w := range r.Month.Waits {
		out[i] = w.Seconds
	}
	return out
}

// Price is that of a GPU hour of a model.
func (r *Report) Price(model string) float64 {
	if price, ok := r.Prices[model]; ok {
		return price
	}
	return 1
}

// CostOf is the GPU time on a model at its price.
func (r *Report) CostOf(m Model) float64 { return m.Time.Hours() * r.Price(m.Name) }

// Cost is the GPU time at prices.
func (r *Report) Cost() (sum float64) {
	for i := range r.Models {
		sum += r.CostOf(r.Models[i])
	}
	return sum
}

// Rho is the work received over the work due; false = nothing was due.
func (r *Report) Rho() (float64, bool) { return r.Received / max(r.Due, 1), r.Due > 0 }

// quantile gives the value below which a part of ascending values lies, by linear interpolation; 0 without values.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	at := part * float64(len(values)-1)
	low := int(at)
	high := min(low+1, len(values)-1)
	return values[low] + (at-float64(low))*(values[high]-values[low])
}
