package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/tests/traces"
)

// savingUntil is when a run of a trace ends: a month after the last jobs have come.
const savingUntil = 40 * cluster.Day

// manner is an assumption on how jobs save and what a start costs them.
type manner struct {
	name     string // behind the figures' names
	saves    string // as for fairlease simulate
	byJob    bool
	reported bool
	start    cluster.Span // 0 = as by default
	seed     uint64       // of what is drawn; 0 = 1
}

// mannersOfSaving are those that have figures.
var mannersOfSaving = []manner{
	{name: "", saves: "at-end"},
	{name: "_p50", saves: "never:50,at-end:50", byJob: true},
	{name: "_2h", saves: "periodic=2h"},
	{name: "_2h_reported", saves: "periodic=2h", reported: true},
	{name: "_never", saves: "never"},
	{name: "_start10m", saves: "at-end", start: 10 * cluster.Minute},
}

// onto sets a setup's jobs.
func (m *manner) onto(s *experiment.Setup) error {
	mixture, err := experiment.ParseMixture(m.saves, 0)
	if err != nil {
		return err
	}
	mixture.ByJob = m.byJob
	s.Saves, s.Reported, s.Seed = mixture, m.reported, max(m.seed, 1)
	if m.start > 0 {
		s.Costs.ColdStart = m.start
		s.Settings.StartCost = s.Costs.Start()
	}
	return nil
}

// scene reads a scene's trace, until savingUntil.
func scene(x traces.Scene, dir string) (experiment.Setup, error) {
	s, err := x.Setup(dir)
	s.Until = savingUntil
	return s, err
}

// onSaving measures what is left of fairness when jobs do not save as the papers assume, on each scene that only names, or all.
func onSaving(dir, only string) error {
	for _, x := range traces.Scenes {
		if only != "" && !strings.HasPrefix(x.Name, only) {
			continue
		}
		base, err := scene(x, dir)
		if err != nil {
			return err
		}
		var setups []experiment.Setup
		var manners []manner // a run for each, but several seeds of those drawn by job
		for _, m := range mannersOfSaving {
			for m.seed = 1; m.seed == 1 || m.byJob && m.seed <= drawnSeeds; m.seed++ {
				s := base
				if err := m.onto(&s); err != nil {
					return err
				}
				setups, manners = append(setups, s), append(manners, m)
			}
		}
		results, err := together(setups)
		if err != nil {
			return err
		}
		fmt.Printf("%s on %s by %s, until %v days: how jobs save\n", base.Load.Name, base.Fleet, base.Scheduler, int64(savingUntil/cluster.Day))
		fmt.Printf("  %-14s %-42s %10s %10s %9s %7s %12s %10s %10s %9s %14s %10s\n", "variant", "jobs save", "unfinished", "overhead_%", "lost_GPUh", "JCT_h", "unfair_days%", "repaying_%", "lowest_rho", "slowdown", "sharing_loss_%", "preempted")
		for k := range results {
			v := valuesOf(&results[k].Scores)
			name := strings.TrimPrefix(manners[k].name, "_")
			if manners[k].byJob {
				name = fmt.Sprintf("%s, seed %d", name, manners[k].seed)
			}
			fmt.Printf("  %-14s %-42s %10.0f %10.2f %9.0f %7.2f %12.2f %10.2f %10.3f %9.2f %14.2f %10d\n", name, results[k].Saves,
				v.unfinished, v.overhead, results[k].Overhead.Lost.GPUHours, v.jct, v.unfair, v.repaying, v.lowest, v.slowdown, v.loss, results[k].Preemptions)
		}
		for k := range results {
			if manners[k].seed > 1 {
				continue // the table has the spread
			}
			v, of := valuesOf(&results[k].Scores), x.Name+manners[k].name
			figure("unfinished_"+of, v.unfinished, "jobs")
			figure("overhead_"+of+"_pct", v.overhead, "%")
			figure("jct_"+of+"_h", v.jct, "h")
			figure("unfair_days_"+of+"_pct", v.unfair, "%")
			figure("lowest_rho_"+of, v.lowest, "rho")
			figure("slowdown_"+of, v.slowdown, "x")
			figure("sharing_loss_"+of+"_pct", v.loss, "%")
		}
	}
	return nil
}

// together runs setups side by side, as fairlease simulate does.
func together(setups []experiment.Setup) ([]experiment.Result, error) {
	cores := min(2, runtime.NumCPU(), len(setups))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	tenths := 0
	return experiment.All(context.Background(), setups, cores, func(over, of int) {
		if now := 10 * over / max(of, 1); now > tenths {
			tenths = now
			fmt.Fprintf(os.Stderr, "  %d %% of %d jobs\n", 10*now, of)
		}
	})
}

// values are what runs of how jobs save are compared by.
// Repaying is the part of the unfair days in which a tenant went short by no more than it repaid.
type values struct{ unfinished, overhead, jct, hours, unfair, repaying, lowest, slowdown, loss float64 }

func valuesOf(s *score.Scores) values {
	v := values{unfinished: float64(s.Jobs.Unfinished), overhead: 100 * s.Overhead.OfRun, jct: s.Completion.Mean / 3600,
		slowdown: s.Slowdown.Mean, loss: 100 * s.Loss.Share}
	for _, p := range s.Periods {
		switch p.Hours {
		case 1:
			v.hours = 100 * p.Ratio()
		case 24:
			v.unfair = 100 * p.Ratio()
			v.repaying = 100 * float64(p.Repaying) / float64(max(p.Rho.Count, 1))
		}
	}
	v.lowest, _ = report.Lowest(*s)
	return v
}
