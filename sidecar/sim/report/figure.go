package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// figure is a chart with its texts.
type figure struct {
	Title, Caption string
	Chart          *chart.Chart
}

// palette gives each name the same colour and dashes on the whole page.
type palette []string

func (p palette) series(name string) chart.Series {
	i := max(0, slices.Index(p, name))
	return chart.Series{Name: name, Colour: i % chart.Colours, Dash: i / (chart.Colours / 2) % chart.Dashes}
}

// largest gives the maximum of f over the runs.
func largest(runs []score.Scores, f func(score.Scores) float64) float64 {
	v := 0.0
	for _, s := range runs {
		v = max(v, f(s))
	}
	return v
}

// cdf draws a curve for each run from values at equal steps of share. Of equal values the last counts.
func cdf(title string, runs []score.Scores, p palette, x chart.Axis, values func(score.Scores) []float64) *chart.Chart {
	out := &chart.Chart{Title: title, Kind: chart.Lines, X: x, Y: chart.Axis{Label: "% of jobs at or below", Max: 100}}
	for _, s := range runs {
		curve, all := p.series(s.Scheduler), values(s)
		curve.Steps = true
		for i, v := range all {
			if v = max(v, x.Min); i+1 < len(all) && all[i+1] == v {
				continue
			}
			curve.X, curve.Y = append(curve.X, v), append(curve.Y, 100*float64(i)/float64(len(all)-1))
		}
		out.Series = append(out.Series, curve)
	}
	return out
}

func jobRho(g group, p palette) figure {
	top := min(max(1.5, NiceTop(largest(g.Runs, func(s score.Scores) float64 { return s.JobRho.Q3 }), xSteps)), 4)
	below := g.Runs[0].Loss.Below
	f := figure{Title: lossShare.title(fmt.Sprintf("Jobs by rho, fewest left of %g", below), g.Runs),
		Caption: fmt.Sprintf("Rho of jobs: GPU time received over GPU time due. Left of the mark at %g is a sharing loss; the lower a curve is there, the fairer.", below)}
	f.Chart = cdf(f.Title, g.Runs, p, chart.Axis{Label: "rho of a job", Max: top}, func(s score.Scores) []float64 { return s.JobRhoCDF })
	f.Chart.Marks = []float64{below}
	return f
}

func slowdown(g group, p palette) figure {
	low, high := 1.0, 10.0
	for _, s := range g.Runs {
		if s.Slowdown.Count > 0 && s.Slowdown.Q1 < 1 {
			low = 0.1 // GPUs faster than that of the run times
		}
		for high < min(s.Slowdown.P99, 1e6) {
			high *= 10
		}
	}
	f := figure{Title: slowdownMean.title("Smallest mean slowdown", g.Runs),
		Caption: "Completion time over run time alone: 1 is a job that never waited. The higher a curve, the less waiting."}
	f.Chart = cdf(f.Title, g.Runs, p, chart.Axis{Label: "slowdown, ×, log scale", Min: low, Max: high, Log: true}, func(s score.Scores) []float64 { return s.SlowdownCDF })
	return f
}

// bars draws a measure with a labelled bar for each run.
func bars(title, caption string, m measure, g group, p palette) figure {
	f := figure{Title: m.title(title, g.Runs), Caption: caption}
	f.Chart = &chart.Chart{Title: f.Title, Kind: chart.Bars, X: chart.Axis{Label: m.Name + ", " + m.Unit}}
	bar := chart.Series{Name: m.Name + ", " + m.Unit}
	for _, s := range g.Runs {
		v, ok := m.of(s)
		if !ok {
			v = math.NaN()
		}
		f.Chart.Rows = append(f.Chart.Rows, s.Scheduler)
		bar.Y, bar.Texts, bar.Colours = append(bar.Y, v), append(bar.Texts, m.Text(s)), append(bar.Colours, p.series(s.Scheduler).Colour)
	}
	f.Chart.Series = []chart.Series{bar}
	return f
}

// timeAxis gives an axis for so many seconds from the run's start, in days, hours or minutes, and
// that unit in seconds.
func timeAxis(seconds float64) (chart.Axis, float64) {
	unit, name := 60.0, "minutes"
	switch {
	case seconds > 3*86400:
		unit, name = 86400, "days"
	case seconds > 3*3600:
		unit, name = 3600, "hours"
	}
	return chart.Axis{Label: name + " since the start", Max: max(seconds/unit, 1e-3)}, unit
}

// duration gives the duration of the longest run, in seconds.
func duration(runs []score.Scores) float64 {
	return largest(runs, func(s score.Scores) float64 { return float64(s.To.Sub(s.From)) / 1000 })
}

// delay draws the moving average of queueing delay over the time of submission
// (HiveD Fig. 5: 12 hours), or over a 24th of a run that is shorter than two days.
func delay(g group, p palette) figure {
	long := duration(g.Runs)
	window := 12 * 3600.0
	if long < 2*86400 {
		window = long / 24
	}
	top, means := 0.0, make([][]float64, len(g.Runs))
	for i, s := range g.Runs {
		means[i] = moving(s.Arrivals, window)
		for _, v := range means[i] {
			if !math.IsNaN(v) {
				top = max(top, v)
			}
		}
	}
	unit, name := 3600.0, "h"
	if top < 2*3600 {
		unit, name = 60, "min"
	}
	x, second := timeAxis(largest(g.Runs, func(s score.Scores) float64 { return s.Arrivals.Step * float64(len(s.Arrivals.Jobs)) }))
	x.Label = "submitted, " + x.Label
	f := figure{Title: delayMean.title("Shortest mean queueing delay", g.Runs),
		Caption: "Mean delay of the jobs submitted in the " + strconv.FormatFloat(window/3600, 'g', 2, 64) + " h before each moment: all the time that they held no GPU. Unfinished jobs are not in it."}
	f.Chart = &chart.Chart{Title: f.Title, Kind: chart.Lines, X: x, Y: chart.Axis{Label: "mean delay, " + name}}
	for i, s := range g.Runs {
		curve := p.series(s.Scheduler)
		values, k := thin(means[i], 260)
		for n, v := range values {
			curve.X = append(curve.X, min(float64((n+1)*k), float64(len(means[i])))*s.Arrivals.Step/second)
			curve.Y = append(curve.Y, v/unit)
		}
		f.Chart.Series = append(f.Chart.Series, curve)
	}
	return f
}

// moving gives, at the end of each step, the mean wait of the jobs submitted in the
// window before; NaN where there were none.
func moving(a score.Arrivals, window float64) []float64 {
	k := max(1, int(math.Round(window/a.Step)))
	out := make([]float64, len(a.Jobs))
	var jobs int64
	for i := range a.Jobs {
		jobs += a.Jobs[i]
		if i >= k {
			jobs -= a.Jobs[i-k]
		}
		sum := 0.0 // recomputed, to avoid accumulated rounding
		for _, w := range a.Wait[max(0, i-k+1) : i+1] {
			sum += w
		}
		out[i] = math.NaN()
		if jobs > 0 {
			out[i] = sum / float64(jobs)
		}
	}
	return out
}

// largestTenants gives the tenants with the most GPU time due or received in any run, by name, at
// most n; and the number of all tenants.
func largestTenants(runs []score.Scores, n int) ([]string, int) {
	most := map[string]float64{}
	var names []string
	for _, s := range runs {
		for _, t := range s.Tenants {
			if _, ok := most[t.Tenant]; !ok {
				names = append(names, t.Tenant)
			}
			most[t.Tenant] = max(most[t.Tenant], t.Due, t.Alloc)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b)) })
	all := len(names)
	names = names[:min(n, all)]
	slices.Sort(names)
	return names, all
}

const (
	boxTenants = 30                // rows of a plot of boxes
	useTenants = chart.Colours - 1 // layers of a plot of use, and one for the rest
	useSteps   = 150
)

// boxes draws, for each run, the spread of each tenant's rho over its periods of
// the first length (ASTRAEA Fig. 11).
func boxes(g group) []figure {
	names, all := largestTenants(g.Runs, boxTenants)
	if all == 0 || len(g.Runs[0].Periods) == 0 {
		return nil
	}
	m := unfair(0, g.Runs[0].Periods[0].Hours)
	top := 2.0
	for _, s := range g.Runs {
		for _, t := range s.Tenants {
			top = max(top, t.Periods[0].Rho.Q3)
		}
	}
	top = min(NiceTop(top, xSteps), 5)
	var out []figure
	for _, s := range g.Runs {
		f := figure{Title: s.Scheduler, Caption: m.Text(s) + " " + m.Unit + " are unfair"}
		f.Chart = &chart.Chart{Title: "rho of tenants with " + s.Scheduler, Kind: chart.Boxes, Rows: names, Marks: []float64{1},
			X: chart.Axis{Label: "rho over periods of " + length(s.Periods[0].Hours), Max: top}}
		spread := chart.Series{Name: "rho"}
		for _, name := range names {
			var rho score.Stats
			if k := slices.IndexFunc(s.Tenants, func(t score.Tenant) bool { return t.Tenant == name }); k >= 0 {
				rho = s.Tenants[k].Periods[0].Rho
			}
			spread.Boxes = append(spread.Boxes, chart.Box{Min: rho.Min, Q1: rho.Q1, Median: rho.Median, Q3: rho.Q3, Max: rho.Max, Count: rho.Count})
			spread.Tips = append(spread.Tips, fmt.Sprintf("%s: min %.2f, quartiles %.2f, %.2f, %.2f, max %.2f over %d periods", name, rho.Min, rho.Q1, rho.Median, rho.Q3, rho.Max, rho.Count))
		}
		f.Chart.Series = []chart.Series{spread}
		out = append(out, f)
	}
	return out
}

// use draws, for each run, the tenants' GPUs over time: the largest tenants and the rest,
// stacked, under the line of healthy GPUs.
func use(g group) []figure {
	top := largest(g.Runs, func(s score.Scores) float64 { return largestOf(s.Use.Capacity) })
	var out []figure
	for _, s := range g.Runs {
		f := figure{Title: s.Scheduler, Caption: fmt.Sprintf("%.1f %% of GPU time in use", 100*s.Utilisation)}
		f.Chart = layers(g, s, s.Use.Used, s.Use.Capacity, s.Use.Tenants)
		f.Chart.Title, f.Chart.Y.Max = "GPUs in use over time with "+s.Scheduler, NiceTop(top, ySteps)
		out = append(out, f)
	}
	return out
}

// useByModel draws the same for each run and GPU model, if there are several. The line is that
// model's GPUs.
func useByModel(g group) []figure {
	var out []figure
	for _, s := range g.Runs {
		for i, m := range s.Use.Models {
			gpus, held := s.Models[i].GPUs, 0.0
			for _, t := range s.Tenants {
				held += t.On[i].Held
			}
			hours := float64(max(s.To.Sub(s.From), 1)) / float64(cluster.Hour)
			f := figure{Title: m.Model + " with " + s.Scheduler, Caption: fmt.Sprintf("%.1f of %d GPUs held on average", held/hours, gpus)}
			f.Chart = layers(g, s, m.Used, slices.Repeat([]float64{float64(gpus)}, len(m.Used)), m.Tenants)
			f.Chart.Title, f.Chart.Y.Max = "GPUs of model "+m.Model+" in use over time with "+s.Scheduler, NiceTop(float64(gpus), ySteps)
			out = append(out, f)
		}
	}
	return out
}

func largestOf(values []float64) float64 {
	v := 0.0
	for _, x := range values {
		v = max(v, x)
	}
	return v
}

// layers stacks the largest tenants' GPUs and those of the rest, under the line of all GPUs.
func layers(g group, s score.Scores, used, capacity []float64, tenants []score.Line) *chart.Chart {
	names, all := largestTenants(g.Runs, useTenants)
	x, second := timeAxis(duration(g.Runs))
	long := float64(s.To.Sub(s.From)) / 1000 / second
	out := &chart.Chart{Kind: chart.Areas, X: x, Y: chart.Axis{Label: "GPUs held"}}
	add := func(layer chart.Series, values []float64) {
		layer.Steps = true
		layer.X, layer.Y = steps(values, s.Use.Step/second, long)
		out.Series = append(out.Series, layer)
	}
	rest := slices.Clone(used)
	for i, name := range names {
		gpus := make([]float64, len(used))
		for _, l := range tenants {
			if l.Tenant == name {
				gpus = l.GPUs
			}
		}
		for k := range rest {
			rest[k] -= gpus[k]
		}
		add(chart.Series{Name: name, Colour: i}, gpus)
	}
	if others := all - len(names); others > 0 {
		add(chart.Series{Name: fmt.Sprintf("%d other tenants", others), Colour: useTenants}, rest)
	}
	add(chart.Series{Name: "healthy GPUs", Over: true, Plain: true}, capacity)
	return out
}

// steps gives a series with steps of that width, ending at long, thinned.
func steps(values []float64, width, long float64) (xs, ys chart.Values) {
	few, k := thin(values, useSteps)
	for i, v := range few {
		xs, ys = append(xs, float64(i*k)*width), append(ys, v)
	}
	if n := len(few); n > 0 && xs[n-1] < long {
		xs, ys = append(xs, long), append(ys, ys[n-1])
	}
	return xs, ys
}

// sweep draws a measure over the size of the cluster (ASTRAEA Fig. 14).
func sweep(title string, m measure, sizes []group, p palette) figure {
	var runs []score.Scores // one of each scheduler, for the legend
	for _, g := range sizes {
		for _, s := range g.Runs {
			if !slices.ContainsFunc(runs, func(r score.Scores) bool { return r.Scheduler == s.Scheduler }) {
				runs = append(runs, s)
			}
		}
	}
	f := figure{Title: title, Chart: &chart.Chart{Title: title, Kind: chart.Lines,
		X: chart.Axis{Label: "GPUs in the cluster"}, Y: chart.Axis{Label: m.Name + ", " + m.Unit}}}
	if len(sizes[0].Runs) > 1 {
		f.Caption = "On " + sizes[0].Size() + ", best is " + m.winners(sizes[0].Runs) + "."
		if m.best(sizes[0].Runs) == "" {
			f.Caption = "On " + sizes[0].Size() + " there is no difference."
		}
	}
	for _, r := range runs {
		curve := p.series(r.Scheduler)
		curve.Points = 6
		for _, g := range sizes {
			for _, s := range g.Runs {
				if v, ok := m.of(s); ok && s.Scheduler == r.Scheduler {
					curve.X, curve.Y = append(curve.X, float64(g.GPUs)), append(curve.Y, v)
				}
			}
		}
		f.Chart.Series = append(f.Chart.Series, curve)
	}
	return f
}

// thin averages neighbours until at most n values are left, and gives the number of values per
// result. A NaN is no value.
func thin(values []float64, n int) ([]float64, int) {
	k := (len(values) + n - 1) / n
	if k <= 1 {
		return values, 1
	}
	var out []float64
	for i := 0; i < len(values); i += k {
		part := values[i:min(i+k, len(values))]
		sum, count := 0.0, 0.0
		for _, v := range part {
			if !math.IsNaN(v) {
				sum, count = sum+v, count+1
			}
		}
		out = append(out, sum/count) // 0/0 is NaN again
	}
	return out, k
}

// Steps between ticks, at most.
const xSteps, ySteps = 8, 5

// NiceStep gives 1, 2 or 5 times a power of ten that cuts a range into at most n steps.
func NiceStep(width float64, n int) float64 {
	power := math.Pow(10, math.Floor(math.Log10(width/float64(n))))
	for _, f := range []float64{1, 2, 5} {
		if f*power*float64(n) >= width*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// NiceTop gives an end on a tick for an axis from 0.
func NiceTop(v float64, n int) float64 {
	if v <= 0 {
		return 1
	}
	step := NiceStep(v, n)
	return math.Ceil(v/step-1e-6) * step
}
