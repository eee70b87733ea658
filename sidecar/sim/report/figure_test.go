package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/chart"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// same compares the X and Y of a series.
func same(t *testing.T, s chart.Series, xs, ys []float64) {
	t.Helper()
	if fmt.Sprint(s.X, s.Y) != fmt.Sprint(xs, ys) {
		t.Errorf("%s: %v over %v, want %v over %v", s.Name, s.Y, s.X, ys, xs)
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
	c := jobRho(g, p).Chart
	same(t, c.Series[0], []float64{0.5, 1.5}, []float64{50, 100})
	same(t, c.Series[1], []float64{0.5, 1.5}, []float64{50, 100})
	if !c.Series[0].Steps || c.Series[0].Colour != 0 || c.Series[1].Colour != 1 || !slices.Equal(c.Marks, []float64{0.95}) {
		t.Errorf("rho of jobs: %+v", c)
	}
	c = slowdown(g, p).Chart
	if c.X.Max != 100 || !c.X.Log { // though the largest of 1000 is beyond
		t.Errorf("slowdown goes to %v", c.X.Max)
	}
	same(t, c.Series[0], []float64{1, 10, 1000}, []float64{0, 50, 100})
}

func TestBarsByHand(t *testing.T) {
	f := bars("Best", "", completionMean, drawn(), palette{"a", "b"})
	if f.Title != "Best: a (2.00 h)" {
		t.Errorf("title %q", f.Title)
	}
	s := f.Chart.Series[0]
	if !slices.Equal(f.Chart.Rows, []string{"a", "b"}) || !slices.Equal(s.Y, []float64{2, 4}) || !slices.Equal(s.Texts, []string{"2.00", "4.00"}) || !slices.Equal(s.Colours, []int{0, 1}) {
		t.Errorf("bars %+v", f.Chart)
	}
}

func TestBoxesByHand(t *testing.T) {
	f := boxes(drawn())[1]
	if f.Title != "b" || f.Chart.X.Max != 2 || !slices.Equal(f.Chart.Rows, []string{"x", "y"}) {
		t.Errorf("%s: %+v", f.Title, f.Chart)
	}
	want := []chart.Box{{Min: 0.5, Q1: 1, Median: 1.5, Q3: 2, Max: 9, Count: 4}, {}}
	if got := f.Chart.Series[0].Boxes; !slices.Equal(got, want) {
		t.Errorf("boxes %v, want %v", got, want)
	}
}

func TestStackByHand(t *testing.T) {
	c := use(drawn())[0].Chart
	if c.X.Max != 4 || c.Y.Max != 8 || len(c.Series) != 3 {
		t.Errorf("axes to %v h and %v GPUs", c.X.Max, c.Y.Max)
	}
	hours := []float64{0, 1, 2, 3, 4}
	same(t, c.Series[0], hours, []float64{2, 2, 2, 0, 0})
	same(t, c.Series[1], hours, []float64{6, 2, 2, 0, 0})
	same(t, c.Series[2], hours, []float64{8, 8, 6, 8, 8})
	if !c.Series[2].Over || c.Series[1].Colour != 1 {
		t.Errorf("series %+v", c.Series)
	}
}

func TestMovingAverageByHand(t *testing.T) {
	a := score.Arrivals{Step: 60, Jobs: []int64{0, 2, 1, 0, 0, 0, 1}, Wait: []float64{0, 10, 50, 0, 0, 0, 7}}
	got, nan := moving(a, 180), math.NaN()
	if want := []float64{nan, 5, 20, 20, 50, nan, 7}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("over three steps: %v, want %v", got, want)
	}
	f := delay(drawn(), palette{"a", "b"}) // a window of ten minutes: each step separately
	if f.Chart.Y.Label != "mean delay, h" {
		t.Errorf("axis %q", f.Chart.Y.Label)
	}
	same(t, f.Chart.Series[0], []float64{1, 2, 3, 4}, []float64{1, nan, 3, nan})
}

func TestSweepByHand(t *testing.T) {
	small, large := drawn(), drawn()
	large.GPUs = 24
	large.Runs[0].Completion.Mean = hour
	large.Runs = large.Runs[:1]
	f := sweep("by size", completionMean, []group{small, large}, palette{"a", "b"})
	same(t, f.Chart.Series[0], []float64{8, 24}, []float64{2, 1})
	same(t, f.Chart.Series[1], []float64{8}, []float64{4})
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
	third.Completion.Mean, third.Jobs.Unfinished = hour, 100 // the long ones
	if got := completionMean.winners(append(g.Runs[:2:2], third)); got != "a (2.00 h)" || completionMean.leads(third, append(g.Runs[:2:2], third)) {
		t.Errorf("one that does not end: %s", got)
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
	if err := HTML(&b, "one", g.Runs[:1]); err != nil || strings.Contains(ours(b.String()), "no difference") {
		t.Errorf("%v\n%s", err, b.String())
	}
	large := drawn()
	large.GPUs, large.Runs = 24, large.Runs[:1]
	g.Runs = g.Runs[:1]
	if f := sweep("by size", completionMean, []group{g, large}, palette{"a"}); f.Caption != "" {
		t.Errorf("caption %q of one scheduler on two sizes", f.Caption)
	}
}

func TestShapesByHand(t *testing.T) {
	nan := math.NaN()
	for got, want := range map[string]string{
		shorten("department-of-biology-17", 12):                                 "depart…gy-17",
		fmt.Sprint(thin([]float64{1, 3, 5, 7, 9}, 3)):                           "[2 6 9] 2",
		fmt.Sprint(thin([]float64{1, nan, nan, nan, 9}, 3)):                     "[1 NaN 9] 2",
		strings.Join([]string{grouped("1234567.5"), grouped("-123"), "!"}, " "): "1,234,567.5 -123 !",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
