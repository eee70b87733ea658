package score_test

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
)

func tried(term cluster.Span, over, jct float64, loss int) score.Trial {
	return score.Trial{Window: cluster.Day, Scores: score.Scores{Setting: score.Setting{Term: term, Interval: 10 * cluster.Second}, Jobs: score.Counts{Finished: 100},
		Completion: score.Stats{Count: 100, Mean: jct}, Overhead: score.Overhead{OfRun: over}, Loss: score.Loss{Jobs: loss}}}
}

func TestChoose(t *testing.T) {
	const m = cluster.Minute
	cut := tried(40*m, 0.001, 10, 0)
	cut.Scores.CutShort = true
	wide := tried(15*m, 0.008, 101, 5)
	wide.Window *= 2
	for _, c := range []struct {
		name   string
		trials []score.Trial
		best   int
		why    string // of every trial
	}{
		{"none", nil, -1, ""},
		{"fewest losses of those near the best", []score.Trial{tried(5*m, 0.02, 90, 0), tried(15*m, 0.008, 101, 5), tried(20*m, 0.006, 100, 9), tried(60*m, 0.002, 106, 1)}, 1,
			"overhead above 1 %|chosen|4 sharing-loss jobs more|mean JCT 6.0 % above the best"},
		{"ties to the longer term", []score.Trial{tried(15*m, 0.008, 100, 5), tried(20*m, 0.006, 101, 5)}, 1, "as good, but shorter|chosen"},
		{"then the longer window", []score.Trial{wide, tried(15*m, 0.008, 100, 5)}, 0, "chosen|as good, but shorter"},
		{"the cheapest where all are dear", []score.Trial{tried(5*m, 0.03, 90, 0), tried(15*m, 0.02, 100, 5)}, 1,
			"overhead above 1 %|chosen: the cheapest, though above 1 %"},
		{"not what was cut short", []score.Trial{cut, tried(15*m, 0.008, 100, 5)}, 1, "cut short|chosen"},
		{"nothing finished", []score.Trial{{}}, -1, "no job finished"},
	} {
		best, why := score.StandardRule().Choose(c.trials)
		if best != c.best || strings.Join(why, "|") != c.why {
			t.Errorf("%s: %d because %q, want %d because %q", c.name, best, why, c.best, c.why)
		}
	}
	if s := score.StandardRule().String(); !strings.Contains(s, "overhead of 1 %") || !strings.Contains(s, "within 5 %") {
		t.Error(s)
	}
}
