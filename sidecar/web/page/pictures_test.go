package page_test

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/web/page"
	"github.com/fairlease/fairlease/sidecar/web/rights"
	"github.com/fairlease/fairlease/sidecar/web/scene/scenetest"
)

// attr gives an attribute of an element; "" = it has none.
func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// words gives the text of an element.
func words(n *html.Node) (out string) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out += d.Data
		}
	}
	return strings.TrimSpace(out)
}

// cells gives the first table within an element, by row; nil = there is none.
func cells(n *html.Node) (out [][]string) {
	for d := range n.Descendants() {
		if d.Data != "table" {
			continue
		}
		for e := range d.Descendants() {
			switch e.Data {
			case "tr":
				out = append(out, nil)
			case "td", "th":
				out[len(out)-1] = append(out[len(out)-1], words(e))
			}
		}
		return out
	}
	return nil
}

// numbers compares the table of a chart with what its script draws. Times are in the zone.
func numbers(t *testing.T, where string, c *chart.Chart, table [][]string, zone *time.Location) {
	t.Helper()
	if len(table) < 2 {
		t.Errorf("%s: the chart %q has no table", where, c.Title)
		return
	}
	if c.Kind == chart.Bars {
		for r, name := range c.Rows {
			for k := range c.Series {
				if row := table[1+r]; row[0] != name || row[1+k] != c.Series[k].Texts[r] {
					t.Errorf("%s: %q has %q, want %s of %s", where, c.Title, row, c.Series[k].Texts[r], name)
				}
			}
		}
		return
	}
	for i, row := range table[1:] {
		at, err := time.ParseInLocation("2006-01-02 15:04", row[0], zone)
		if err != nil {
			t.Fatal(err)
		}
		for k := range c.Series {
			s := &c.Series[k]
			xs := s.X
			if xs == nil {
				xs = c.Series[0].X
			}
			j := slices.Index(xs, float64(at.Unix()))
			got, err := strconv.ParseFloat(row[1+k], 64)
			if j < 0 || err != nil || math.Abs(got-s.Y[j]) > 0.001*max(1, math.Abs(got)) || i == 0 && j != 0 || i == len(table)-2 && j != len(xs)-1 {
				t.Errorf("%s: %q has %q for %s at %s", where, c.Title, row[1+k], s.Name, row[0])
			}
		}
	}
}

// Each picture has its numbers in a table of its section, or in a label; times in the table are those of the chart.
func TestPicturesHaveTables(t *testing.T) {
	zone, charts, maps := time.FixedZone("", 5*3600+1800), 0, 0
	for _, site := range []scenetest.Site{{Nodes: 10, Jobs: 60, Market: true, Counters: true}, {Nodes: 200, Jobs: 900, Cells: true}} {
		d := newDesk(site)
		d.pages = (&page.Pages{Source: d, Zone: zone}).Handler()
		for _, who := range []rights.Person{operator, d.member(), {}} {
			for _, at := range d.addresses() {
				_, text := d.ask(who, at)
				tree, err := html.Parse(strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				where := at + " for " + who.User
				for n := range tree.Descendants() {
					switch drawing := attr(n, "data-chart"); {
					case drawing != "":
						var c chart.Chart
						if err := json.Unmarshal([]byte(drawing), &c); err != nil {
							t.Fatal(err)
						}
						charts++
						numbers(t, where, &c, cells(n.Parent), zone)
					case n.Data == "svg" && attr(n, "role") != "img" && !strings.HasPrefix(attr(n, "class"), "dot") && !strings.HasPrefix(attr(n, "class"), "key"):
						section := n.Parent
						for section != nil && section.Data != "section" {
							section = section.Parent
						}
						if section == nil || len(cells(section)) < 2 {
							t.Errorf("%s: a drawing without a table", where)
						}
					case n.Data == "svg" && attr(n, "role") == "img" && attr(n, "aria-label") == "":
						t.Errorf("%s: a picture without a label", where)
					}
					if attr(n, "id") == "map" {
						maps++
						squares(t, where, n)
					}
				}
			}
		}
	}
	if charts < 50 || maps < 10 {
		t.Errorf("only %d charts and %d maps", charts, maps)
	}
}

// squares compares the table of the map with its squares.
func squares(t *testing.T, where string, section *html.Node) {
	t.Helper()
	var drawn, free, bad int
	for n := range section.Descendants() {
		if n.Data != "path" || attr(n.Parent, "viewBox") == "0 0 26 10" {
			continue
		}
		many := strings.Count(attr(n, "d"), "M")
		drawn += many
		switch attr(n, "class") {
		case "bad":
			bad += many
		case "free":
			free += many
		}
	}
	var sums [3]int
	table := cells(section)
	for _, row := range table[min(1, len(table)):] {
		for k := range sums {
			n, err := strconv.Atoi(row[1+k])
			if err != nil {
				t.Fatal(err)
			}
			sums[k] += n
		}
		named := 0 // by tenant
		for part := range strings.SplitSeq(row[4], ", ") {
			n, _ := strconv.Atoi(part[strings.LastIndex(part, " ")+1:])
			named += n
		}
		if strconv.Itoa(named) != row[2] {
			t.Errorf("%s: tenants hold %d GPUs in %q", where, named, row)
		}
	}
	if sums[0] != drawn || sums[2] != bad || !strings.Contains(where, "by=owner") && sums[1] != drawn-bad-free {
		t.Errorf("%s: the table has %d GPUs, busy and bad; the map draws %d, %d free and %d bad", where, sums, drawn, free, bad)
	}
}

// Percentages and relative times are written in one way on all pages, and nothing is left of what cannot be printed.
func TestOneGrammar(t *testing.T) {
	d := newDesk(scenetest.Site{Nodes: 10, Jobs: 60, Market: true, Counters: true})
	percents := 0
	for _, at := range append(d.addresses(), "/audit") {
		_, text := d.ask(operator, at)
		tree, err := html.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.ReplaceAll(words(tree), "\u00a0", " ")
		percents += strings.Count(shown, " %")
		for _, bad := range []*regexp.Regexp{regexp.MustCompile(`[\d?]%`), regexp.MustCompile(`\(?\d\d:\d\d:\d\d ago`), regexp.MustCompile(`in \d\d:\d\d:\d\d`)} {
			if found := bad.FindString(shown); found != "" {
				t.Errorf("%s has %q", at, found)
			}
		}
	}
	if percents < 10 {
		t.Errorf("only %d percentages", percents)
	}
}
