package main

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// misreports measures what a tenant's throughput gains at most from false declarations of its speed under oef:noncoop, in
// drawn markets: before trials, and once all kinds of jobs have been tried on all models.
func misreports() error {
	const markets = 8
	fmt.Printf("%d drawn markets of 2 or 3 models and 2 to 4 tenants under oef:noncoop; one declares of a model 0, 0.7, 1.4 or 5 times its speed, or nothing\n", markets)
	untried, tried := 0.0, 0.0
	for seed := range uint64(markets) {
		gains, err := simtest.DrawMarket(seed, true).Gains("oef:noncoop")
		if err != nil {
			return fmt.Errorf("market %d: %w", seed, err)
		}
		for _, g := range gains {
			untried, tried = max(untried, g.Before), max(tried, g.After)
		}
	}
	figure("misreport_gain_untried_pct", untried, "%")
	figure("misreport_gain_pct", tried, "%")
	return nil
}
