package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// figure is a plot with its texts.
type figure struct {
	Title, Caption string
	Plot           *plot
	Legend         []key
	Areas          bool // the legend is of areas, not of lines
}

// key is a line of a legend; Class gives its colour and dashes.
type key struct{ Class, Name string }

// palette gives each name the same colour on the whole page.
type palette []string

const colours = 8

func (p palette) class(name string) string {
	i := max(0, slices.Index(p, name))
	return fmt.Sprintf("c%d d%d", i%colours, i/(colours/2)%4)
}

func (p palette) legend(runs []score.Scores) []key {
	var out []key
	for _, s := range runs {
		out = append(out, key{p.class(s.Scheduler), s.Scheduler})
	}
	return out
}

// largest gives the maximum of f over the runs.
func largest(runs []score.Scores, f func(score.Scores) float64) float64 {
	v := 0.0
	for _, s := range runs {
		v = max(v, f(s))
	}
	return v
}

// cdf draws a curve for each run from values at equal steps of share. A curve ends at the edge of
// the plot.
func cdf(label string, runs []score.Scores, p palette, x axis, values func(score.Scores) []float64) *plot {
	out := newPlot(label, x, axis{label: "% of jobs at or below", hi: 100})
	for _, s := range runs {
		var xs, ys []float64
		all := values(s)
		for i, v := range all {
			share := float64(i)
			if v > x.hi {
				share = max(0, share-1)
			}
			xs, ys = append(xs, out.x.at(v)), append(ys, out.y.at(100*share/float64(len(all)-1)))
			if v > x.hi {
				break
			}
		}
		out.path("line "+p.class(s.Scheduler), stairs(xs, ys), s.Scheduler)
	}
	return out
}

func jobRho(g group, p palette) figure {
	top := min(max(1.5, niceTop(largest(g.Runs, func(s score.Scores) float64 { return s.JobRho.Q3 }), xSteps)), 4)
	below := g.Runs[0].Loss.Below
	f := figure{Title: lossShare.title(fmt.Sprintf("Jobs by rho, fewest left of %g", below), g.Runs), Legend: p.legend(g.Runs),
		Caption: fmt.Sprintf("Rho of jobs: GPU time received over GPU time due. Left of the mark at %g is a sharing loss; the lower a curve is there, the fairer.", below)}
	f.Plot = cdf(f.Title, g.Runs, p, axis{label: "rho of a job", hi: top}, func(s score.Scores) []float64 { return s.JobRhoCDF })
	f.Plot.reference(below)
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
	f := figure{Title: slowdownMean.title("Smallest mean slowdown", g.Runs), Legend: p.legend(g.Runs),
		Caption: "Completion time over run time alone: 1 is a job that never waited. The higher a curve, the less waiting."}
	f.Plot = cdf(f.Title, g.Runs, p, axis{label: "slowdown, ×, log scale", lo: low, hi: high, log: true}, func(s score.Scores) []float64 { return s.SlowdownCDF })
	return f
}

// bars draws a measure with a labelled bar for each run.
func bars(title, caption string, m measure, g group, p palette) figure {
	var names []string
	top := 0.0
	for _, s := range g.Runs {
		v, _ := m.of(s)
		names, top = append(names, s.Scheduler), max(top, v)
	}
	f := figure{Title: m.title(title, g.Runs), Caption: caption}
	f.Plot = newRows(f.Title, names, axis{label: m.Name + ", " + m.Unit, hi: niceTop(top, xSteps)}, 50)
	for i, s := range g.Runs {
		v, ok := m.of(s)
		x, y := f.Plot.x.at(v), f.Plot.rows[i]
		if ok {
			f.Plot.path("area "+p.class(s.Scheduler), box(f.Plot.x.a, y-5.5, x, y+5.5), s.Scheduler)
		}
		f.Plot.text("value", x+4, y+4, m.Text(s), "")
	}
	return f
}

// timeAxis gives an axis for so many seconds from the run's start, in days, hours or minutes, and
// that unit in seconds.
func timeAxis(seconds float64) (axis, float64) {
	unit, name := 60.0, "minutes"
	switch {
	case seconds > 3*86400:
		unit, name = 86400, "days"
	case seconds > 3*3600:
		unit, name = 3600, "hours"
	}
	return axis{label: name + " since the start", hi: max(seconds/unit, 1e-3)}, unit
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
	x.label = "submitted, " + x.label
	f := figure{Title: delayMean.title("Shortest mean queueing delay", g.Runs), Legend: p.legend(g.Runs),
		Caption: "Mean delay of the jobs submitted in the " + strconv.FormatFloat(window/3600, 'g', 2, 64) + " h before each moment: all the time that they held no GPU. Unfinished jobs are not in it."}
	f.Plot = newPlot(f.Title, x, axis{label: "mean delay, " + name, hi: niceTop(top/unit, ySteps)})
	for i, s := range g.Runs {
		var xs, ys []float64
		values, k := thin(means[i], 260)
		for n, v := range values {
			xs = append(xs, f.Plot.x.at(min(float64((n+1)*k), float64(len(means[i])))*s.Arrivals.Step/second))
			ys = append(ys, f.Plot.y.at(v/unit))
		}
		f.Plot.path("line "+p.class(s.Scheduler), polyline(xs, ys), s.Scheduler)
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
	boxTenants = 30          // rows of a plot of boxes
	useTenants = colours - 1 // layers of a plot of use, and one for the rest
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
	top = min(niceTop(top, xSteps), 5)
	var out []figure
	for _, s := range g.Runs {
		f := figure{Title: s.Scheduler, Caption: m.Text(s) + " " + m.Unit + " are unfair"}
		f.Plot = newRows("rho of tenants with "+s.Scheduler, names, axis{label: "rho over periods of " + length(s.Periods[0].Hours), hi: top}, 14)
		f.Plot.reference(1)
		for i, name := range names {
			k := slices.IndexFunc(s.Tenants, func(t score.Tenant) bool { return t.Tenant == name })
			if k >= 0 && s.Tenants[k].Periods[0].Rho.Count > 0 {
				f.Plot.box(i, s.Tenants[k].Periods[0].Rho, name)
			}
		}
		out = append(out, f)
	}
	return out
}

// box draws quartiles and extremes in a row; values beyond the axis get an arrow.
func (p *plot) box(row int, r score.Stats, name string) {
	x, y := p.x, p.rows[row]
	tip := fmt.Sprintf("%s: min %.2f, quartiles %.2f, %.2f, %.2f, max %.2f over %d periods", name, r.Min, r.Q1, r.Median, r.Q3, r.Max, r.Count)
	p.path("whisker", line(x.at(r.Min), y, x.at(r.Max), y), tip)
	p.path("box", box(x.at(r.Q1), y-5, max(x.at(r.Q3), x.at(r.Q1)+1), y+5), tip)
	p.path("median", line(x.at(r.Median), y-5, x.at(r.Median), y+5), tip)
	if r.Max > x.hi {
		p.path("arrow", "M"+px(x.b)+" "+px(y-4)+"l6 4l-6 4Z", tip)
	}
}

// use draws, for each run, the tenants' GPUs over time: the largest tenants and the rest,
// stacked, under the line of healthy GPUs.
func use(g group) ([]figure, []key) {
	names, all := largestTenants(g.Runs, useTenants)
	var legend []key
	for i, n := range names {
		legend = append(legend, key{fmt.Sprintf("c%d", i), n})
	}
	if rest := all - len(names); rest > 0 {
		legend = append(legend, key{fmt.Sprintf("c%d", useTenants), fmt.Sprintf("%d other tenants", rest)})
	}
	top := niceTop(largest(g.Runs, func(s score.Scores) float64 { return largestOf(s.Use.Capacity) }), ySteps)
	x, second := timeAxis(duration(g.Runs))
	var out []figure
	for _, s := range g.Runs {
		f := figure{Title: s.Scheduler, Caption: fmt.Sprintf("%.1f %% of GPU time in use", 100*s.Utilisation)}
		f.Plot = newPlot("GPUs in use over time with "+s.Scheduler, x, axis{label: "GPUs held", hi: top})
		f.Plot.layers(s, s.Use.Used, s.Use.Capacity, s.Use.Tenants, names, legend, second)
		out = append(out, f)
	}
	return out, legend
}

// useByModel draws the same for each run and GPU model, if there are several. The line is that
// model's GPUs.
func useByModel(g group, legend []key) []figure {
	names, _ := largestTenants(g.Runs, useTenants)
	x, second := timeAxis(duration(g.Runs))
	var out []figure
	for _, s := range g.Runs {
		for i, m := range s.Use.Models {
			gpus, held := s.Models[i].GPUs, 0.0
			for _, t := range s.Tenants {
				held += t.On[i].Held
			}
			hours := float64(max(s.To.Sub(s.From), 1)) / float64(cluster.Hour)
			f := figure{Title: m.Model + " with " + s.Scheduler, Caption: fmt.Sprintf("%.1f of %d GPUs held on average", held/hours, gpus)}
			f.Plot = newPlot("GPUs of model "+m.Model+" in use over time with "+s.Scheduler, x, axis{label: "GPUs held", hi: niceTop(float64(gpus), ySteps)})
			f.Plot.layers(s, m.Used, slices.Repeat([]float64{float64(gpus)}, len(m.Used)), m.Tenants, names, legend, second)
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

// layers draws the stack from its outline, all GPUs in use, down to the lowest layer: each covers
// the area above its own upper edge.
func (p *plot) layers(s score.Scores, used, capacity []float64, tenants []score.Line, names []string, legend []key, second float64) {
	edge := make([]float64, len(used))
	edges := [][]float64{}
	for _, name := range names {
		for _, l := range tenants {
			for i := range edge {
				if l.Tenant == name {
					edge[i] += l.GPUs[i]
				}
			}
		}
		edges = append(edges, slices.Clone(edge))
	}
	edges = append(edges, used)
	long := float64(s.To.Sub(s.From)) / 1000 / second
	for i := len(edges) - 1; i >= 0; i-- {
		if i < len(legend) {
			xs, ys := p.steps(edges[i], s.Use.Step/second, long)
			p.path("area "+legend[i].Class, stairs(append([]float64{p.x.a}, xs...), append([]float64{p.y.a}, ys...))+"V"+px(p.y.a)+"Z", legend[i].Name)
		}
	}
	xs, ys := p.steps(capacity, s.Use.Step/second, long)
	p.path("capacity", stairs(xs, ys), "healthy GPUs")
}

// steps gives the pixels of a series with steps of that width on the x axis, ending at long,
// thinned.
func (p *plot) steps(values []float64, width, long float64) (xs, ys []float64) {
	few, k := thin(values, useSteps)
	for i, v := range few {
		xs, ys = append(xs, p.x.at(float64(i*k)*width)), append(ys, p.y.at(v))
	}
	if len(few) > 0 {
		xs, ys = append(xs, p.x.at(long)), append(ys, ys[len(ys)-1])
	}
	return xs, ys
}

// sweep draws a measure over the size of the cluster (ASTRAEA Fig. 14).
func sweep(title string, m measure, sizes []group, p palette) figure {
	x := axis{label: "GPUs in the cluster", lo: float64(sizes[0].GPUs), hi: float64(sizes[len(sizes)-1].GPUs)}
	top := 0.0
	var runs []score.Scores // one of each scheduler, for the legend
	for _, g := range sizes {
		x.ticks = append(x.ticks, float64(g.GPUs))
		for _, s := range g.Runs {
			v, _ := m.of(s)
			top = max(top, v)
			if !slices.ContainsFunc(runs, func(r score.Scores) bool { return r.Scheduler == s.Scheduler }) {
				runs = append(runs, s)
			}
		}
	}
	f := figure{Title: title, Legend: p.legend(runs)}
	if len(sizes[0].Runs) > 1 {
		f.Caption = "On " + sizes[0].Size() + ", best is " + m.winners(sizes[0].Runs) + "."
		if m.best(sizes[0].Runs) == "" {
			f.Caption = "On " + sizes[0].Size() + " there is no difference."
		}
	}
	f.Plot = newPlot(title, x, axis{label: m.Name + ", " + m.Unit, hi: niceTop(top, ySteps)})
	for _, r := range runs {
		var xs, ys []float64
		for _, g := range sizes {
			for _, s := range g.Runs {
				v, ok := m.of(s)
				if s.Scheduler != r.Scheduler || !ok {
					continue
				}
				xs, ys = append(xs, f.Plot.x.at(float64(g.GPUs))), append(ys, f.Plot.y.at(v))
				f.Plot.path("area "+p.class(r.Scheduler), box(xs[len(xs)-1]-2.5, ys[len(ys)-1]-2.5, xs[len(xs)-1]+2.5, ys[len(ys)-1]+2.5),
					fmt.Sprintf("%s on %d GPUs: %s %s", s.Scheduler, g.GPUs, m.Text(s), m.Unit))
			}
		}
		f.Plot.path("line "+p.class(r.Scheduler), polyline(xs, ys), r.Scheduler)
	}
	return f
}
