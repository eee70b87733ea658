package main

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/tests/traces"
)

// week is a week of a trace on a cluster.
type week struct {
	traces.Scene
	of int // from 1
}

// weeksOfBinding are those on which the limit of jobs that cannot be stopped is judged. Its defaults were chosen on the
// others, with judged false.
var weeksOfBinding = []struct {
	week
	judged bool
}{
	{week{traces.Venus(60), 1}, false},
	{week{traces.Venus(60), 2}, true},
	{week{traces.Philly(64), 1}, true},
	{week{traces.Philly(64), 2}, false},
	{week{traces.PhillyOf("before32", "philly_3w_before.csv.gz", 32), 1}, false},
	{week{traces.PhillyOf("before32", "philly_3w_before.csv.gz", 32), 2}, true},
	{week{traces.PhillyOf("late24", "philly_4w_late.csv.gz", 24), 2}, true},
	{week{traces.PhillyOf("late24", "philly_4w_late.csv.gz", 24), 3}, false},
}

// setup reads the jobs of a week.
func (x *week) setup(dir string) (experiment.Setup, error) {
	s, err := daysOf(x.Scene, dir, 7*(x.of-1), 7)
	s.Until = 7 * cluster.Day
	return s, err
}

// onBinding measures what the limit of jobs that cannot be stopped costs, on each week whose name begins with only, with
// no, half and all jobs that save; unless all do, in several draws, as of one draw much is chance: of the jobs that save, and of the rounds'
// length. variants are values of bind.quiet, bind.horizon and bind.max, as in "24h:4:5"; "off" = no limit, and "" = the defaults.
func onBinding(dir, only, variants string) error {
	worst, list := map[string]float64{}, strings.Split(variants, ",")
	fmt.Printf("  %-12s %-9s %5s %4s %-8s %8s %7s %6s %12s %10s %10s\n", "week", "cluster", "save%", "seed", "bind", "idle_%", "JCT_h", "used%", "unfair_days%", "lowest_rho", "unfinished")
	for i := range weeksOfBinding {
		x := &weeksOfBinding[i]
		name := fmt.Sprintf("%s.%d", x.Name, x.of)
		if only == "judged" && !x.judged || only == "chosen" && x.judged || only != "judged" && only != "chosen" && !strings.HasPrefix(name, only) {
			continue
		}
		base, err := x.setup(dir)
		if err != nil {
			return err
		}
		for _, save := range savers {
			for seed := uint64(1); seed == 1 || seed <= drawnSeeds && save < 100; seed++ {
				m := manner{saves: fmt.Sprintf("never:%g,at-end:%g", 100-save, save), byJob: true, seed: seed}
				for _, v := range list {
					s := base
					s.Settings.Interval *= cluster.Span(seed)
					s.Settings = experiment.Fit(s.Settings)
					if err := m.onto(&s); err != nil {
						return err
					}
					if err := binding(v, &s.Settings); err != nil {
						return err
					}
					results, err := together([]experiment.Setup{s})
					if err != nil {
						return err
					}
					sc := &results[0].Scores
					r := valuesOf(sc)
					fmt.Printf("  %-12s %-9s %5g %4d %-8s %8.2f %7.2f %6.1f %12.2f %10.3f %10.0f\n", name, s.Fleet, save, seed, v, 100*sc.BindIdle, r.jct, 100*sc.Utilisation, r.unfair, r.lowest, r.unfinished)
					worst[v] = max(worst[v], 100*sc.BindIdle)
				}
			}
		}
	}
	for _, v := range list {
		switch v {
		case "off":
		case "":
			figure("bind_idle_pct", worst[v], "%")
		default:
			figure("bind_idle_pct_"+v, worst[v], "%")
		}
	}
	return nil
}

// binding sets the limit.
func binding(variant string, s *cluster.Settings) error {
	switch variant {
	case "":
		return nil
	case "off":
		s.BindQuiet = 0
		return nil
	}
	var hours, terms, most int
	if _, err := fmt.Sscanf(variant, "%dh:%d:%d", &hours, &terms, &most); err != nil {
		return fmt.Errorf("%q is no limit as in 24h:4:5: %w", variant, err)
	}
	s.BindQuiet, s.BindHorizon, s.BindMaxPercent = cluster.Span(hours)*cluster.Hour, terms, most
	return nil
}
