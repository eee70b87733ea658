package report

import (
	"bytes"
	"strings"
	"testing"
)

// A panel with only zero curves is drawn, too.
func TestCurvesOfNothing(t *testing.T) {
	c := Chart{Name: "x", Title: "x", Panels: []Panel{{Title: "unfinished", X: "% of jobs that save", Y: "jobs",
		Curves: []Curve{{Name: "a", X: []float64{0, 25, 100}, Y: []float64{0, 0, 0}}}}}}
	var b bytes.Buffer
	if err := Charts(&b, "x", []Chart{c}); err != nil {
		t.Fatal(err)
	}
	parse(t, b.String())
	if text := ours(b.String()); strings.Contains(text, "NaN") || strings.Contains(text, "e-0") || strings.Contains(text, "Inf") {
		t.Error("an axis is not a number")
	}
}
