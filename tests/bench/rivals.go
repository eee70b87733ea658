package main

import (
	"fmt"
	"strings"

	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/tests/traces"
)

// rivalMeasures are the measures by which astraea is compared with the baselines, with the end of the figures' names.
var rivalMeasures = []struct {
	name, unit string
	of         func(values) float64
	most       bool // more is better
}{
	{"lowest_rho", "rho", func(v values) float64 { return v.lowest }, true},
	{"sharing_loss_pct", "%", func(v values) float64 { return v.loss }, false},
	{"unfair_hours_pct", "%", func(v values) float64 { return v.hours }, false},
	{"unfair_days_pct", "%", func(v values) float64 { return v.unfair }, false},
	{"mean_jct_h", "h", func(v values) float64 { return v.jct }, false},
	{"overhead_pct", "%", func(v values) float64 { return v.overhead }, false},
}

// onRivals compares astraea with the best baseline by each measure, of those that are not told how long jobs run, on each
// scene that only names, or all. All jobs save when their leases end, and are run to their end.
func onRivals(dir, only string) error {
	for _, x := range traces.Scenes {
		if only != "" && !strings.HasPrefix(x.Name, only) {
			continue
		}
		base, err := scene(x, dir)
		if err != nil {
			return err
		}
		base.Until = 0
		setups := []experiment.Setup{base}
		for _, name := range experiment.Untold() {
			s := base
			s.Scheduler = name
			setups = append(setups, s)
		}
		results, err := together(setups)
		if err != nil {
			return err
		}
		fmt.Printf("%s on %s: %s, and the best baseline that is not told run times\n", base.Load.Name, base.Fleet, base.Scheduler)
		for _, m := range rivalMeasures {
			best := 1
			for k := range results {
				v, least := m.of(valuesOf(&results[k].Scores)), m.of(valuesOf(&results[best].Scores))
				if k > 0 && (m.most && v > least || !m.most && v < least) {
					best = k
				}
			}
			figure("fair_"+x.Name+"_"+m.name, m.of(valuesOf(&results[0].Scores)), m.unit)
			figure("rival_"+x.Name+"_"+m.name, m.of(valuesOf(&results[best].Scores)), m.unit+" ("+results[best].Scheduler+")")
		}
	}
	return nil
}
