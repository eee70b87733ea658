package svg

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/report/reporttest"
)

// A picture has a row for each chart, a plot for each of its panels with a line for each curve, and a legend.
func TestPicture(t *testing.T) {
	curves := []report.Curve{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}, {Name: "b", X: []float64{1, 2}, Y: []float64{5, 0}}}
	c := report.Chart{Title: "A <row>", Panels: []report.Panel{{Title: "one", Y: "GPUs", Curves: curves}, {Title: "two", Y: "hours", Curves: curves}}}
	var b bytes.Buffer
	if err := Write(&b, "All & more", []report.Chart{c, c, c}); err != nil {
		t.Fatal(err)
	}
	page := reporttest.Parse(t, b.String())
	if n := len(page.All("g")); n != 6 {
		t.Errorf("%d plots, want 6", n)
	}
	if n := len(page.Class("line")); n != 6*2+2 {
		t.Errorf("%d lines, want 2 in each plot and 2 in the legend", n)
	}
	bars := report.Chart{Panels: []report.Panel{{Title: "bars", Names: []string{"u", "v", "w"}, Curves: []report.Curve{{Name: "a", Y: []float64{2, 1, 0}, Low: []float64{1, 1, 0}, High: []float64{4, 1, 0}, Texts: []string{"1 to 4", "1", "0"}}}}}}
	b.Reset()
	if err := Write(&b, "bars", []report.Chart{bars}); err != nil {
		t.Fatal(err)
	}
	barred := reporttest.Parse(t, b.String())
	var lengths []float64
	for _, bar := range barred.Class("bar") {
		var from, to, y float64
		if _, err := fmt.Sscanf(bar.Attr["d"], "M%g %gL%g", &from, &y, &to); err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, to-from)
	}
	if len(lengths) != 3 || math.Abs(lengths[0]-2*lengths[1]) > 0.2 || lengths[1] <= 0 || lengths[2] != 0 {
		t.Errorf("bars of 2, 1 and 0 are %v long", lengths)
	}
	for _, text := range []string{"u", "v", "w", "1 to 4"} {
		if !slices.ContainsFunc(barred.Class("tick"), func(e *reporttest.Element) bool {
			x, _ := strconv.ParseFloat(e.Attr["x"], 64)
			return e.Text() == text && x+letter*float64(len(text)) <= barsWidth
		}) {
			t.Errorf("no text %q inside the plot", text)
		}
	}
	many := report.Chart{Title: "many", Panels: []report.Panel{{Title: "one"}}}
	for range 13 {
		many.Panels[0].Curves = append(many.Panels[0].Curves, curves[0])
	}
	b.Reset()
	if err := Write(&b, "many", []report.Chart{many}); err != nil {
		t.Fatal(err)
	}
	var width, height float64
	if _, err := fmt.Sscanf(b.String()[strings.Index(b.String(), "viewBox"):], `viewBox="0 0 %g %g"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	for _, name := range reporttest.Parse(t, b.String()).Class("name") {
		x, _ := strconv.ParseFloat(name.Attr["x"], 64)
		y, _ := strconv.ParseFloat(name.Attr["y"], 64)
		if x+100 > width || y == 0 || y > height-plotHeight {
			t.Errorf("the legend's name at %g, %g is not in its place in a picture of %g by %g", x, y, width, height)
		}
	}
	if rows := page.Class("row"); len(rows) != 3 || rows[0].Text() != "A <row>" {
		t.Errorf("rows are %v", rows)
	}
}
