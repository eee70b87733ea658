// Package chart makes the charts of HTML pages: those of the web page, and those of the simulator's reports.
//
// A Chart is a value with its numbers. The template "chart" turns it into a figure: a legend, an element that holds the
// numbers as JSON, and the same numbers as a table for people who cannot see a canvas. The script, which is uPlot
// (third_party/uplot) and draw.js, draws every such element of a page. Scripts and styles need no network and work under a
// content security policy without inline code.
//
//	kind    drawn as
//	Lines   a line for each series, over its own x
//	Areas   areas stacked upon each other over one x; series with Over are lines above them
//	Bars    for each row, a horizontal bar for each series
//	Boxes   for each row, quartiles and extremes
//	Dots    a point for each value
//
// Equal charts give equal bytes. Names are never trusted: html/template escapes them in a page, and draw.js writes them as text.
package chart

import (
	"cmp"
	_ "embed" // the script, the style and the template
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/fairlease/fairlease/third_party/uplot"
)

// Kind is how a chart is drawn.
type Kind string

// The kinds of charts; the package's comment describes them.
const (
	Lines Kind = "lines"
	Areas Kind = "areas"
	Bars  Kind = "bars"
	Boxes Kind = "boxes"
	Dots  Kind = "dots"
)

// Colours is the number of colours for lines. All can be told apart by people who are colour-blind; Dashes tell more lines apart. Hues is
// the number of all colours: areas, which have no dashes, use more than lines do.
const (
	Colours = 8
	Dashes  = 4
	Hues    = 20
)

// Chart is a chart and its numbers.
type Chart struct {
	Title  string    `json:"title"`
	Kind   Kind      `json:"kind"`
	X      Axis      `json:"x"`
	Y      Axis      `json:"y"` // of lines, areas and dots
	Rows   []string  `json:"rows,omitempty"`
	Marks  []float64 `json:"marks,omitempty"` // dotted vertical lines at these x
	Series []Series  `json:"series"`
	// Wide makes a line chart twice as wide as high.
	Wide bool `json:"wide,omitempty"`
}

// Axis is a scale with its name. Min and Max bound it if Max is larger; else the values do. Values of a Log axis are larger
// than 0. Values of a Time axis are seconds since the Unix epoch, and the table has them in Zone; nil = UTC.
type Axis struct {
	Label string  `json:"label"`
	Min   float64 `json:"min,omitempty"`
	Max   float64 `json:"max,omitempty"`
	Log   bool    `json:"log,omitempty"`
	Time  bool    `json:"time,omitempty"`

	Zone *time.Location `json:"-"`
}

// Series is a named set of values: Y over X, which ascends; or with rows, Y by row. In Areas all have the X of the first.
type Series struct {
	Name   string `json:"name"`
	Colour int    `json:"colour"` // 0 to Hues-1
	Dash   int    `json:"dash,omitempty"`
	Steps  bool   `json:"steps,omitempty"` // a value holds until the next one
	Over   bool   `json:"over,omitempty"`  // a line over the areas
	Plain  bool   `json:"plain,omitempty"` // in the colour of text, for limits
	// Points is the size of a mark at each value of a line, in pixels; 0 = none.
	Points int `json:"points,omitempty"`
	// Colours has the colour of each row, if they differ.
	Colours []int  `json:"colours,omitempty"`
	X       Values `json:"x,omitempty"`
	Y       Values `json:"y,omitempty"`
	Boxes   []Box  `json:"boxes,omitempty"`
	// Texts label bars and dots; Tips describe rows and dots in full.
	Texts []string `json:"texts,omitempty"`
	Tips  []string `json:"tips,omitempty"`
	Large int      `json:"large,omitempty"` // the dot, counted from 1, that is drawn large; 0 = none
}

// Box is the spread of values.
type Box struct {
	Min    float64 `json:"min"`
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
	Max    float64 `json:"max"`
	Count  int64   `json:"count"`
}

// Values are numbers; NaN is a gap.
type Values []float64

// MarshalJSON writes gaps as null, and six digits of the others; of large numbers, all digits before the point.
func (v Values) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, number(x)...)
	}
	return append(b, ']'), nil
}

func number(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "null"
	case math.Abs(x) >= 1e5 && math.Abs(x) < 1e15:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// JSON gives the numbers as the script reads them.
func (c *Chart) JSON() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

// Shape is the class that reserves room for the chart before it is drawn. Rows need as much as there are; draw.js knows.
func (c *Chart) Shape() string {
	switch {
	case c.Kind == Bars || c.Kind == Boxes:
		return "rows"
	case c.Wide:
		return "wide"
	}
	return "plain"
}

// Areas tells whether the legend is of areas.
func (c *Chart) Areas() bool { return c.Kind == Areas || c.Kind == Bars }

// Legend tells whether the series need a legend.
func (c *Chart) Legend() bool { return len(c.Series) > 1 }

// Class is the class of a series in a legend: its colour, its dashes, and whether it is a line.
func (s *Series) Class() string {
	if s.Plain {
		return "plain over"
	}
	class := fmt.Sprintf("k%d d%d", s.Colour%Hues, s.Dash%Dashes)
	if s.Over {
		class += " over"
	}
	return class
}

// tableRows is the maximum number of rows in a chart's table.
const tableRows = 12

// Table gives the numbers as a table, whose first row and first column are headings. Of long series it has a few rows at equal
// distances.
func (c *Chart) Table() [][]string {
	switch c.Kind {
	case Bars:
		return c.barTable()
	case Boxes:
		return c.boxTable()
	case Dots:
		return c.dotTable()
	}
	head := []string{c.X.Label}
	var xs []float64
	for i := range c.Series {
		head = append(head, c.Series[i].Name)
		xs = append(xs, c.Series[i].X...)
	}
	if c.Kind == Areas && len(c.Series) > 0 {
		xs = slices.Clone(c.Series[0].X)
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	out := [][]string{head}
	for i := range min(len(xs), tableRows) {
		x := xs[i]
		if len(xs) > tableRows {
			x = xs[i*(len(xs)-1)/(tableRows-1)]
		}
		row := []string{c.X.text(x)}
		for k := range c.Series {
			row = append(row, text(c.Series[k].at(x, c.Series[0].X)))
		}
		out = append(out, row)
	}
	return out
}

// at gives the newest value at x or before; NaN = none. shared is the X of a series without one.
func (s *Series) at(x float64, shared Values) float64 {
	xs := s.X
	if xs == nil {
		xs = shared
	}
	i, found := slices.BinarySearch(xs, x)
	if !found {
		i--
	}
	if i < 0 || i >= len(s.Y) {
		return math.NaN()
	}
	return s.Y[i]
}

func (c *Chart) barTable() [][]string {
	head := []string{c.X.Label}
	for i := range c.Series {
		head = append(head, c.Series[i].Name)
	}
	out := [][]string{head}
	for r, name := range c.Rows {
		row := []string{name}
		for i := range c.Series {
			row = append(row, c.Series[i].text(r))
		}
		out = append(out, row)
	}
	return out
}

// text is the value of a bar, as its label has it.
func (s *Series) text(i int) string {
	if i < len(s.Texts) {
		return s.Texts[i]
	}
	return text(s.Y[i])
}

func (c *Chart) boxTable() [][]string {
	out := [][]string{{c.X.Label, "smallest", "lower quartile", "median", "upper quartile", "largest", "values"}}
	for i := range c.Series {
		for r, b := range c.Series[i].Boxes {
			out = append(out, []string{c.Rows[r], text(b.Min), text(b.Q1), text(b.Median), text(b.Q3), text(b.Max), strconv.FormatInt(b.Count, 10)})
		}
	}
	return out
}

func (c *Chart) dotTable() [][]string {
	out := [][]string{{"point", c.X.Label, c.Y.Label}}
	for i := range c.Series {
		s := &c.Series[i]
		for k := range s.X {
			name := s.Name
			if k < len(s.Tips) {
				name = s.Tips[k]
			}
			out = append(out, []string{name, text(s.X[k]), text(s.Y[k])})
		}
	}
	return out
}

func (a *Axis) text(x float64) string {
	if a.Time {
		return time.Unix(int64(x), 0).In(cmp.Or(a.Zone, time.UTC)).Format("2006-01-02 15:04")
	}
	return text(x)
}

func text(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64)
}

//go:embed chart.html
var figure string

//go:embed draw.js
var draw string

//go:embed chart.css
var style string

// AddTo defines the template "chart", whose input is a *Chart, in a set of templates.
func AddTo(t *template.Template) *template.Template { return template.Must(t.Parse(figure)) }

// Script gives the script of pages with charts.
func Script() string { return uplot.Script + "\n" + draw }

// Style gives the style sheet of charts. It needs the custom properties --fg, --soft, --rule, --pane and --k0 to --k19, which
// Palette defines.
func Style() string { return Palette + uplot.Style + "\n" + style }

// License gives the licence of the library in Script, which must accompany it.
func License() string { return uplot.License }

// Palette defines the colours of a page, light or dark as the reader prefers or has chosen (data-theme). Lines of k0 to k19 have a
// contrast of at least 3 to the background and differ for people who see colours differently (after Okabe and Ito).
const Palette = `:root{--bg:#fff;--fg:#1c1f23;--soft:#565e68;--rule:#dfe3e8;--pane:#f5f6f8;--link:#0b5cad;--good:#00704f;--warn:#8a5a00;--bad:#b3261e;
--k0:#0072b2;--k1:#d55e00;--k2:#009e73;--k3:#b5478d;--k4:#2694d5;--k5:#b88100;--k6:#222;--k7:#858585;
--k8:#48009c;--k9:#783c00;--k10:#8400fc;--k11:#840060;--k12:#3c6c54;--k13:#906cfc;--k14:#0030cc;--k15:#484890;--k16:#cc0048;--k17:#d86cc0;--k18:#60243c;--k19:#c030cc;color-scheme:light}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){--bg:#14171a;--fg:#e6e8ea;--soft:#a3acb6;--rule:#30363c;--pane:#1c2024;--link:#7db8ff;--good:#4fd1a1;--warn:#f0c04a;--bad:#ff8a80;
--k0:#4da3e8;--k1:#ff8a4c;--k2:#35c79a;--k3:#e58bc4;--k4:#9adcff;--k5:#f0c04a;--k6:#f2f2f2;--k7:#8f959b;
--k8:#9000fc;--k9:#007800;--k10:#a83c84;--k11:#f00048;--k12:#60fca8;--k13:#486cc0;--k14:#9c6cfc;--k15:#548460;--k16:#cc00b4;--k17:#fcb4cc;--k18:#b4b4fc;--k19:#c0f000;color-scheme:dark}}
:root[data-theme=dark]{--bg:#14171a;--fg:#e6e8ea;--soft:#a3acb6;--rule:#30363c;--pane:#1c2024;--link:#7db8ff;--good:#4fd1a1;--warn:#f0c04a;--bad:#ff8a80;
--k0:#4da3e8;--k1:#ff8a4c;--k2:#35c79a;--k3:#e58bc4;--k4:#9adcff;--k5:#f0c04a;--k6:#f2f2f2;--k7:#8f959b;
--k8:#9000fc;--k9:#007800;--k10:#a83c84;--k11:#f00048;--k12:#60fca8;--k13:#486cc0;--k14:#9c6cfc;--k15:#548460;--k16:#cc00b4;--k17:#fcb4cc;--k18:#b4b4fc;--k19:#c0f000;color-scheme:dark}
`
