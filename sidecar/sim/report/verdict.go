package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/score"
)

// plainSlurm is the scheduler that a verdict compares others with.
const plainSlurm = "slurm-multifactor"

// opinion is a measure of a verdict, with words for a lower and a higher value than plain Slurm's.
type opinion struct {
	measure
	lower, higher string
}

// opinions are the measures of a verdict, in the order of their weight.
func opinions(runs []score.Scores) []opinion {
	out := []opinion{
		{lossShare, "fewer sharing-loss jobs", "more sharing-loss jobs"},
		{delayMean, "shorter waits", "longer waits"},
		{completionMean, "shorter completion times", "longer completion times"},
		{lowestRho, "a lower lowest rho", "a higher lowest rho"},
	}
	for i, p := range runs[0].Periods {
		name := "unfair tenant periods of " + length(p.Hours)
		out = append(out, opinion{unfair(i, p.Hours), "fewer " + name, "more " + name})
	}
	return out
}

// verdicts says in words how each run of a group compares with plain Slurm, if that is one of them.
func verdicts(b *bytes.Buffer, runs []score.Scores) {
	slurm := slices.IndexFunc(runs, func(s score.Scores) bool { return s.Scheduler == plainSlurm })
	if slurm < 0 {
		return
	}
	for i := range runs {
		if runs[i].Scheduler != plainSlurm {
			b.WriteString(verdict(&runs[i], &runs[slurm], opinions(runs)) + "\n")
		}
	}
}

// verdict words how a run compares with plain Slurm: what is better, then what is worse.
func verdict(s, slurm *score.Scores, all []opinion) string {
	if s.CutShort || slurm.CutShort {
		return plain(s.Scheduler) + " against plain Slurm\n  not to be compared: not both ran to the end"
	}
	if len(ended([]score.Scores{*s, *slurm})) < 2 {
		return fmt.Sprintf("%s against plain Slurm\n  not to be compared: %d jobs did not end, and %d with plain Slurm", plain(s.Scheduler), s.Jobs.Unfinished, slurm.Jobs.Unfinished)
	}
	var better, worse []string
	for _, o := range all {
		x, known := o.of(*s)
		y, there := o.of(*slurm)
		mine, its := o.Text(*s), o.Text(*slurm)
		if !known || !there || mine == its {
			continue
		}
		word := o.lower
		if x > y {
			word = o.higher
		}
		unit, _, _ := strings.Cut(o.Unit, " ")
		if o.Unit == lowestRho.Unit {
			unit = ""
		}
		text := strings.TrimSpace(fmt.Sprintf("%s (%s, %s %s", word, mine, its, unit)) + ")"
		if float64(o.Better)*(x-y) > 0 {
			better = append(better, text)
		} else {
			worse = append(worse, text)
		}
	}
	return fmt.Sprintf("%s against plain Slurm\n  better: %s\n  worse:  %s", plain(s.Scheduler), cmp.Or(strings.Join(better, ", "), "nothing"), cmp.Or(strings.Join(worse, ", "), "nothing"))
}
