package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/show/chart"
)

// Every panel is a plot, with a line for each curve or a bar for each of its values; the CSV has every value.
func TestCharts(t *testing.T) {
	c := Chart{Name: "x-1", Title: "A <figure>", Theirs: "theirs", Ours: "ours", Panels: []Panel{
		{Title: "lines", X: "hours", Y: "GPUs", Curves: []Curve{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}, {Name: "b", X: []float64{1, 2}, Y: []float64{5, 0}}}},
		{Title: "logs", Log: true, Curves: []Curve{{Name: "a", X: []float64{1, 100}, Y: []float64{0.5, 20}}}},
		{Title: "bars", Y: "GPUs", Names: []string{"u", "v"}, Curves: []Curve{{Name: "a", Y: []float64{1, 2}}, {Name: "b", Y: []float64{3, 4}}}}}}
	var b bytes.Buffer
	if err := Charts(&b, "Figures", []Chart{c}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, b.String())
	if h := page.all("h2"); len(h) != 1 || h[0].text() != "A <figure>" {
		t.Errorf("%+v", h)
	}
	figures := page.all("figure")
	if len(figures) != 3 {
		t.Fatalf("%d figures, want 3", len(figures))
	}
	if c := chartOf(t, figures[2]); c.Kind != chart.Bars || !slices.Equal(c.Rows, []string{"u", "v"}) || !slices.Equal(c.Series[1].Y, []float64{3, 4}) {
		t.Errorf("bars %+v", c)
	}
	if c := chartOf(t, figures[1]); c.Kind != chart.Lines || !c.X.Log || !c.Y.Log || !slices.Equal(c.Series[0].X, []float64{1, 100}) {
		t.Errorf("lines %+v", c)
	}
	b.Reset()
	if err := c.CSV(&b); err != nil {
		t.Fatal(err)
	}
	want := `panel,curve,x,y
lines,a,1,3
lines,a,2,4
lines,b,1,5
lines,b,2,0
logs,a,1,0.5
logs,a,100,20
bars,a,u,1
bars,a,v,2
bars,b,u,3
bars,b,v,4
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}

// A picture has a row for each chart, a plot for each of its panels with a line for each curve, and a legend.
func TestPicture(t *testing.T) {
	curves := []Curve{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}, {Name: "b", X: []float64{1, 2}, Y: []float64{5, 0}}}
	c := Chart{Title: "A <row>", Panels: []Panel{{Title: "one", Y: "GPUs", Curves: curves}, {Title: "two", Y: "hours", Curves: curves}}}
	var b bytes.Buffer
	if err := Picture(&b, "All & more", []Chart{c, c, c}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, b.String())
	if n := len(page.all("g")); n != 6 {
		t.Errorf("%d plots, want 6", n)
	}
	if n := len(page.class("line")); n != 6*2+2 {
		t.Errorf("%d lines, want 2 in each plot and 2 in the legend", n)
	}
	bars := Chart{Panels: []Panel{{Title: "bars", Names: []string{"u", "v", "w"}, Curves: []Curve{{Name: "a", Y: []float64{2, 1, 0}, Low: []float64{1, 1, 0}, High: []float64{4, 1, 0}, Texts: []string{"1 to 4", "1", "0"}}}}}}
	b.Reset()
	if err := Picture(&b, "bars", []Chart{bars}); err != nil {
		t.Fatal(err)
	}
	barred := parse(t, b.String())
	var lengths []float64
	for _, bar := range barred.class("bar") {
		var from, to, y float64
		if _, err := fmt.Sscanf(bar.attr["d"], "M%g %gL%g", &from, &y, &to); err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, to-from)
	}
	if len(lengths) != 3 || math.Abs(lengths[0]-2*lengths[1]) > 0.2 || lengths[1] <= 0 || lengths[2] != 0 {
		t.Errorf("bars of 2, 1 and 0 are %v long", lengths)
	}
	for _, text := range []string{"u", "v", "w", "1 to 4"} {
		if !slices.ContainsFunc(barred.class("tick"), func(e *element) bool {
			x, _ := strconv.ParseFloat(e.attr["x"], 64)
			return e.text() == text && x+letter*float64(len(text)) <= barsWidth
		}) {
			t.Errorf("no text %q inside the plot", text)
		}
	}
	many := Chart{Title: "many", Panels: []Panel{{Title: "one"}}}
	for range 13 {
		many.Panels[0].Curves = append(many.Panels[0].Curves, curves[0])
	}
	b.Reset()
	if err := Picture(&b, "many", []Chart{many}); err != nil {
		t.Fatal(err)
	}
	var width, height float64
	if _, err := fmt.Sscanf(b.String()[strings.Index(b.String(), "viewBox"):], `viewBox="0 0 %g %g"`, &width, &height); err != nil {
		t.Fatal(err)
	}
	for _, name := range parse(t, b.String()).class("name") {
		x, _ := strconv.ParseFloat(name.attr["x"], 64)
		y, _ := strconv.ParseFloat(name.attr["y"], 64)
		if x+100 > width || y == 0 || y > height-plotHeight {
			t.Errorf("the legend's name at %g, %g is not in its place in a picture of %g by %g", x, y, width, height)
		}
	}
	if rows := page.class("row"); len(rows) != 3 || rows[0].text() != "A <row>" {
		t.Errorf("rows are %v", rows)
	}
}
