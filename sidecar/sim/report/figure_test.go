package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// shapes gives the paths of a class.
func shapes(p *plot, class string) []string {
	var out []string
	for _, m := range p.Marks {
		if m.Class == class {
			out = append(out, m.D)
		}
	}
	return out
}

func equal(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// drawn gives runs of schedulers a and b with simple series.
func drawn() group {
	a := score.Scores{Setting: score.Setting{Scheduler: "a", Nodes: 1, GPUs: 8, From: start}, To: start.Add(4 * cluster.Hour),
		Completion: score.Stats{Count: 2, Mean: 2 * hour}, Loss: score.Loss{Below: 0.95}, JobRho: score.Stats{Count: 2, Q3: 2},
		JobRhoCDF: []float64{0.5, 0.5, 1.5}, Slowdown: score.Stats{Count: 2, Q1: 1, P99: 90}, SlowdownCDF: []float64{1, 10, 1000},
		Wait:     score.Stats{Count: 4, Mean: 1},
		Arrivals: score.Arrivals{Step: hour, Jobs: []int64{1, 0, 3, 0}, Wait: []float64{hour, 0, 9 * hour, 0}},
		Periods:  []score.Period{{Hours: 1, Rho: score.Stats{Count: 8}}},
		Tenants: []score.Tenant{
			{Tenant: "x", Due: 3, Periods: []score.Period{{Rho: score.Stats{Count: 4, Min: 0.5, Q1: 1, Median: 1.5, Q3: 2, Max: 9}}}},
			{Tenant: "y", Due: 9, Periods: []score.Period{{Rho: score.Stats{}}}}},
		Use: score.Use{Step: hour, Capacity: []float64{8, 8, 6, 8}, Used: []float64{8, 4, 4, 0},
			Tenants: []score.Line{{Tenant: "x", GPUs: []float64{2, 2, 2, 0}}, {Tenant: "y", GPUs: []float64{6, 2, 2, 0}}}}}
	b := a
	b.Scheduler, b.Completion.Mean = "b", 4*hour
	return group{Nodes: 1, GPUs: 8, Runs: []score.Scores{a, b}}
}

func TestCurvesByHand(t *testing.T) {
	g, p := drawn(), palette{"a", "b"}
	f := jobRho(g, p)
	x, y := func(v float64) string { return px(f.Plot.x.at(v)) }, func(v float64) string { return px(f.Plot.y.at(v)) }
	curve := "M" + x(0.5) + " " + y(0) + "V" + y(50) + "H" + x(1.5) + "V" + y(100)
	equal(t, "rho of jobs", append(shapes(f.Plot, "line c0 d0"), shapes(f.Plot, "line c1 d0")...), curve, curve)
	equal(t, "the mark of sharing loss", shapes(f.Plot, "mark"), line(f.Plot.x.at(0.95), f.Plot.y.at(100), f.Plot.x.at(0.95), f.Plot.y.at(0)))

	f = slowdown(g, p) // to 100, though the largest of 1000 is beyond
	if f.Plot.x.hi != 100 {
		t.Errorf("slowdown goes to %v", f.Plot.x.hi)
	}
	equal(t, "slowdown", shapes(f.Plot, "line c0 d0"), "M"+x(0)+" "+y(0)+"H"+px(f.Plot.x.at(10))+"V"+y(50)+"H"+px(f.Plot.x.b))
}

func TestBarsByHand(t *testing.T) {
	f := bars("Best", "", completionMean, drawn(), palette{"a", "b"})
	if f.Title != "Best: a (2.00 h)" {
		t.Errorf("title %q", f.Title)
	}
	x, full := f.Plot.x, f.Plot.x.b-f.Plot.x.a
	equal(t, "bar of 4 h", shapes(f.Plot, "area c1 d0"), box(x.a, f.Plot.rows[1]-5.5, x.b, f.Plot.rows[1]+5.5))
	equal(t, "bar of 2 h", shapes(f.Plot, "area c0 d0"), box(x.a, f.Plot.rows[0]-5.5, x.a+full/2, f.Plot.rows[0]+5.5))
}

func TestBoxesByHand(t *testing.T) {
	f := boxes(drawn())[1]
	x, y := f.Plot.x, f.Plot.rows[0]
	if f.Title != "b" || x.hi != 2 {
		t.Errorf("%s goes to %v", f.Title, x.hi)
	}
	at := func(share float64) float64 { return x.a + share*(x.b-x.a) }
	equal(t, "box", shapes(f.Plot, "box"), box(at(0.5), y-5, at(1), y+5))
	equal(t, "median", shapes(f.Plot, "median"), line(at(0.75), y-5, at(0.75), y+5))
	equal(t, "whisker", shapes(f.Plot, "whisker"), line(at(0.25), y, at(1), y))
	if len(shapes(f.Plot, "arrow")) != 1 {
		t.Error("nothing tells that the largest is beyond the axis")
	}
}

func TestStackByHand(t *testing.T) {
	figures, legend := use(drawn())
	if fmt.Sprint(legend) != "[{c0 x} {c1 y}]" {
		t.Errorf("legend %v", legend)
	}
	p := figures[0].Plot
	if p.x.hi != 4 || p.y.hi != 8 {
		t.Errorf("axes to %v h and %v GPUs", p.x.hi, p.y.hi)
	}
	x, y := func(v float64) string { return px(p.x.at(v)) }, func(v float64) string { return px(p.y.at(v)) }
	equal(t, "x holds 2 GPUs for three hours", shapes(p, "area c0"),
		"M"+x(0)+" "+y(0)+"V"+y(2)+"H"+x(3)+"V"+y(0)+"H"+x(4)+"V"+y(0)+"Z")
	equal(t, "y on top makes 8, then 4", shapes(p, "area c1"),
		"M"+x(0)+" "+y(0)+"V"+y(8)+"H"+x(1)+"V"+y(4)+"H"+x(3)+"V"+y(0)+"H"+x(4)+"V"+y(0)+"Z")
	equal(t, "healthy GPUs", shapes(p, "capacity"), "M"+x(0)+" "+y(8)+"H"+x(2)+"V"+y(6)+"H"+x(3)+"V"+y(8)+"H"+x(4))
}

func TestMovingAverageByHand(t *testing.T) {
	a := score.Arrivals{Step: 60, Jobs: []int64{0, 2, 1, 0, 0, 0, 1}, Wait: []float64{0, 10, 50, 0, 0, 0, 7}}
	got, nan := moving(a, 180), math.NaN()
	if want := []float64{nan, 5, 20, 20, 50, nan, 7}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("over three steps: %v, want %v", got, want)
	}
	f := delay(drawn(), palette{"a", "b"}) // a window of ten minutes: each step separately
	p := f.Plot
	if p.y.label != "mean delay, h" || p.y.hi != 3 {
		t.Errorf("axis %q to %v", p.y.label, p.y.hi)
	}
	equal(t, "delay", shapes(p, "line c0 d0"), "M"+px(p.x.at(1))+" "+px(p.y.at(1))+"h0M"+px(p.x.at(3))+" "+px(p.y.at(3))+"h0")
}

func TestSweepByHand(t *testing.T) {
	small, large := drawn(), drawn()
	large.GPUs = 24
	large.Runs[0].Completion.Mean = hour
	large.Runs = large.Runs[:1]
	f := sweep("by size", completionMean, []group{small, large}, palette{"a", "b"})
	x, y := f.Plot.x, f.Plot.y
	equal(t, "a on both sizes", shapes(f.Plot, "line c0 d0"), line(x.a, y.at(2), x.b, y.at(1)))
	equal(t, "b on one", shapes(f.Plot, "line c1 d0"), "M"+px(x.a)+" "+px(y.at(4))+"h0")
	if f.Caption != "On 1 node, 8 GPUs, best is a (2.00 h)." {
		t.Errorf("caption %q", f.Caption)
	}
}

func TestWinners(t *testing.T) {
	g := drawn()
	if got := lossShare.winners(g.Runs); got != "no difference" {
		t.Errorf("equal runs: %s", got)
	}
	third := g.Runs[0]
	third.Scheduler = "c"
	if got := completionMean.winners(append(g.Runs, third)); got != "a and c (2.00 h)" {
		t.Errorf("two that share the best: %s", got)
	}
}

// A single run has no comparison: its titles give its values.
func TestTitlesOfOneRun(t *testing.T) {
	g := drawn()
	if got := completionMean.title("Shortest mean completion time", g.Runs); got != "Shortest mean completion time: a (2.00 h)" {
		t.Errorf("two runs: %s", got)
	}
	if got := completionMean.title("Shortest mean completion time", g.Runs[:1]); got != "Mean JCT: 2.00 h" {
		t.Errorf("one run: %s", got)
	}
	var b bytes.Buffer
	if err := HTML(&b, "one", g.Runs[:1]); err != nil || strings.Contains(b.String(), "no difference") {
		t.Errorf("%v\n%s", err, b.String())
	}
	large := drawn()
	large.GPUs, large.Runs = 24, large.Runs[:1]
	g.Runs = g.Runs[:1]
	if f := sweep("by size", completionMean, []group{g, large}, palette{"a"}); f.Caption != "" {
		t.Errorf("caption %q of one scheduler on two sizes", f.Caption)
	}
}
