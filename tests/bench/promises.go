package main

import (
	"fmt"

	"github.com/fairlease/fairlease/tests/promises"
)

// promised measures what a tenant has at least of what its preset promises it, over drawn markets and all promises of all presets.
func promised() error {
	const markets = 2000
	worst := 1.0
	for _, c := range promises.All {
		kept := 1.0
		for seed := range uint64(markets) {
			kept = min(kept, c.Kept(c.Draw(seed)))
		}
		fmt.Printf("%s, %s: %.6f in %d markets\n", c.Preset, c.Promise, kept, markets)
		worst = min(worst, kept)
	}
	figure("tenant_promise_worst", worst, "")
	return nil
}
