package score

import (
	"cmp"
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Trial is a setting of a sweep with its results.
type Trial struct {
	Window cluster.Span `json:"window_ms"` // of fairness; interval and term are in Scores
	Scores Scores       `json:"scores"`
}

// Rule chooses one of several trials.
type Rule struct {
	Overhead float64 // maximum overhead of leases, as a share of run time
	Slower   float64 // maximum excess of the mean JCT over the best, as a share of that
}

// StandardRule allows an overhead of 1 % (ASTRAEA §6.4 has 0.8 % at its 900 s) and a mean JCT of
// 5 % above the best. §6.2 treats JCTs within noise as equal, and a small change of one setting
// moves that of a congested cluster by 3 %: two weeks of Venus on 40 nodes.
func StandardRule() Rule { return Rule{Overhead: 0.01, Slower: 0.05} }

// String words the rule.
func (r Rule) String() string {
	return fmt.Sprintf("of the settings with an overhead of %.3g %% of run time or less and a mean JCT within %.3g %% of the best of these, "+
		"the one with the fewest sharing-loss jobs; ties go to the longer term, then the longer interval, then the longer window", 100*r.Overhead, 100*r.Slower)
}

// Choose gives the index of the chosen trial, and for every trial why it was chosen or not. If
// leases cost too much in all of them, the cheapest is chosen. Trials that were cut short, or
// without a finished job, do not count; -1 = none counts.
func (r Rule) Choose(trials []Trial) (best int, why []string) {
	why = make([]string, len(trials))
	open := make([]int, 0, len(trials))
	for i := range trials {
		switch s := &trials[i].Scores; {
		case s.CutShort:
			why[i] = "cut short"
		case s.Jobs.Finished == 0:
			why[i] = "no job finished"
		default:
			open = append(open, i)
		}
	}
	open, costs := r.cheap(trials, open, why)
	open = r.fast(trials, open, why)
	best = -1
	for _, i := range open {
		if best < 0 || better(&trials[i], &trials[best]) {
			best = i
		}
	}
	for _, i := range open {
		why[i] = "as good, but shorter"
		if losses(&trials[i]) > losses(&trials[best]) {
			why[i] = fmt.Sprintf("%d sharing-loss jobs more", losses(&trials[i])-losses(&trials[best]))
		}
	}
	if best >= 0 {
		why[best] = "chosen" + costs
	}
	return best, why
}

// cheap keeps the trials within the allowed overhead, or the cheapest.
func (r Rule) cheap(trials []Trial, open []int, why []string) (kept []int, costs string) {
	least := -1
	for _, i := range open {
		over := trials[i].Scores.Overhead.OfRun
		if over <= r.Overhead {
			kept = append(kept, i)
		} else {
			why[i] = fmt.Sprintf("overhead above %.3g %%", 100*r.Overhead)
		}
		if least < 0 || over < trials[least].Scores.Overhead.OfRun {
			least = i
		}
	}
	if len(kept) == 0 && least >= 0 {
		return []int{least}, fmt.Sprintf(": the cheapest, though above %.3g %%", 100*r.Overhead)
	}
	return kept, ""
}

// fast keeps the trials with a mean JCT near the best.
func (r Rule) fast(trials []Trial, open []int, why []string) (kept []int) {
	best := 0.0
	for k, i := range open {
		if mean := trials[i].Scores.Completion.Mean; k == 0 || mean < best {
			best = mean
		}
	}
	for _, i := range open {
		if slower := trials[i].Scores.Completion.Mean/best - 1; slower > r.Slower {
			why[i] = fmt.Sprintf("mean JCT %.1f %% above the best", 100*slower)
			continue
		}
		kept = append(kept, i)
	}
	return kept
}

func better(a, b *Trial) bool {
	return cmp.Or(cmp.Compare(losses(b), losses(a)), cmp.Compare(a.Scores.Term, b.Scores.Term),
		cmp.Compare(a.Scores.Interval, b.Scores.Interval), cmp.Compare(a.Window, b.Window)) > 0
}

// losses counts the jobs with a sharing loss, ended or not.
func losses(t *Trial) int { return t.Scores.Loss.Jobs + t.Scores.Loss.Unfinished }
