package monthly

import (
	"embed"
	"html/template"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/show/view"
)

//go:embed page.html
var files embed.FS

// The script and the style go into the page, which is one file. Nothing of a tenant is in them.
var page = template.Must(chart.AddTo(template.New("").Funcs(template.FuncMap{
	"script":  func() template.JS { return template.JS(chart.Script()) },
	"style":   func() template.CSS { return template.CSS(chart.Style()) },
	"license": chart.License,
	"hours":   func(t cluster.GPUTime) string { return view.Hours(t.Hours()) },
	"units":   view.Hours,
	"day":     func(t time.Time) string { return t.Format("2 Jan 2006 15:04 MST") },
	"wait":    wait,
	"p50":     func(w []float64) string { return wait(quantile(w, 0.5)) },
	"p90":     func(w []float64) string { return wait(quantile(w, 0.9)) },
})).ParseFS(files, "page.html"))

// Page writes the page.
func (r *Report) Page(out io.Writer) error { return page.ExecuteTemplate(out, "page", r) }

// wait words a wait.
func wait(seconds float64) string {
	return cluster.Span(seconds * float64(cluster.Second)).String()
}

// Name is that of the month.
func (r *Report) Name() string { return r.Begin.Format("January 2006") }

// Whole tells whether the month is over.
func (r *Report) Whole() bool { return !r.Until.Before(r.Begin.AddDate(0, 1, 0)) }

// RhoText is rho for people.
func (r *Report) RhoText() string {
	rho, ok := r.Rho()
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(rho, 'f', 2, 64)
}

// BudgetPercent is how much of the budget is used.
func (r *Report) BudgetPercent() string {
	return strconv.FormatFloat(100*r.Budget.Used/r.Budget.Hours, 'f', 0, 64)
}

// Traded tells whether there were trades.
func (r *Report) Traded() bool { return len(r.Trades) > 0 }

// Part is the part of a number in all GPU time, in percent.
func (r *Report) Part(t cluster.GPUTime) string {
	return strconv.FormatFloat(100*float64(t)/math.Max(float64(r.Time()), 1), 'f', 1, 64)
}

// axis is that of plots over the month.
func (r *Report) axis() chart.Axis {
	return chart.Axis{Label: "UTC", Time: true, Min: float64(r.Begin.Unix()), Max: float64(r.Begin.AddDate(0, 1, 0).Unix())}
}

// days are the begins of the days up to now, and the end of the last one.
func (r *Report) days() (out chart.Values) {
	for t := r.Begin; t.Before(r.Until); t = t.AddDate(0, 0, 1) {
		out = append(out, float64(t.Unix()))
	}
	return append(out, float64(r.Until.Unix()))
}

// ByDay plots the GPU hours of each day by model.
func (r *Report) ByDay() *chart.Chart {
	c := &chart.Chart{Title: "GPU hours a day, by model", Kind: chart.Areas, Wide: true, X: r.axis(), Y: chart.Axis{Label: "GPU hours a day"}}
	x := r.days()
	for i := range r.Models {
		m := &r.Models[i]
		y := make(chart.Values, len(x))
		for k := range y {
			y[k] = m.ByDay[min(k, len(x)-2, len(m.ByDay)-1)].Hours()
		}
		c.Series = append(c.Series, chart.Series{Name: m.Name, Colour: i, Steps: true, X: x, Y: y})
	}
	return c
}

// Against plots the GPUs held against those due, as means of six hours.
func (r *Report) Against() *chart.Chart {
	const step = 6 * time.Hour
	n := int(r.Until.Sub(r.Begin)/step) + 1
	type standing struct{ holds, due float64 }
	seen, now := map[string]map[int]standing{}, map[string]standing{}
	for _, s := range r.Steps {
		if seen[s.Model] == nil {
			seen[s.Model] = map[int]standing{}
		}
		seen[s.Model][int(s.At.Sub(r.Begin)/step)] = standing{s.Holds, s.Due}
	}
	x, holds, due := make(chart.Values, n), make(chart.Values, n), make(chart.Values, n)
	for k := range n {
		x[k] = float64(r.Begin.Add(time.Duration(k) * step).Unix())
		for model, steps := range seen {
			if s, ok := steps[k]; ok {
				now[model] = s
			}
			holds[k], due[k] = holds[k]+now[model].holds, due[k]+now[model].due
		}
	}
	return &chart.Chart{Title: "GPUs held against due", Kind: chart.Areas, Wide: true, X: r.axis(), Y: chart.Axis{Label: "GPUs"}, Series: []chart.Series{
		{Name: "held", Colour: 0, Steps: true, X: x, Y: holds}, {Name: "due and wanted", Over: true, Plain: true, Steps: true, X: x, Y: due}}}
}

// mostUsers is the number of users in the plot.
const mostUsers = 12

// ByUser plots the GPU hours of users.
func (r *Report) ByUser() *chart.Chart {
	c := &chart.Chart{Title: "GPU hours by user", Kind: chart.Bars, X: chart.Axis{Label: "GPU hours"}}
	users := r.Users[:min(len(r.Users), mostUsers)]
	s := chart.Series{Name: "GPU hours"}
	for i := range users {
		c.Rows = append(c.Rows, users[i].Shown())
		s.Y, s.Texts = append(s.Y, users[i].Time.Hours()), append(s.Texts, view.Hours(users[i].Time.Hours()))
	}
	c.Series = []chart.Series{s}
	return c
}

// Shown is the name of a user for people.
func (u *User) Shown() string {
	if u.Name == "" {
		return "(jobs not known any more)"
	}
	return u.Name
}

// Burn plots what was used of the budget since the month began, where the budget is per month.
func (r *Report) Burn() *chart.Chart {
	if r.Budget == nil || r.Budget.Per != "month" {
		return nil
	}
	c := &chart.Chart{Title: "Budget used", Kind: chart.Lines, Wide: true, X: r.axis(), Y: chart.Axis{Label: "GPU hours at prices"}}
	x := r.days()
	used, sum := make(chart.Values, len(x)), 0.0
	for k := range x {
		used[k] = sum
		for i := range r.Models {
			if m := &r.Models[i]; k < len(m.ByDay) {
				sum += m.ByDay[k].Hours() * r.Price(m.Name)
			}
		}
	}
	c.Series = []chart.Series{{Name: "used", Colour: 0, X: x, Y: used},
		{Name: "budget", Plain: true, X: chart.Values{c.X.Min, c.X.Max}, Y: chart.Values{r.Budget.Hours, r.Budget.Hours}}}
	return c
}
