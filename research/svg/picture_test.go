package svg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/sim/report"
)

// element is a part of a picture.
type element struct {
	name  string
	attr  map[string]string
	words string
	in    []*element
}

func parse(t *testing.T, text string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	open := []*element{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(open) == 1 {
			return open[0]
		}
		if err != nil {
			t.Fatal(err)
		}
		top := open[len(open)-1]
		switch x := token.(type) {
		case xml.StartElement:
			e := &element{name: x.Name.Local, attr: map[string]string{}}
			for _, a := range x.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			top.in = append(top.in, e)
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.words += string(x)
		}
	}
}

func (e *element) find(match func(*element) bool) []*element {
	var out []*element
	for _, x := range e.in {
		if match(x) {
			out = append(out, x)
		}
		out = append(out, x.find(match)...)
	}
	return out
}

func (e *element) all(name string) []*element {
	return e.find(func(x *element) bool { return x.name == name })
}

func (e *element) class(class string) []*element {
	return e.find(func(x *element) bool { return slices.Contains(strings.Fields(x.attr["class"]), class) })
}

func (e *element) text() string { return strings.TrimSpace(e.words) }

// A picture has a row for each chart, a plot for each of its panels with a line for each curve, and a legend.
func TestPicture(t *testing.T) {
	curves := []report.Curve{{Name: "a", X: []float64{1, 2}, Y: []float64{3, 4}}, {Name: "b", X: []float64{1, 2}, Y: []float64{5, 0}}}
	c := report.Chart{Title: "A <row>", Panels: []report.Panel{{Title: "one", Y: "GPUs", Curves: curves}, {Title: "two", Y: "hours", Curves: curves}}}
	var b bytes.Buffer
	if err := Write(&b, "All & more", []report.Chart{c, c, c}); err != nil {
		t.Fatal(err)
	}
	page := parse(t, b.String())
	if n := len(page.all("g")); n != 6 {
		t.Errorf("%d plots, want 6", n)
	}
	if n := len(page.class("line")); n != 6*2+2 {
		t.Errorf("%d lines, want 2 in each plot and 2 in the legend", n)
	}
	bars := report.Chart{Panels: []report.Panel{{Title: "bars", Names: []string{"u", "v", "w"}, Curves: []report.Curve{{Name: "a", Y: []float64{2, 1, 0}, Low: []float64{1, 1, 0}, High: []float64{4, 1, 0}, Texts: []string{"1 to 4", "1", "0"}}}}}}
	b.Reset()
	if err := Write(&b, "bars", []report.Chart{bars}); err != nil {
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
