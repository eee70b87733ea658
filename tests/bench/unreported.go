package main

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// unreported measures the throughput of gavel:las-jobs where speeds are learnt from jobs that do not report, as a part of that where all is
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
	return unreportedTrades()
}

// unreportedTrades measures what tenants gain by trades under gandiva-fair when nobody reports, as a part of what they gain when all is declared: the sum
// of their gains in true throughput over that without trades, once 500 jobs have ended. It prints the worst of five fleets, and the least gain of a tenant.
func unreportedTrades() error {
	const fleets, jobs, counts = 5, 500, 4 * cluster.Day
	worst, least := math.Inf(1), math.Inf(1)
	for seed := range uint64(fleets) {
		x := simtest.Traders(seed)
		var paid [3]simtest.Paid
		var err error
		for k, know := range []simtest.Knowledge{{Blind: true}, {Declared: true}, {}} {
			if paid[k], err = x.Traded(know, jobs, counts); err != nil {
				return fmt.Errorf("fleet %d: %w", seed, err)
			}
		}
		var late, early [3]float64 // by knowledge
		text := ""
		for k := 1; k < 3; k++ {
			text += [...]string{"", "; declared", ", nobody reporting"}[k]
			for _, tenant := range slices.Sorted(maps.Keys(paid[0].Late)) {
				gain := 100 * (paid[k].Late[tenant]/paid[0].Late[tenant] - 1)
				late[k] += gain
				early[k] += 100 * (paid[k].Early[tenant]/paid[0].Early[tenant] - 1)
				text += fmt.Sprintf(" %+.1f %%", gain)
				if k == 2 {
					least = min(least, gain)
				}
			}
		}
		part := 100 * late[2] / late[1]
		fmt.Printf("fleet %d: first trade after %d jobs%s: %.0f %% of the gain; while the 500 jobs ended %.0f %%\n", seed, paid[2].Traded, text, part, 100*early[2]/early[1])
		worst = min(worst, part)
	}
	figure("trade_gain_unreported_pct", worst, "%")
	figure("trade_unreported_least_pct", least, "%")
	return nil
}
