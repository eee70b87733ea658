package score

import (
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func tried(term cluster.Span, over, jct float64, loss int) Trial {
	return Trial{Window: cluster.Day, Scores: Scores{Setting: Setting{Term: term, Interval: 10 * cluster.Second}, Jobs: Counts{Finished: 100},
		Completion: Stats{Count: 100, Mean: jct}, Overhead: Overhead{OfRun: over}, Loss: Loss{Jobs: loss}}}
}

func TestChoose(t *testing.T) {
	const m = cluster.Minute
	cut := tried(40*m, 0.001, 10, 0)
	cut.Scores.CutShort = true
	wide := tried(15*m, 0.008, 101, 5)
	wide.Window *= 2
	for _, c := range []struct {
		name   string
		trials []Trial
		best   int
		why    string // of every trial
	}{
		{"none", nil, -1, ""},
		{"fewest losses of those near the best", []Trial{tried(5*m, 0.02, 90, 0), tried(15*m, 0.008, 101, 5), tried(20*m, 0.006, 100, 9), tried(60*m, 0.002, 106, 1)}, 1,
			"overhead above 1 %|chosen|4 sharing-loss jobs more|mean JCT 6.0 % above the best"},
		{"ties to the longer term", []Trial{tried(15*m, 0.008, 100, 5), tried(20*m, 0.006, 101, 5)}, 1, "as good, but shorter|chosen"},
		{"then the longer window", []Trial{wide, tried(15*m, 0.008, 100, 5)}, 0, "chosen|as good, but shorter"},
		{"the cheapest where all are dear", []Trial{tried(5*m, 0.03, 90, 0), tried(15*m, 0.02, 100, 5)}, 1,
			"overhead above 1 %|chosen: the cheapest, though above 1 %"},
		{"not what was cut short", []Trial{cut, tried(15*m, 0.008, 100, 5)}, 1, "cut short|chosen"},
		{"nothing finished", []Trial{{}}, -1, "no job finished"},
	} {
		best, why := StandardRule().Choose(c.trials)
		if best != c.best || strings.Join(why, "|") != c.why {
			t.Errorf("%s: %d because %q, want %d because %q", c.name, best, why, c.best, c.why)
		}
	}
	if s := StandardRule().String(); !strings.Contains(s, "overhead of 1 %") || !strings.Contains(s, "within 5 %") {
		t.Error(s)
	}
}
