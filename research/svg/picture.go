// Package svg draws the charts of docs and research as SVG images: documents in which no script runs show them.
package svg

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/report"
)

//go:embed picture.html
var markup string

var page = template.Must(template.New("picture").Parse(markup))

const (
	rowTitle  = 26 // pixels of a row's title, and of the legend's first row
	keyLength = 150
	keyHeight = 18
	barsWidth = 300
	barLeft   = 8
	barName   = 14 // pixels of a name above its bars
	barHeight = 11 // with the space below
)

// Write writes an SVG image with a row of plots for each chart. Its
// panels have lines or, with Names, bars, with the same curves in each. The error is w's.
func Write(w io.Writer, title string, charts []report.Chart) error {
	type place struct {
		*plot
		X, Y int
	}
	type row struct {
		Title string
		Y     int
		Plots []place
	}
	type name struct {
		Class, Name string
		X, Text, Y  int
	}
	picture := struct {
		Title string
		W, H  int
		Keys  []name
		Rows  []row
	}{Title: title}
	for _, c := range charts {
		width := 0
		for _, p := range c.Panels {
			width += (*panel)(&p).width()
		}
		picture.W = max(picture.W, width)
	}
	inRow := max(picture.W/keyLength, 1) // names of the legend
	for k, c := range charts[0].Panels[0].Curves {
		x := 8 + keyLength*(k%inRow)
		picture.Keys = append(picture.Keys, name{lineClass(k), c.Name, x, x + 32, 16 + keyHeight*(k/inRow)})
		picture.H = rowTitle + keyHeight*(k/inRow)
	}
	for _, c := range charts {
		r := row{Title: c.Title, Y: picture.H + rowTitle - 8}
		x := 0
		for i := range c.Panels {
			p := (*panel)(&c.Panels[i])
			r.Plots = append(r.Plots, place{p.picture(), x, picture.H + rowTitle})
			x += p.width()
		}
		picture.H += rowTitle + plotHeight
		picture.Rows = append(picture.Rows, r)
	}
	return page.Execute(w, picture)
}

// panel is a panel to draw.
type panel report.Panel

// width is that of a panel's drawing, in pixels.
func (p *panel) width() int {
	if p.Names != nil {
		return barsWidth
	}
	return plotWidth
}

// picture draws a panel.
func (p *panel) picture() *plot {
	if p.Names != nil {
		return p.bars()
	}
	return p.lines()
}

// bars draws a panel of bars from 0: a group for each name, and in it a bar for each curve.
func (p *panel) bars() *plot {
	x, longest := axis{label: p.X, a: barLeft}, 0
	for _, c := range p.Curves {
		x.hi = max(x.hi, slices.Max(slices.Concat(c.Y, c.High)))
		for _, text := range c.Texts {
			longest = max(longest, utf8.RuneCountInString(text))
		}
	}
	x.hi, x.b = max(x.hi, 1e-9), barsWidth-12-letter*float64(longest)
	out := &plot{W: barsWidth, H: plotHeight, x: x}
	out.text("name", barLeft, 11, p.Title+", "+p.Y)
	const top, bottom = 20, plotHeight - 40
	out.xAxis(top, bottom, ySteps)
	for i, name := range p.Names {
		y := top + (bottom-top)*float64(i)/float64(len(p.Names)) + barName
		out.text("tick", barLeft, y-2, name)
		for k, c := range p.Curves {
			middle := y + barHeight*(float64(k)+0.5)
			out.path(fmt.Sprintf("bar c%d", k%chart.Colours), line(x.a, middle, x.at(c.Y[i]), middle))
			end := c.Y[i]
			if c.High != nil {
				end = max(end, c.High[i])
				out.path("base", line(x.at(c.Low[i]), middle, x.at(c.High[i]), middle))
			}
			if c.Texts != nil {
				out.text("tick", x.at(end)+5, middle+4, c.Texts[i])
			}
		}
	}
	return out
}

// lines draws a panel of lines.
func (p *panel) lines() *plot {
	x, y := p.reach(p.Log || p.LogX, func(c report.Curve) []float64 { return c.X }), p.reach(p.Log, func(c report.Curve) []float64 { return c.Y })
	x.label, y.label = p.X, p.Title+", "+p.Y
	if !p.Log {
		y.lo, y.hi = 0, report.NiceTop(y.hi, ySteps)
	}
	out := newPlot(x, y)
	for k, c := range p.Curves {
		var xs, ys []float64
		for i := range c.X {
			xs, ys = append(xs, out.x.at(c.X[i])), append(ys, out.y.at(c.Y[i]))
		}
		out.path("line "+lineClass(k), polyline(xs, ys))
	}
	return out
}

// lineClass is the class of a curve: its colour and dashes.
func lineClass(k int) string {
	return fmt.Sprintf("c%d d%d", k%chart.Colours, k/(chart.Colours/2)%chart.Dashes)
}

// reach gives an axis for all values of the curves, from decade to decade if it is logarithmic.
func (p *panel) reach(log bool, of func(report.Curve) []float64) axis {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, c := range p.Curves {
		lo, hi = min(lo, slices.Min(of(c))), max(hi, slices.Max(of(c)))
	}
	if log {
		lo, hi = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)))
	}
	return axis{log: log, lo: lo, hi: max(hi, lo+1e-9)}
}
