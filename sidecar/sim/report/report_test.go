package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/report/reporttest"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// To view the page: go test ./sidecar/sim/report -run TestPage -page page.html
var pageFile = flag.String("page", "", "write the page of made-up runs to this file")

const start = cluster.Instant(1_700_000_000_000)

var (
	schedulers = []string{"astraea", "fifo", "slurm-multifactor", "quota-static", "quota-lend", "tiresias-l", "themis", "gandiva-fair"}
	sizes      = []int{40, 48, 60, 72, 100}
)

// madeUp gives a realistic run: load by day and night, longer waits on fewer nodes, worse with
// each next scheduler.
func madeUp(t testing.TB, scheduler, nodes, days int, tenants []string) score.Scores {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(scheduler), uint64(nodes)))
	gpus := 8 * nodes
	run := score.Run{Setting: score.Setting{Scheduler: schedulers[scheduler], Trace: "two weeks, made up", Nodes: nodes, GPUs: gpus,
		Interval: 10 * cluster.Second, Term: 15 * cluster.Minute, From: start}, To: start.Add(cluster.Span(days)*cluster.Day + 7*cluster.Hour)}
	crowd := float64(scheduler+1) * 40 / float64(nodes)
	for i := range 400 * days {
		submit := start.Add(cluster.Span(r.Int64N(int64(days) * int64(cluster.Day))))
		runs := cluster.Span(math.Exp(r.NormFloat64()*2+6) * 1000)
		wait := cluster.Span(0)
		if r.Float64() < 0.12*crowd {
			wait = cluster.Span(math.Exp(r.NormFloat64()*1.5+7) * 1000 * crowd)
		}
		j := score.Job{ID: fmt.Sprint(i), Tenant: tenants[r.IntN(len(tenants))], User: "u" + fmt.Sprint(r.IntN(30)), GPUs: 1 << r.IntN(5),
			Submit: submit, Start: submit.Add(wait), Runs: runs, Overhead: runs / 120, Outcome: "COMPLETED"}
		j.Held = runs + j.Overhead
		j.Preemptions = int(runs / (4 * cluster.Hour))
		j.End = j.Start.Add(j.Held)
		j.Alloc = cluster.Times(j.GPUs, j.Held)
		j.Due = cluster.GPUTime(float64(j.Alloc) * (0.4 + r.Float64()*0.7))
		if wait > 0 {
			j.Due += cluster.Times(j.GPUs, wait) / 3
		}
		if j.End > run.To {
			j.End = 0
		}
		if j.Start > run.To {
			j.Start = 0
		}
		run.Jobs = append(run.Jobs, j)
	}
	alloc, due := make([]cluster.GPUTime, len(tenants)), make([]cluster.GPUTime, len(tenants))
	const step = 15 * cluster.Minute
	for at := start; at <= run.To; at = at.Add(step) {
		s := score.Sample{At: at, Capacity: gpus}
		if day := at.Sub(start) / cluster.Day; day == 5 {
			s.Capacity -= 24
		}
		hours := float64(at.Sub(start)) / float64(cluster.Hour)
		for i, name := range tenants {
			want := float64(gpus) / float64(len(tenants)) * (1 + 0.9*math.Sin(hours/24*2*math.Pi+float64(i))) * (0.5 + r.Float64())
			holds := cluster.Micro(min(int(want), s.Capacity-s.Used))
			rate := cluster.MicroGPU(want*(0.55+0.06*float64(scheduler))) * cluster.WholeGPU
			s.Used += holds.Devices()
			s.Tenants = append(s.Tenants, score.TenantSample{Tenant: name, Holds: holds, Due: rate, Alloc: alloc[i], DueTotal: due[i]})
			alloc[i] += holds.Over(step)
			due[i] += cluster.Times(int(rate/cluster.WholeGPU), step)
		}
		s.Fragmented = (s.Capacity - s.Used) / 4
		run.Samples = append(run.Samples, s)
	}
	scores, err := scored(run, score.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if scheduler < 2 { // an audit against clusters in which every tenant waits ten minutes
		alone := run
		alone.Jobs = slices.Clone(run.Jobs)
		for i := range alone.Jobs {
			j := &alone.Jobs[i]
			j.Start = j.Submit.Add(10 * cluster.Minute)
			j.End = j.Start.Add(j.Held)
		}
		scores.Audit = score.Audit(run, []score.Run{alone}, cluster.Minute)
	}
	return scores
}

// scored gives the scores of a run that is in memory.
func scored(run score.Run, opt score.Options) (score.Scores, error) {
	m := score.NewMeter(run.Setting, opt)
	for _, j := range run.Jobs {
		if err := m.Job(j); err != nil {
			return score.Scores{}, err
		}
	}
	for _, s := range run.Samples {
		if err := m.Sample(s); err != nil {
			return score.Scores{}, err
		}
	}
	return m.Scores(run.To)
}

func manyTenants() []string {
	var out []string
	for i := range 18 {
		out = append(out, fmt.Sprintf("department-of-computational-%s-%02d", []string{"biology", "linguistics", "fluid-dynamics"}[i%3], i+1))
	}
	return out
}

func allRuns(t testing.TB) []score.Scores {
	var runs []score.Scores
	for _, nodes := range sizes {
		for i := range schedulers {
			runs = append(runs, madeUp(t, i, nodes, 14, manyTenants()))
		}
	}
	return runs
}

func html(t testing.TB, runs []score.Scores) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, "Schedulers compared", runs); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// notANumber also matches the marker of html/template for a refused value.
var notANumber = regexp.MustCompile(`NaN|[-+]Inf\b|ZgotmplZ`)

func TestPage(t *testing.T) {
	runs := allRuns(t)
	text := html(t, runs)
	if *pageFile != "" {
		if err := os.WriteFile(*pageFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(text) > 2<<20 {
		t.Errorf("two weeks of 8 schedulers on 5 sizes make %d bytes, more than 2 MiB", len(text))
	}
	if again := html(t, runs); again != text {
		t.Error("the same runs give another page")
	}
	if n := strings.Count(text, "<script"); n != 1 {
		t.Errorf("%d scripts, want that of the charts", n)
	}
	if bad := regexp.MustCompile(`(?i)https?:|//[a-z]|<link|<img|\bsrc=|\bhref=|url\(|@import`).FindString(ours(text)) + notANumber.FindString(ours(text)); bad != "" {
		t.Errorf("the page has %q: it must need nothing else, and every number must be one", bad)
	}
	root := parse(t, text)
	figures := root.All("figure")
	// For each size: 6 plots, and a box and a use for each scheduler; then 3 sweeps.
	if want := len(sizes)*(6+2*len(schedulers)) + 3; len(figures) != want {
		t.Errorf("%d figures, want %d", len(figures), want)
	}
	kinds := map[string]int{}
	for _, f := range figures {
		title, c := f.All("h4")[0].Text(), chartOf(t, f)
		var names []string
		for _, s := range c.Series {
			names = append(names, s.Name)
		}
		switch {
		case strings.Contains(title, "by size of cluster"):
			kinds["sweep"]++
			if !slices.Equal(names, schedulers) || len(c.Series[0].X) != len(sizes) {
				t.Errorf("%s: lines of %v over %v", title, names, c.Series[0].X)
			}
		case c.Kind == chart.Boxes:
			kinds["box"]++
			if len(c.Rows) != 18 || len(c.Series[0].Boxes) != 18 {
				t.Errorf("%s: %d boxes, want one for each of 18 tenants", title, len(c.Series[0].Boxes))
			}
		case c.Kind == chart.Areas:
			kinds["use"]++
			if len(names) != useTenants+2 || names[useTenants] != "11 other tenants" || names[useTenants+1] != "healthy GPUs" {
				t.Errorf("%s: layers %v", title, names)
			}
		case c.Kind == chart.Bars:
			kinds["bars"]++
			if !slices.Equal(c.Rows, schedulers) || len(c.Series[0].Texts) != len(schedulers) {
				t.Errorf("%s: bars of %v", title, c.Rows)
			}
		default:
			kinds["curves"]++
			if !slices.Equal(names, schedulers) {
				t.Errorf("%s: curves of %v", title, names)
			}
		}
	}
	if n := len(sizes); kinds["sweep"] != 3 || kinds["box"] != 8*n || kinds["use"] != 8*n || kinds["bars"] != 3*n || kinds["curves"] != 3*n {
		t.Errorf("figures: %v", kinds)
	}
	if n := len(root.All("table")) - len(figures); n != len(sizes)*(3+2+2) { // three parts, two of tenants and two audits
		t.Errorf("%d tables beside those of the charts", n)
	}
	for _, m := range parts(runs)[1].Measures { // the table shows the numbers
		if text := m.Text(runs[0]); !slices.ContainsFunc(root.All("td"), func(x *reporttest.Element) bool { return x.Text() == text }) {
			t.Errorf("the tables lack %s %s", m.Name, text)
		}
	}
}

func TestTenantsByHand(t *testing.T) {
	runs := hand()
	runs[1].Tenants = runs[1].Tenants[1:]
	got := byTenant("rho", 2, runs, func(t score.Tenant) (float64, bool) { return t.Rho, t.Due > 0 })
	if want := [][]string{{"x", "1.25", "-"}, {"y", "0.75", "0.75"}, {"z", "-", "-"}}; !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("rows %v, want %v", got.Rows, want)
	}
}

// ours gives a page without the contents of its script and its style.
func ours(text string) string {
	return regexp.MustCompile(`(?s)(<(script|style)>).*?(</(?:script|style)>)`).ReplaceAllString(text, "$1$3")
}

// chartOf gives the chart in a figure.
func chartOf(t *testing.T, figure *reporttest.Element) *chart.Chart {
	t.Helper()
	c := new(chart.Chart)
	hosts := figure.Class("chart")
	if len(hosts) != 1 {
		t.Fatalf("%d charts in a figure", len(hosts))
	}
	if err := json.Unmarshal([]byte(hosts[0].Attr["data-chart"]), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads a page.
func parse(t *testing.T, text string) *reporttest.Element {
	t.Helper()
	return reporttest.Parse(t, ours(text))
}

// Whatever a name is, it comes out as text.
func TestNamesAreEscaped(t *testing.T) {
	evil := []string{`<script>alert(1)</script>`, `"><b onmouseover="x">`, `'; </svg></title> &amp; {{.}}`, "\x1b[31mred\n\u202e"}
	run := madeUp(t, 0, 40, 2, evil)
	run.Scheduler, run.Trace = evil[0], evil[1]
	run.Audit[0].Longer, run.Audit[0].Tenant, run.Audit[0].Worst[0].Job = true, evil[3], evil[2]
	second := madeUp(t, 1, 60, 2, evil)
	second.Trace = evil[1]
	page := html(t, []score.Scores{run, second})
	root := parse(t, page)
	if n := len(root.All("script")) - 1 + len(root.All("b")); n != 0 {
		t.Errorf("a name has become %d elements", n)
	}
	names := func(x *reporttest.Element) bool { return x.Text() == evil[0] || strings.Contains(x.Words, evil[0]+":") }
	if len(root.Find(names)) < 5 {
		t.Error("the name is not there as text")
	}
	var b bytes.Buffer
	if err := Table(&b, []score.Scores{run}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String()+page, "\x1b\u202e") || !strings.Contains(b.String(), "?[31mred??") {
		t.Errorf("a terminal would obey a name:\n%q", b.String())
	}
}

// With several GPU models the page and the CSV say who held which.
func TestModels(t *testing.T) {
	run, err := scored(score.Run{Setting: score.Setting{Scheduler: "s", Nodes: 2, GPUs: 8, From: start, Models: []score.Model{{Model: "k80", GPUs: 4}, {Model: "v100", GPUs: 4}}},
		To: start.Add(cluster.Hour), Samples: []score.Sample{{At: start, Capacity: 8, Used: 5, Tenants: []score.TenantSample{
			{Tenant: "a", Holds: cluster.Micro(4), On: []cluster.MicroGPU{cluster.Micro(3), cluster.Micro(1)}}, {Tenant: "b", Holds: cluster.Micro(1), On: []cluster.MicroGPU{cluster.Micro(0), cluster.Micro(1)}}}}}}, score.Standard())
	if err != nil {
		t.Fatal(err)
	}
	text := html(t, []score.Scores{run})
	parse(t, text)
	for _, want := range []string{"GPUs of each model over time", "k80 with s", "3.0 of 4 GPUs held on average", "v100 with s", "2.0 of 4 GPUs held on average", "Time held on v100, GPU h"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	var b bytes.Buffer
	if err := CSV(&b, []score.Scores{run}); err != nil {
		t.Fatal(err)
	}
	if want := ",2,8,s,a,on.k80.held_gpu_h,3,\n"; !strings.Contains(b.String(), want) {
		t.Errorf("the CSV does not have %q", want)
	}
}

// Runs with almost no data are shown, too.
func TestLittleToShow(t *testing.T) {
	empty, err := scored(score.Run{Setting: score.Setting{Scheduler: "a", From: start}, To: start}, score.Standard())
	if err != nil {
		t.Fatal(err)
	}
	none, err := scored(score.Run{Setting: score.Setting{Scheduler: "b", From: start}, To: start}, score.Options{})
	if err != nil {
		t.Fatal(err)
	}
	single, err := scored(score.Run{Setting: score.Setting{Scheduler: "c", Nodes: 1, GPUs: 8, From: start}, To: start.Add(cluster.Minute),
		Jobs:    []score.Job{{ID: "1", Tenant: "x", GPUs: 8, Submit: start, Start: start, End: start.Add(30), Runs: 30, Held: 30, Alloc: 240, Due: 240}},
		Samples: []score.Sample{{At: start, Capacity: 8, Used: 8, Tenants: []score.TenantSample{{Tenant: "x", Holds: cluster.Micro(8)}}}}}, score.Standard())
	if err != nil {
		t.Fatal(err)
	}
	for _, runs := range [][]score.Scores{nil, {empty}, {none, empty}, {single}, {empty, none, single}} {
		text := html(t, runs)
		parse(t, text)
		if bad := notANumber.FindString(ours(text)); bad != "" {
			t.Errorf("%d runs: the page has %s", len(runs), bad)
		}
		for _, write := range []func(io.Writer, []score.Scores) error{Table, CSV, JSON} {
			if err := write(io.Discard, runs); err != nil {
				t.Error(err)
			}
		}
	}
}

// hand gives two runs with round scores.
func hand() []score.Scores {
	a := score.Scores{Setting: score.Setting{Scheduler: "astraea", Trace: "small", Nodes: 2, GPUs: 16, Saves: "60 % never, 40 % notice (drawn by kind)"},
		Jobs:       score.Counts{All: 1200, Finished: 1198, Unfinished: 2},
		Completion: score.Stats{Count: 1198, Mean: 7200, Median: 3600, P95: 36000, P99: 72000},
		Wait:       score.Stats{Count: 1198, Mean: 900, P95: 3600}, Slowdown: score.Stats{Count: 1198, Mean: 1.5, P95: 4},
		JobRho: score.Stats{Count: 1000, Median: 1.01}, Loss: score.Loss{Below: 0.95, Jobs: 20, Share: 0.02},
		Periods:     []score.Period{{Hours: 1, Rho: score.Stats{Count: 200, Median: 1}, Unfair: 5, Tolerance: 0.01}},
		Tenants:     []score.Tenant{{Tenant: "x", Due: 10, Rho: 1.25}, {Tenant: "y", Due: 5, Rho: 0.75}, {Tenant: "z"}},
		Utilisation: 0.8125, Use: score.Use{Capacity: []float64{16}}, Overhead: score.Overhead{OfRun: 0.01, OfCompletion: 0.008, Lost: score.Lost{OfRun: 0.0025, GPUHours: 3, Jobs: 7}},
		Preemptions: 1234, Makespan: 360000,
		Audit: []score.Audited{{Tenant: "y", Longer: true, Jobs: 10, LeftOut: 1, Shared: 12, Private: 2, Worse: 4, Lost: 11,
			Worst: []score.Anomaly{{Job: "17", User: "ann", GPUs: 8, Shared: 9, Private: 1, Unfinished: true}}}, {Tenant: "x", Jobs: 5}}}
	b := a
	b.Scheduler, b.Completion.Mean, b.Loss.Share, b.Audit = "slurm-multifactor", 9000, 0.5, []score.Audited{{Tenant: "x"}}
	return []score.Scores{a, b}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, hand()); err != nil {
		t.Fatal(err)
	}
	const want = `small on 2 nodes, 16 GPUs
Jobs are taken to save: 60 % never, 40 % notice (drawn by kind)

fairness             unfair 1 h   median rho 1 h    lowest rho   sharing loss   median rho   wait longer
                   % of periods       of tenants   of a tenant      % of jobs      of jobs       tenants
astraea                     2.5            1.000         0.750            2.0*       1.010             1
slurm-multifactor           2.5            1.000         0.750           50.0        1.010             0*

time               mean JCT   median JCT   p95 JCT   p99 JCT   mean delay   p95 delay   mean slowdown   p95 slowdown   makespan
                          h            h         h         h            h           h               ×              ×          h
astraea                2.00*        1.00     10.00     20.00         0.25        1.00            1.50           4.00      100.0
slurm-multifactor      2.50         1.00     10.00     20.00         0.25        1.00            1.50           4.00      100.0

use                utilisation   fragmented   preemptions   overhead   work lost   overhead   finished   withdrawn   unfinished
                     % of GPUs    % of GPUs                 % of run    % of run   % of JCT       jobs        jobs         jobs
astraea                   81.2         0.00         1,234       1.00        0.25       0.80      1,198           0            2
slurm-multifactor         81.2         0.00         1,234       1.00        0.25       0.80      1,198           0            2

astraea against a private cluster for each tenant:
  y waits longer: 12.0 h instead of 2.0 h over 10 jobs (1 more had no end there); 4 of them wait longer, by 11.0 h in all
    job 17 of ann, 8 GPUs: 9.0 h instead of 1.0 h so far, unfinished

slurm-multifactor against a private cluster for each tenant:
  no tenant waits longer

* the best; rho: GPU time received over GPU time due; sharing loss: jobs that received less than they were due
astraea against plain Slurm
  better: fewer sharing-loss jobs (2.0, 50.0 %), shorter completion times (2.00, 2.50 h)
  worse:  nothing

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// In every block, the numbers of a column end at the same position.
func TestTableIsAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := hand()
		for i := range runs {
			runs[i].Scheduler = rapid.StringN(1, 40, -1).Draw(t, "name")
			runs[i].Completion.Mean = rapid.Float64Range(0, 1e9).Draw(t, "mean")
			runs[i].Jobs.Finished = rapid.IntRange(0, 1e9).Draw(t, "jobs")
		}
		for _, p := range parts(runs) {
			var b bytes.Buffer
			block(&b, p, runs)
			lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
			ends := func(line string) string { // the end of each number
				cells := regexp.MustCompile(` +[-0-9.,]+[* ]?`).FindAllStringIndex(line, -1)
				var at []int
				for _, c := range cells[max(0, len(cells)-len(p.Measures)):] {
					at = append(at, utf8.RuneCountInString(strings.TrimRight(line[:c[1]], "* ")))
				}
				return fmt.Sprint(at)
			}
			if a, b := ends(lines[2]), ends(lines[3]); a != b {
				t.Fatalf("columns end at %s and %s:\n%s", a, b, strings.Join(lines, "\n"))
			}
		}
	})
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, hand()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]string{}
	for _, r := range rows[1:] {
		key := r[3] + "|" + r[4] + "|" + r[5]
		if _, ok := value[key]; ok || r[0] != "small" || r[1] != "2" || r[2] != "16" {
			t.Errorf("row %v", r)
		}
		value[key] = r[6]
	}
	for key, want := range map[string]string{
		"astraea||completion_s.mean": "7200", "slurm-multifactor||completion_s.mean": "9000", "astraea||jobs.unfinished": "2",
		"astraea||sharing_loss.share": "0.02", "astraea||periods.1h.unfair": "5", "astraea||periods.1h.rho.count": "200",
		"astraea||utilisation": "0.8125", "astraea|x|rho": "1.25", "astraea|y|due_gpu_h": "5", "astraea||overhead.of_run": "0.01",
	} {
		if value[key] != want {
			t.Errorf("%s: %q, want %s", key, value[key], want)
		}
	}
}

func TestJSON(t *testing.T) {
	runs := []score.Scores{madeUp(t, 0, 40, 2, manyTenants()), madeUp(t, 1, 40, 2, manyTenants())}
	var b bytes.Buffer
	if err := JSON(&b, runs); err != nil {
		t.Fatal(err)
	}
	var back []score.Scores
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, runs) {
		t.Error("the scores do not come back from JSON as they were")
	}
}

func TestOrderOfRuns(t *testing.T) {
	runs := []score.Scores{{Setting: score.Setting{Trace: "b", GPUs: 80, Scheduler: "y"}}, {Setting: score.Setting{Trace: "a", GPUs: 8, Scheduler: "x"}},
		{Setting: score.Setting{Trace: "b", GPUs: 8, Scheduler: "y"}}, {Setting: score.Setting{Trace: "b", GPUs: 80, Scheduler: "x"}}}
	var got []string
	for _, g := range groups(runs) {
		got = append(got, fmt.Sprintf("%s %d %d", g.Trace, g.GPUs, len(g.Runs)))
	}
	if want := []string{"b 8 1", "b 80 2", "a 8 1"}; !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// Names of tenants and files begin no formula in a spreadsheet.
func TestNoFormulas(t *testing.T) {
	runs := hand()[:1]
	runs[0].Trace, runs[0].Tenants[0].Tenant = "-history", `=HYPERLINK("http://example.com")`
	var scores, points bytes.Buffer
	if err := CSV(&scores, runs); err != nil {
		t.Fatal(err)
	}
	c := Chart{Panels: []Panel{{Title: "@title", Names: []string{"+1"}, Curves: []Curve{{Name: "=curve", Y: []float64{-1}}}}}}
	if err := c.CSV(&points); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{scores.String(), points.String()} {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows[1:] {
			for _, cell := range row {
				if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.ContainsAny(cell[:min(len(cell), 1)], "=+-@") {
					t.Fatalf("the cell %q begins a formula", cell)
				}
			}
		}
	}
}
