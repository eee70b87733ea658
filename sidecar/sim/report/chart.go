package report

import (
	"bytes"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/show/chart"
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

// Curve is a line of a panel; X ascends, and Y is as long as X, or as the names. Bars of a Picture end with a text, and with a
// spread if there is one.
type Curve struct {
	Name      string
	X, Y      []float64
	Low, High []float64 // the spread of Y; nil = none
	Texts     []string
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
					x = chart.Cell(p.Names[i])
				} else {
					x = number(curve.X[i])
				}
				lines = append(lines, []string{chart.Cell(p.Title), chart.Cell(curve.Name), x, number(y)})
			}
		}
	}
	return out.WriteAll(lines)
}

func (p *Panel) figure() figure {
	c := &chart.Chart{Title: p.Title, Kind: chart.Lines, X: chart.Axis{Label: p.X, Log: p.Log || p.LogX}, Y: chart.Axis{Label: p.Y, Log: p.Log}, Rows: p.Names}
	var names palette
	for _, curve := range p.Curves {
		names = append(names, curve.Name)
	}
	for _, curve := range p.Curves {
		s := names.series(curve.Name)
		s.X, s.Y = curve.X, curve.Y
		c.Series = append(c.Series, s)
	}
	if p.Names != nil {
		c.Kind, c.X.Label = chart.Bars, p.Y
	}
	return figure{Title: p.Title, Chart: c}
}
