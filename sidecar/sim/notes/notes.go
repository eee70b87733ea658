// Package notes describes what a reader of scores must know beside them: assumptions, omissions,
// and unfinished work.
package notes

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Saves says how the jobs of a setup are assumed to save, and how many of them match habits.
func Saves(out io.Writer, s *experiment.Setup) {
	reported := ""
	if s.Reported {
		reported = "; each save of those that save on their own is reported"
	}
	fmt.Fprintf(out, "  jobs are taken to save: %s%s\n", s.Saves, reported)
	if len(s.Saves.Habits) > 0 {
		known, all := 0, 0
		for j := range s.Load.Jobs {
			all++
			if s.Saves.Habit(&j) != nil {
				known++
			}
		}
		fmt.Fprintf(out, "  %d of %d jobs have a habit there\n", known, all)
	} else if s.Saves.String() == AssumedSaves {
		fmt.Fprintf(out, "  (the pessimistic assumption: a requeue starts a job from the beginning; if some of yours save, say so with --saves)\n")
	}
}

// AssumedSaves is the assumption for unknown jobs.
const AssumedSaves = "never"

// Result describes the limits of a run's scores.
func Result(out io.Writer, s *experiment.Setup, r *experiment.Result) {
	if r.Refused.Jobs > 0 {
		all := experiment.Survey(s.Load).Demand()
		fmt.Fprintf(out, "  %s on %s: %d jobs were not submitted (%.1f %% of the GPU time wanted)\n", s.Scheduler, s.Fleet, r.Refused.Jobs, 100*float64(r.Refused.Demand)/float64(all))
		for _, x := range r.Refused.Named[:min(3, len(r.Refused.Named))] {
			fmt.Fprintf(out, "    %s\n", x)
		}
		if more := r.Refused.Jobs - 3; more > 0 {
			fmt.Fprintf(out, "    … and %d more\n", more)
		}
	}
	if len(r.Levels) > 0 {
		var parts []string
		for _, l := range r.Levels {
			parts = append(parts, fmt.Sprintf("%.1f %% of %s", 100*l.Broken/float64(max(l.Cells, 1)), l.Type))
		}
		fmt.Fprintf(out, "  %s on %s: cells that could not be given whole to a guaranteed lease: %s\n", s.Scheduler, s.Fleet, strings.Join(parts, ", "))
	}
	if r.Endless > 0 {
		fmt.Fprintf(out, "  %s on %s: the run ends after %s: %d jobs would never end, for they are requeued again and again and begin anew each time\n",
			s.Scheduler, s.Fleet, r.To.Sub(r.From), r.Endless)
	}
	if r.TimedOut > 0 {
		fmt.Fprintf(out, "  %s on %s: %d jobs reached their time limit here, but not in the trace\n", s.Scheduler, s.Fleet, r.TimedOut)
	}
}

// Shadow describes the comparison, and its differences from the past.
func Shadow(out io.Writer, date func(time.Time) string, past *store.Past, s *backtest.Window) {
	say := func(n int, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(out, "  "+format+"\n", args...)
		}
	}
	j, set := &s.Jobs, &s.Setup.Settings
	_, gpus := s.Setup.Fleet.Count()
	fmt.Fprintf(out, "the journal, rounds %d to %d: %d jobs of %d tenants on %s\n", past.Begin.Plan.Round, past.End.Plan.Round, j.Compared,
		len(experiment.Survey(s.Setup.Load).Tenants), s.Setup.Fleet)
	say(j.There, "%d were there when the window begins: they count from then on, with the run time that was left", j.There)
	say(j.Running+j.Waiting, "%d still ran and %d still waited when it ends: nobody knows for how long they run, so they are unfinished in both,\n"+
		"  and in the shadow they never end", j.Running, j.Waiting)
	say(j.Alone, "%d are left alone by fairlease (interactive, excluded, …), but lease their GPUs in the shadow as all do", j.Alone)
	say(j.NeverRan+j.Unseen+j.NoTenant, "left out of both, with %.1f GPU hours: %d jobs that never ran, %d that came and went while nobody looked, %d of no tenant",
		j.OutTime.Hours(), j.NeverRan, j.Unseen, j.NoTenant)
	if s.Least != gpus || s.Most != gpus {
		fmt.Fprintf(out, "  there were %d to %d healthy GPUs: in the shadow there are %d all the time\n", s.Least, s.Most, gpus)
	}
	if a := &past.Acted; a.Rounds > 0 {
		fmt.Fprintf(out, "  fairlease acted in %d rounds from %s to %s: what was is what came of Slurm and fairlease together\n", a.Rounds, date(*a.First), date(*a.Last))
	}
	costs := &s.Setup.Costs
	fmt.Fprintf(out, "  in the shadow: interval %v, term %v; a start from a checkpoint costs %v, saving one %v\n",
		config.Duration(set.Interval), config.Duration(set.Term), config.Duration(costs.Start()), config.Duration(costs.Save))
	Saves(out, &s.Setup)
}
