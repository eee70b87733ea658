package report

import (
	"bytes"
	"slices"
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
	if h := page.All("h2"); len(h) != 1 || h[0].Text() != "A <figure>" {
		t.Errorf("%+v", h)
	}
	figures := page.All("figure")
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
