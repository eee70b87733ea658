package svg

import (
	"math"
	"strconv"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// plot is a drawing, in units of about a CSS pixel: marks, from back to front. It has geometry and
// text only; the template writes the markup.
type plot struct {
	W, H  float64
	Marks []mark

	x, y axis
}

// mark is a path, or a text if Text is set. Class sets its style.
type mark struct {
	Class string
	D     string // the path
	X, Y  string // the text's anchor
	Text  string
}

// axis maps values to pixels.
type axis struct {
	label  string
	lo, hi float64 // values
	log    bool
	a, b   float64 // pixels of lo and hi
}

// at gives the pixel of a value, within the axis.
func (x axis) at(v float64) float64 {
	lo, hi := x.lo, x.hi
	if x.log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(max(v, x.lo))
	}
	return x.a + (x.b-x.a)*min(max((v-lo)/(hi-lo), 0), 1)
}

// marks gives the values with a tick, at most n steps, and their texts.
func (x axis) marks(n int) (values []float64, texts []string) {
	var step float64
	if x.log {
		for v := x.lo; v <= x.hi*1.001; v *= 10 {
			values = append(values, v)
		}
	} else {
		step = report.NiceStep(x.hi-x.lo, n)
		for i := math.Ceil(x.lo/step - 1e-9); i*step <= x.hi+step*1e-9; i++ {
			values = append(values, i*step+0) // + 0: never -0
		}
	}
	for _, v := range values {
		texts = append(texts, tickText(v, step))
	}
	return values, texts
}

// tickText formats a tick's value with the digits of its step (0 = its own).
func tickText(v, step float64) string {
	for _, k := range []struct {
		size float64
		unit string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(v) >= k.size && (k.size > 1e3 || math.Abs(v) >= 1e4) {
			return tickText(v/k.size, step/k.size) + k.unit
		}
	}
	digits := -1
	if step > 0 {
		digits = max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

const (
	plotWidth  = 350
	plotHeight = 250
	xSteps     = 8 // between ticks, at most
	ySteps     = 5
	letter     = 6.3 // maximum width of a letter in a tick's text
)

// newPlot draws the frame of a plot; p.x and p.y map to its pixels.
func newPlot(x, y axis) *plot {
	p := &plot{W: plotWidth, H: plotHeight}
	y.a, y.b = plotHeight-40, 24
	values, texts := y.marks(ySteps)
	for _, t := range texts {
		x.a = max(x.a, float64(len(t))*letter+12)
	}
	x.b = plotWidth - 14
	p.x, p.y = x, y
	p.text("axis", 2, 11, y.label)
	for i, v := range values {
		p.path("grid", line(x.a, y.at(v), x.b, y.at(v)))
		p.text("tick end", x.a-6, y.at(v)+4, texts[i])
	}
	p.xAxis(y.b, y.a, xSteps)
	return p
}

// xAxis draws the grid of a horizontal axis from top to bottom, with at most so many steps, and its labels. A tick whose text
// would overlap the last one gets none.
func (p *plot) xAxis(top, bottom float64, steps int) {
	x := p.x
	values, texts := x.marks(steps)
	end := math.Inf(-1)
	for i, v := range values {
		p.path("grid", line(x.at(v), top, x.at(v), bottom))
		half := float64(len(texts[i])) * letter / 2
		middle := max(half, min(x.at(v), p.W-half))
		if middle-half < end+5 {
			continue
		}
		end = middle + half
		p.text("tick mid", middle, bottom+15, texts[i])
	}
	p.path("base", line(x.a, bottom, x.b, bottom))
	p.text("axis end", p.W-2, bottom+33, x.label)
}

func (p *plot) path(class, d string) {
	if d != "" {
		p.Marks = append(p.Marks, mark{Class: class, D: d})
	}
}

func (p *plot) text(class string, x, y float64, text string) {
	if text != "" {
		p.Marks = append(p.Marks, mark{Class: class, X: px(x), Y: px(y), Text: text})
	}
}

// px writes a pixel with at most one digit after the point.
func px(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64)
}

func line(x1, y1, x2, y2 float64) string {
	return "M" + px(x1) + " " + px(y1) + "L" + px(x2) + " " + px(y2)
}

// polyline joins points; a NaN breaks the line, and a single point becomes a dot.
func polyline(xs, ys []float64) string {
	var b strings.Builder
	pen := "M"
	for i := range xs {
		if math.IsNaN(ys[i]) {
			pen = "M"
			continue
		}
		b.WriteString(pen + px(xs[i]) + " " + px(ys[i]))
		if pen == "M" && (i+1 == len(ys) || math.IsNaN(ys[i+1])) {
			b.WriteString("h0")
		}
		pen = "L"
	}
	return b.String()
}
