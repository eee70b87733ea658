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
	"github.com/fairlease/fairlease/sidecar/show/chart"
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

// byTerm draws a measure over the lease term, with a line for each interval and window.
func byTerm(trials []score.Trial, best int, lines palette, m measure) figure {
	f := figure{Title: m.Name + " by lease term", Caption: "The large mark is the setting that was chosen: " + settingName(&trials[best], true) + "."}
	f.Chart = &chart.Chart{Title: f.Title, Kind: chart.Lines, X: chart.Axis{Label: "lease term, minutes, log scale", Log: true}, Y: chart.Axis{Label: m.Name + ", " + m.Unit}}
	lo, hi := math.Inf(1), 0.0
	for _, name := range lines {
		var of []*score.Trial
		for i := range trials {
			if _, ok := m.of(trials[i].Scores); ok && settingName(&trials[i], false) == name {
				of = append(of, &trials[i])
			}
		}
		slices.SortFunc(of, func(a, b *score.Trial) int { return cmp.Compare(a.Scores.Term, b.Scores.Term) })
		curve := lines.series(name)
		curve.Points = 6
		for _, t := range of {
			v, _ := m.of(t.Scores)
			curve.X, curve.Y = append(curve.X, termMinutes(t)), append(curve.Y, v)
			lo, hi = min(lo, termMinutes(t)), max(hi, termMinutes(t))
		}
		f.Chart.Series = append(f.Chart.Series, curve)
	}
	if v, ok := m.of(trials[best].Scores); ok {
		f.Chart.Series = append(f.Chart.Series, chart.Series{Name: "chosen", Plain: true, Points: 12, X: chart.Values{termMinutes(&trials[best])}, Y: chart.Values{v}})
		f.Chart.X.Min, f.Chart.X.Max = 0.9*lo, 1.1*hi
	}
	return f
}

// against draws one measure over another: a mark for each setting, named by its term.
func against(trials []score.Trial, best int, lines palette, m, n measure) figure {
	f := figure{Title: n.Name + " against " + m.Name,
		Caption: "Each mark is a setting, with its term in minutes; left and below is better. The large mark is chosen; hovering names the others. The axes do not begin at 0."}
	f.Chart = &chart.Chart{Title: f.Title, Kind: chart.Dots, X: around(trials, m), Y: around(trials, n)}
	for _, name := range lines {
		dots := lines.series(name)
		for i := range trials {
			t := &trials[i]
			a, ok := m.of(t.Scores)
			b, fine := n.of(t.Scores)
			if !ok || !fine || settingName(t, false) != name {
				continue
			}
			dots.X, dots.Y = append(dots.X, a), append(dots.Y, b)
			dots.Tips, dots.Texts = append(dots.Tips, settingName(t, true)), append(dots.Texts, in(t.Scores.Term, cluster.Minute))
			if i == best {
				dots.Large = len(dots.X)
			}
		}
		f.Chart.Series = append(f.Chart.Series, dots)
	}
	return f
}

// around gives an axis that separates all values of a measure.
func around(trials []score.Trial, m measure) chart.Axis {
	var values []float64
	for i := range trials {
		if v, ok := m.of(trials[i].Scores); ok {
			values = append(values, v)
		}
	}
	x := chart.Axis{Label: m.Name + ", " + m.Unit}
	if len(values) > 0 {
		lo, hi := slices.Min(values), slices.Max(values)
		room := max(0.15*(hi-lo), 0.02*hi, 0.01)
		x.Min, x.Max = max(0, lo-room), hi+room
	}
	return x
}

func termMinutes(t *score.Trial) float64 { return float64(t.Scores.Term) / float64(cluster.Minute) }
