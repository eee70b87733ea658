package chart

import (
	"bytes"
	"encoding/json"
	"html/template"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestTable has the numbers of every kind as people read them.
func TestTable(t *testing.T) {
	nan := math.NaN()
	long := Series{Name: "a"}
	for i := range 1000 {
		long.X, long.Y = append(long.X, float64(i)), append(long.Y, float64(2*i))
	}
	for _, c := range []struct {
		name string
		in   Chart
		want [][]string
	}{
		{"lines with gaps, over different x", Chart{Kind: Lines, X: Axis{Label: "h"}, Series: []Series{{Name: "a", X: Values{1, 2}, Y: Values{3, nan}}, {Name: "b", X: Values{2}, Y: Values{0.12345}}}},
			[][]string{{"h", "a", "b"}, {"1", "3", "-"}, {"2", "-", "0.123"}}},
		{"areas over one x, in time", Chart{Kind: Areas, X: Axis{Label: "time", Time: true}, Series: []Series{{Name: "a", X: Values{0, 3600}, Y: Values{1, 2}}, {Name: "b", Y: Values{3, 4}}}},
			[][]string{{"time", "a", "b"}, {"1970-01-01 00:00", "1", "3"}, {"1970-01-01 01:00", "2", "4"}}},
		{"areas in the zone of the site, over midnight", Chart{Kind: Areas, X: Axis{Label: "time", Time: true, Zone: time.FixedZone("", -5400)}, Series: []Series{{Name: "a", X: Values{0, 5400}, Y: Values{1, 2}}}},
			[][]string{{"time", "a"}, {"1969-12-31 22:30", "1"}, {"1970-01-01 00:00", "2"}}},
		{"bars", Chart{Kind: Bars, X: Axis{Label: "name"}, Rows: []string{"r", "s"}, Series: []Series{{Name: "a", Y: Values{1, 2}, Texts: []string{"one"}}}},
			[][]string{{"name", "a"}, {"r", "one"}, {"s", "2"}}},
		{"dots", Chart{Kind: Dots, X: Axis{Label: "x"}, Y: Axis{Label: "y"}, Series: []Series{{Name: "a", X: Values{1}, Y: Values{2}, Tips: []string{"tip"}}}},
			[][]string{{"point", "x", "y"}, {"tip", "1", "2"}}},
		{"nothing", Chart{Kind: Lines, X: Axis{Label: "x"}}, [][]string{{"x"}}},
	} {
		if got := c.in.Table(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	got := (&Chart{Kind: Lines, Series: []Series{long}}).Table()
	if len(got) != 1+tableRows || got[1][0] != "0" || got[tableRows][1] != "1998" {
		t.Errorf("of a thousand values: %v", got)
	}
}

// TestTemplate says that every name comes out as text, and every number in the element.
func TestTemplate(t *testing.T) {
	const evil = `</script><b onclick="x()">'&{{.}}`
	c := &Chart{Title: evil, Kind: Lines, X: Axis{Label: evil}, Series: []Series{{Name: evil, X: Values{1, 2}, Y: Values{math.NaN(), 1e7}}, {Name: "b", X: Values{1}, Y: Values{math.Inf(1)}}}}
	var b bytes.Buffer
	if err := AddTo(template.New("")).ExecuteTemplate(&b, "chart", c); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "<b ") || strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "<script") {
		t.Errorf("a name has become markup:\n%s", text)
	}
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `"y":[null,10000000]`) || !strings.Contains(text, `"y":[null]`) {
		t.Errorf("values: %s", text)
	}
	var back Chart
	if err := json.Unmarshal([]byte(text), &back); err != nil || back.Series[0].Name != evil {
		t.Errorf("%v: %+v", err, back)
	}
}
