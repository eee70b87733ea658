package main

import (
	"fmt"
	"path/filepath"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// unreported measures the throughput of gavel:las where speeds are learnt from jobs that do not report, as a part of that where all is
// declared: with no job reporting, and with one command in five. It prints the worst of several made-up fleets; the estimators were
// chosen on the second and the fourth.
func unreported() error {
	table, err := trace.OpenThroughputs(filepath.Join(gavelData, "simulation_throughputs.json.gz"))
	if err != nil {
		return err
	}
	const fleets = 8
	const learns, counts = 14 * cluster.Day, 4 * cluster.Day
	none, some := 100.0, 100.0
	for seed := uint64(1); seed <= fleets; seed++ {
		x := simtest.Fleet{Tenants: 12, Commands: 2, Jobs: 4, Nodes: 2, Seed: seed, Work: 3 * cluster.Hour / 2, Speeds: experiment.SpeedsOf(table, trace.GavelReference)}
		var rates [4]float64
		for k, know := range []simtest.Knowledge{{Declared: true}, {Blind: true}, {}, {Reporting: 20}} {
			if rates[k], _, err = x.Rate(know, learns, counts); err != nil {
				return fmt.Errorf("fleet %d: %w", seed, err)
			}
		}
		part := func(k int) float64 { return 100 * rates[k] / rates[0] }
		fmt.Printf("fleet %d: of the throughput with all declared, blind %.1f %%, none reporting %.1f %%, 20 %% reporting %.1f %%\n", seed, part(1), part(2), part(3))
		none, some = min(none, part(2)), min(some, part(3))
	}
	figure("las_unreported_pct", none, "%")
	figure("las_20pct_reported_pct", some, "%")
	return nil
}
