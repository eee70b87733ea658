package main

import (
	"context"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Three minutes of faults from a fixed seed, in which nothing is lost.
func TestChaos(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	outcome, err := run(ctx, options{Seed: 4, Length: 3 * time.Minute}, func(format string, args ...any) { t.Logf(format, args...) })
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	outcome.print(&report)
	t.Log(report.String())
	for _, line := range outcome.Broken {
		t.Error(line)
	}
	if outcome.faults() < 8 {
		t.Errorf("only %d faults were tried", outcome.faults())
	}
}
