package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// tradeGain prints by how much trading GPU models raises the steps a second of the tenant that gains
// least: it is what the end-to-end test measures on jobs that report their steps.
func tradeGain(ctx context.Context, suite string) error {
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^TestTradingRaisesBoth$/^"+suite+"$", "./tests/e2e")
	test.Stderr = os.Stderr
	out, err := test.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", test, err, out)
	}
	found := regexp.MustCompile(`trade_gain_pct (-?[0-9.]+)`).FindSubmatch(out)
	if found == nil {
		return fmt.Errorf("%s says nothing of a gain:\n%s", test, out)
	}
	gain, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return err
	}
	figure("trade_gain_pct", gain, "%")
	return nil
}
