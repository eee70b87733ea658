package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// tradeoff is the input of a sweep's template.
type tradeoff struct {
	Title, Rule, Chosen string
	Saves               string  // how jobs are assumed to save; "" = unknown
	Loss                float64 // the bound on a job's rho
	Figures             []figure
	Head                []measure
	Rows                []tradeoffRow
}

type tradeoffRow struct {
	Name   string
	Cells  []string
	Chosen bool
	Why    string
}

// Tradeoff writes one page about a sweep of settings: plots of fairness, completion time and
// overhead over the term, a plot of one measure over another, and a table with the rule's verdict
// on each setting. The error is w's.
func Tradeoff(w io.Writer, title string, trials []score.Trial, rule score.Rule) error {
	best, why := rule.Choose(trials)
	p := tradeoff{Title: title, Rule: rule.String(), Head: sweepMeasures(trials)}
	for i := range trials {
		p.Loss, p.Saves = trials[i].Scores.Loss.Below, trials[i].Scores.Saves
		row := tradeoffRow{Name: settingName(&trials[i], true), Chosen: i == best, Why: why[i]}
		for _, m := range p.Head {
			row.Cells = append(row.Cells, m.Text(trials[i].Scores))
		}
		p.Rows = append(p.Rows, row)
	}
	if best >= 0 {
		p.Chosen = settingName(&trials[best], true)
		p.Figures = tradeoffFigures(trials, best, p.Head)
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "tradeoff.html", p); err != nil {
		return err
	}
	return safely(w, b.Bytes())
}

// sweepMeasures are those that judge a sweep.
func sweepMeasures(trials []score.Trial) []measure {
	out := []measure{completionMean, lossShare, overheadOfRun}
	if len(trials) > 0 {
		for i, p := range trials[0].Scores.Periods {
			out = append(out, unfair(i, p.Hours))
		}
	}
	return out
}

// settingName names a trial, with its term or as a line of a plot over the term.
func settingName(t *score.Trial, term bool) string {
	name := fmt.Sprintf("interval %s s, window %s d", in(t.Scores.Interval, cluster.Second), in(t.Window, cluster.Day))
	if term {
		return fmt.Sprintf("term %s min, %s", in(t.Scores.Term, cluster.Minute), name)
	}
	return name
}

// in gives a span as a number of units.
func in(s, unit cluster.Span) string {
	return strconv.FormatFloat(float64(s)/float64(unit), 'f', -1, 64)
}

func tradeoffFigures(trials []score.Trial, best int, measures []measure) []figure {
	var lines palette
	for i := range trials {
		if name := settingName(&trials[i], false); !slices.Contains(lines, name) {
			lines = append(lines, name)
		}
	}
	out := []figure{against(trials, best, lines, completionMean, lossShare)}
	for _, m := range measures {
		out = append(out, byTerm(trials, best, lines, m))
	}
	return out
}

func (p palette) keys() []key {
	if len(p) < 2 {
		return nil
	}
	var out []key
	for _, name := range p {
		out = append(out, key{p.class(name), name})
	}
	return out
}

// byTerm draws a measure over the lease term, with a line for each interval and window.
func byTerm(trials []score.Trial, best int, lines palette, m measure) figure {
	x := axis{label: "lease term, minutes, log scale", log: true}
	top := 0.0
	for i := range trials {
		v, _ := m.of(trials[i].Scores)
		top = max(top, v)
		x.ticks = append(x.ticks, termMinutes(&trials[i]))
	}
	slices.Sort(x.ticks)
	x.ticks = slices.Compact(x.ticks)
	x.lo, x.hi = 0.9*x.ticks[0], 1.1*x.ticks[len(x.ticks)-1]
	f := figure{Title: m.Name + " by lease term", Legend: lines.keys(), Caption: "The large mark is the setting that was chosen: " + settingName(&trials[best], true) + "."}
	f.Plot = newPlot(f.Title, x, axis{label: m.Name + ", " + m.Unit, hi: niceTop(top, ySteps)})
	for _, name := range lines {
		var of []*score.Trial
		for i := range trials {
			if _, ok := m.of(trials[i].Scores); ok && settingName(&trials[i], false) == name {
				of = append(of, &trials[i])
			}
		}
		slices.SortFunc(of, func(a, b *score.Trial) int { return cmp.Compare(a.Scores.Term, b.Scores.Term) })
		var xs, ys []float64
		for _, t := range of {
			v, _ := m.of(t.Scores)
			xs, ys = append(xs, f.Plot.x.at(termMinutes(t))), append(ys, f.Plot.y.at(v))
			f.Plot.dot(lines.class(name), xs[len(xs)-1], ys[len(ys)-1], t == &trials[best], settingName(t, true)+": "+m.Text(t.Scores)+" "+m.Unit)
		}
		f.Plot.path("line "+lines.class(name), polyline(xs, ys), name)
	}
	return f
}

// against draws one measure over another: a mark for each setting, named by its term.
func against(trials []score.Trial, best int, lines palette, m, n measure) figure {
	x, y := around(trials, m), around(trials, n)
	f := figure{Title: n.Name + " against " + m.Name, Legend: lines.keys(),
		Caption: "Each mark is a setting, with its term in minutes; left and below is better. The large mark is chosen; hovering names the others. The axes do not begin at 0."}
	f.Plot = newPlot(f.Title, x, y)
	order := []int{best} // its name has precedence
	for i := range trials {
		if i != best {
			order = append(order, i)
		}
	}
	var names [][2]float64 // positions of names
	for _, i := range order {
		t := &trials[i]
		a, ok := m.of(t.Scores)
		b, fine := n.of(t.Scores)
		if !ok || !fine {
			continue
		}
		px, py := f.Plot.x.at(a), f.Plot.y.at(b)
		f.Plot.dot(lines.class(settingName(t, false)), px, py, i == best, settingName(t, true))
		if slices.ContainsFunc(names, func(n [2]float64) bool { return math.Abs(n[0]-px) < 3*letter && math.Abs(n[1]-py) < 12 }) {
			continue // it would overlap another; hovering shows it
		}
		names = append(names, [2]float64{px, py})
		f.Plot.text("tick mid", px, py-8, in(t.Scores.Term, cluster.Minute), "")
	}
	return f
}

// around gives an axis that separates all values of a measure.
func around(trials []score.Trial, m measure) axis {
	var values []float64
	for i := range trials {
		if v, ok := m.of(trials[i].Scores); ok {
			values = append(values, v)
		}
	}
	lo, hi := slices.Min(values), slices.Max(values)
	room := max(0.15*(hi-lo), 0.02*hi, 0.01)
	return axis{label: m.Name + ", " + m.Unit, lo: max(0, lo-room), hi: hi + room}
}

func termMinutes(t *score.Trial) float64 { return float64(t.Scores.Term) / float64(cluster.Minute) }

// dot marks a point, a large one if it is the best.
func (p *plot) dot(class string, x, y float64, large bool, tip string) {
	size := 2.5
	if large {
		size = 5
	}
	p.path("area "+class, box(x-size, y-size, x+size, y+size), tip)
}
