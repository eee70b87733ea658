package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/store"
)

const (
	// savesWindow is how far back the doctor searches for jobs that do not save.
	savesWindow = 7 * 24 * time.Hour
	// savesNamed is the maximum number of such kinds that it names.
	savesNamed = 10
)

// checkSaves names the kinds of jobs that are assumed never to save, from the journal, else from the
// queue.
func checkSaves(f *findings, cfg *config.Config, past *store.Past, seen *cluster.Observation) {
	where, kinds := "", []score.Kind(nil)
	if past != nil {
		sh := backtest.Of(past, "")
		sh.Assume(experiment.Only(sim.Never))
		where, kinds = "in the journal since "+past.Begin.Plan.At.Time().Format(time.DateOnly), sh.Kinds(sh.Was.Jobs)
	}
	if len(kinds) == 0 && seen != nil {
		where, kinds = "in the queue", backtest.Queue(seen.Now, seen.Jobs, nil, cfg.Settings().Saves)
	}
	if len(kinds) > 0 {
		checkUnsaved(f, kinds, where)
	}
}

// recent reads the last days of the journal, or the part that is kept.
func recent(ctx context.Context, s *store.Store, now time.Time) (store.Past, error) {
	past, err := s.Rounds.Past(ctx, now.Add(-savesWindow), time.Time{})
	var w *store.WindowError
	if errors.As(err, &w) {
		return s.Rounds.Past(ctx, time.Time{}, time.Time{})
	}
	return past, err
}

// checkUnsaved words the finding.
func checkUnsaved(f *findings, kinds []score.Kind, where string) {
	const check = "jobs that save"
	all, never, jobs := 0.0, 0.0, 0
	var out []score.Kind
	for _, k := range kinds {
		all += k.Held
		if k.Saves == "never" {
			never, jobs, out = never+k.Held, jobs+k.Jobs, append(out, k)
		}
	}
	if len(out) == 0 {
		f.ok(check, "%s, every job type is known or declared to save", where)
		return
	}
	var names []string
	for _, k := range out[:min(len(out), savesNamed)] {
		names = append(names, fmt.Sprintf("%s %s with %d GPUs (%.1f GPU h, %d jobs)", k.User, cmp.Or(k.Name, "(no name)"), k.GPUs, k.Held, k.Jobs))
	}
	if more := len(out) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more job types", more))
	}
	f.add(Warn, check, fmt.Sprintf("%s, %d jobs with %.1f of %.1f GPU h count as never saving: %s", where, jobs, never, all, strings.Join(names, "; ")),
		"fairlease stops such a job only while it is young, and its work is lost then; later it keeps its GPUs while others wait",
		"talk to these users: a script traps USR1 and TERM, saves, resumes when it starts, and says #SBATCH --comment=saves=notice (or saves=1h) and"+
			" --open-mode=append; or write a rule under saves in the configuration; fairlease shadow shows the cost")
}
