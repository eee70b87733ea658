package report

import (
	"bytes"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
)

// Chart is a reproduced figure of a paper.
type Chart struct {
	Name   string // of its file
	Title  string
	Theirs string // the paper's result, and its place
	Ours   string // our result
	Panels []Panel
}

// Panel is one plot of a chart. With Names it has a bar for each name of each curve, and their X
// are ignored; else lines.
type Panel struct {
	Title, X, Y string // with bars, Y is their quantity
	Log         bool   // both axes; all values > 0
	LogX        bool   // the X axis; all X > 0
	Names       []string
	Curves      []Curve
}

// Curve is a line of a panel; X ascends, and Y is as long as X, or as the names.
type Curve struct {
	Name string
	X, Y []float64
}

// Charts writes one page with all charts. The error is w's.
func Charts(w io.Writer, title string, charts []Chart) error {
	type part struct {
		Chart
		Figures []figure
	}
	page := struct {
		Title  string
		Charts []part
	}{Title: title}
	for _, c := range charts {
		p := part{Chart: c}
		for i := range c.Panels {
			p.Figures = append(p.Figures, c.Panels[i].figure())
		}
		page.Charts = append(page.Charts, p)
	}
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, "chart.html", page); err != nil {
		return err
	}
	return safely(w, b.Bytes())
}

// CSV writes a chart's numbers: a line for each point. The error is w's.
func (c *Chart) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"panel", "curve", "x", "y"}}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	for _, p := range c.Panels {
		for _, curve := range p.Curves {
			for i, y := range curve.Y {
				var x string
				if p.Names != nil {
					x = p.Names[i]
				} else {
					x = number(curve.X[i])
				}
				lines = append(lines, []string{p.Title, curve.Name, x, number(y)})
			}
		}
	}
	return out.WriteAll(lines)
}

func (p *Panel) figure() figure {
	f := figure{Title: p.Title}
	var names palette
	for _, c := range p.Curves {
		names = append(names, c.Name)
	}
	f.Legend = names.keys()
	if p.Names != nil {
		f.Plot, f.Areas = p.bars(names), true
		return f
	}
	x, y := p.reach(p.Log || p.LogX, func(c Curve) []float64 { return c.X }), p.reach(p.Log, func(c Curve) []float64 { return c.Y })
	x.label, y.label = p.X, p.Y
	if !p.Log {
		y.lo, y.hi = 0, niceTop(y.hi, ySteps)
	}
	f.Plot = newPlot(p.Title, x, y)
	for _, c := range p.Curves {
		var xs, ys []float64
		for i := range c.X {
			xs, ys = append(xs, f.Plot.x.at(c.X[i])), append(ys, f.Plot.y.at(c.Y[i]))
		}
		f.Plot.path("line "+names.class(c.Name), polyline(xs, ys), c.Name)
	}
	return f
}

// reach gives an axis for all values of the curves, from decade to decade if it is logarithmic.
func (p *Panel) reach(log bool, of func(Curve) []float64) axis {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range p.Curves {
		lo, hi = min(lo, slices.Min(of(c))), max(hi, slices.Max(of(c)))
	}
	if log {
		lo, hi = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)))
	}
	return axis{log: log, lo: lo, hi: max(hi, lo+1e-9)}
}

func (p *Panel) bars(names palette) *plot {
	var rows []string
	top := 0.0
	for _, name := range p.Names {
		for k, c := range p.Curves {
			if k > 0 {
				name = ""
			}
			rows, top = append(rows, name), max(top, slices.Max(c.Y))
		}
	}
	out, digits := newRows(p.Title, rows, axis{label: p.Y, hi: niceTop(top, xSteps)}, 50), 2
	if top >= 10 {
		digits = 1
	}
	for i := range p.Names {
		for k, c := range p.Curves {
			x, y := out.x.at(c.Y[i]), out.rows[i*len(p.Curves)+k]
			out.path("area "+names.class(c.Name), box(out.x.a, y-5.5, x, y+5.5), c.Name)
			out.text("value", x+4, y+4, strconv.FormatFloat(c.Y[i], 'f', digits, 64), "")
		}
	}
	return out
}
