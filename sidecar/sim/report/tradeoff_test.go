package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/report/reporttest"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// sweepOf makes trials with these terms, in minutes: longer terms have more losses and less
// overhead.
func sweepOf(terms ...int) []score.Trial {
	var out []score.Trial
	for i, minutes := range terms {
		t := score.Trial{Window: 14 * cluster.Day, Scores: score.Scores{Setting: score.Setting{Interval: 10 * cluster.Second, Term: cluster.Span(minutes) * cluster.Minute},
			Jobs: score.Counts{Finished: 100}, Completion: score.Stats{Count: 100, Mean: 36_000 + 100*float64(i)}, JobRho: score.Stats{Count: 100},
			Loss: score.Loss{Below: 0.95, Jobs: 5 + i, Share: 0.05 + 0.01*float64(i)}, Overhead: score.Overhead{OfRun: 0.15 / float64(minutes)},
			Periods: []score.Period{{Hours: 1, Unfair: 4, Rho: score.Stats{Count: 100}}}}}
		out = append(out, t)
	}
	return out
}

func tradeoffPage(t *testing.T, trials []score.Trial) *reporttest.Element {
	t.Helper()
	var b bytes.Buffer
	if err := Tradeoff(&b, "A <sweep>", trials, score.StandardRule()); err != nil {
		t.Fatal(err)
	}
	return parse(t, b.String())
}

// The page has a plot of every measure and of fairness over time, a mark for each setting, a
// large one for the best, and a row for each with its verdict.
func TestTradeoff(t *testing.T) {
	trials := sweepOf(5, 15, 30, 60)
	other := sweepOf(15, 30)
	for i := range other {
		other[i].Scores.Interval = cluster.Minute
		other[i].Scores.Loss.Jobs += 10
	}
	page := tradeoffPage(t, append(trials, other...))
	if h := page.All("h1"); len(h) != 1 || h[0].Text() != "A <sweep>" {
		t.Errorf("%+v", h)
	}
	if figures := page.All("figure"); len(figures) != 5 {
		t.Fatalf("%d figures: want one against the other, and four by term", len(figures))
	}
	for _, f := range page.All("figure") {
		c, points, large := chartOf(t, f), 0, 0
		for _, s := range c.Series {
			switch {
			case s.Name == "chosen":
				large++
			case s.Large > 0:
				large++
				fallthrough
			default:
				points += len(s.X)
			}
		}
		if points != 6 || large != 1 {
			t.Errorf("%s: %d marks, want one for each setting, and %d large ones, want 1", c.Title, points, large)
		}
	}
	if strong := page.All("strong"); len(strong) != 1 || strong[0].Text() != "term 15 min, interval 10 s, window 14 d" {
		t.Errorf("chosen: %+v", strong)
	}
	tables := page.All("table")
	rows := tables[len(tables)-1].All("tr") // the others are of charts
	if len(rows) != 7 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, want := range []string{"overhead above 1 %", "chosen", "1 sharing-loss jobs more", "2 sharing-loss jobs more"} {
		cells := rows[i+1].All("td")
		if got := cells[len(cells)-1].Text(); got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}

// With one setting, or none, there is still a page.
func TestTradeoffOfLittle(t *testing.T) {
	if figures := tradeoffPage(t, sweepOf(15)).All("figure"); len(figures) != 5 {
		t.Errorf("%d figures of one setting", len(figures))
	}
	var b bytes.Buffer
	if err := Tradeoff(&b, "nothing", nil, score.StandardRule()); err != nil || !strings.Contains(b.String(), "No setting can be chosen") || strings.Contains(ours(b.String()), "NaN") {
		t.Errorf("%v: %s", err, b.String())
	}
}
