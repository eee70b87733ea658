package report

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"

	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

//go:embed page.html tradeoff.html chart.html
var pages embed.FS

//go:embed page.css
var pageStyle string

// Style gives the style sheet of reports, with that of charts.
func Style() string { return chart.Style() + "\n" + pageStyle }

// The script and the style go into each page, which is one file. Both are ours or the chart library's: nothing of a run is in them.
var pageTemplate = template.Must(chart.AddTo(template.New("")).Funcs(template.FuncMap{
	"script":  func() template.JS { return template.JS(chart.Script()) },
	"style":   func() template.CSS { return template.CSS(Style()) },
	"license": chart.License,
}).ParseFS(pages, "*.html"))

// page is the template's input.
type page struct {
	Title  string
	Loss   float64 // the bound on a job's rho
	Traces []tracePart
	Length []score.Period // with the explained lengths and tolerances
}

// tracePart is a trace on a page.
type tracePart struct {
	Trace string
	Sweep []figure // for several sizes of cluster
	Sizes []sizePart
}

// sizePart is a trace on one size of cluster, on a page.
type sizePart struct {
	group
	Open     bool
	Parts    []part
	Figures  []figure
	Boxes    []figure
	BoxOf    string // the boxes' periods
	Shown    int    // number of tenants with a box
	Tenants  int
	Use      []figure
	ByModel  []figure // of use, if there are several GPU models
	OnModel  []tenantTable
	Audits   []score.Scores // runs with an audit
	ByTenant []tenantTable
}

// tenantTable has a row for each tenant and a column for each run.
type tenantTable struct {
	Name string
	Rows [][]string // the first cell is the tenant
}

// byTenant gives a table of one number of every tenant; "-" if it is missing.
func byTenant(name string, digits int, runs []score.Scores, of func(score.Tenant) (float64, bool)) tenantTable {
	names, _ := largestTenants(runs, math.MaxInt)
	t := tenantTable{Name: name}
	for _, name := range names {
		row := []string{name}
		for _, s := range runs {
			text := "-"
			for _, x := range s.Tenants {
				if v, ok := of(x); x.Tenant == name && ok {
					text = grouped(strconv.FormatFloat(v, 'f', digits, 64))
				}
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// HTML writes one self-contained page: tables, plots and explanations. Of several sizes of a
// cluster the smallest, which is the most crowded, is open. The error is w's.
func HTML(w io.Writer, title string, runs []score.Scores) error {
	return write(w, "page.html", newPage(title, runs))
}

// Body writes what HTML has below its title, for a page that has Style and chart.Script already. The error is w's.
func Body(w io.Writer, runs []score.Scores) error {
	return write(w, "body", newPage("", runs))
}

// Head writes a table of what readers look at first: a row for each run. The error is w's.
func Head(w io.Writer, runs []score.Scores) error {
	head := part{Name: "Scheduler", Measures: []measure{lowestRho, lossShare, completionMean, completionP95, utilisation}}
	return write(w, "table", sizePart{group: group{Runs: runs}, Parts: []part{head}})
}

func write(w io.Writer, name string, with any) error {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, name, with); err != nil {
		return err
	}
	return safely(w, b.Bytes())
}

func newPage(title string, runs []score.Scores) page {
	var colour palette
	seen := map[string]bool{}
	for _, s := range runs {
		if !seen[s.Scheduler] {
			seen[s.Scheduler] = true
			colour = append(colour, s.Scheduler)
		}
	}
	p := page{Title: title}
	if len(runs) > 0 {
		p.Loss, p.Length = runs[0].Loss.Below, runs[0].Periods
	}
	var sizes []group
	for _, g := range groups(runs) {
		if len(sizes) > 0 && sizes[0].Trace != g.Trace {
			p.Traces = append(p.Traces, newTracePart(sizes, colour))
			sizes = nil
		}
		sizes = append(sizes, g)
	}
	if len(sizes) > 0 {
		p.Traces = append(p.Traces, newTracePart(sizes, colour))
	}
	return p
}

// safely writes a page without control characters.
func safely(w io.Writer, page []byte) error {
	_, err := w.Write(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r)
	}, page))
	return err
}

func newTracePart(sizes []group, colour palette) tracePart {
	t := tracePart{Trace: sizes[0].Trace}
	if len(sizes) > 1 {
		t.Sweep = append(t.Sweep,
			sweep("Mean job completion time by size of cluster", completionMean, sizes, colour),
			sweep("Jobs with a sharing loss by size of cluster", lossShare, sizes, colour))
		for i, p := range sizes[0].Runs[0].Periods[:min(1, len(sizes[0].Runs[0].Periods))] {
			t.Sweep = append(t.Sweep, sweep("Unfair tenant periods by size of cluster", unfair(i, p.Hours), sizes, colour))
		}
	}
	for i, g := range sizes {
		t.Sizes = append(t.Sizes, newSizePart(g, colour, i == 0))
	}
	return t
}

func newSizePart(g group, colour palette, open bool) sizePart {
	s := sizePart{group: g, Open: open, Parts: parts(g.Runs), Boxes: boxes(g)}
	s.Figures = []figure{jobRho(g, colour), slowdown(g, colour), delay(g, colour),
		bars("Shortest mean completion time", "Completion time (JCT) is from submission to end, of finished jobs."+unfinished(g.Runs), completionMean, g, colour),
		bars("Fewest jobs with a sharing loss", "Share of jobs that received less than they were due.", lossShare, g, colour)}
	if len(g.Runs[0].Periods) > 0 {
		hours := g.Runs[0].Periods[0].Hours
		s.BoxOf = length(hours)
		s.Figures = append(s.Figures, bars("Fewest unfair tenant periods",
			"Share of periods of "+length(hours)+" in which a tenant received less than it was due.", unfair(0, hours), g, colour))
	}
	s.ByTenant = []tenantTable{
		byTenant("Mean queueing delay, h", 2, g.Runs, func(t score.Tenant) (float64, bool) { return stat(t.Wait, t.Wait.Mean, hour) }),
		byTenant("rho over the whole run", 3, g.Runs, func(t score.Tenant) (float64, bool) { return t.Rho, t.Due > 0 }),
	}
	names, all := largestTenants(g.Runs, boxTenants)
	s.Shown, s.Tenants = len(names), all
	s.Use, s.ByModel = use(g), useByModel(g)
	for i, model := range g.Runs[0].Models {
		s.OnModel = append(s.OnModel, byTenant("Time held on "+model.Model+", GPU h", 1, g.Runs, func(t score.Tenant) (float64, bool) {
			if i >= len(t.On) {
				return 0, false
			}
			return t.On[i].Held, true
		}))
	}
	for _, r := range g.Runs {
		if r.Audit != nil {
			s.Audits = append(s.Audits, r)
		}
	}
	return s
}

// unfinished warns of means without unfinished jobs.
func unfinished(runs []score.Scores) string {
	most := largest(runs, func(s score.Scores) float64 { return float64(s.Jobs.Unfinished) })
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(" Up to %.0f jobs of a run are unfinished and not in it.", most)
}

// Best tells whether a run's text of a measure is the best of its group.
func (s sizePart) Best(m measure, r score.Scores) bool { return m.leads(r, s.Runs) }
