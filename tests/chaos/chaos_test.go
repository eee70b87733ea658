package main

import (
	"context"
	"strings"
	"testing"
	"time"

	testcluster "github.com/fairlease/fairlease/tests/cluster"
)

// Three minutes of faults from a fixed seed, in which nothing is lost: with either gate, on a Slurm of its own. Faults of the journal's come
// first: no other test has them on a real Slurm.
func TestChaos(t *testing.T) {
	testcluster.SkipUnlessRoot(t)
	for _, o := range []options{
		{Seed: 4, Suite: "forky", Gate: "licence", First: []string{"clock is set back", "a cold start", "gets a dump back"}},
		{Seed: 7, Suite: "trixie", Gate: "begin", First: []string{"clock is set ahead", "emptied or cut", "gets a dump back"}},
	} {
		t.Run(o.Suite+"/"+o.Gate, func(t *testing.T) {
			t.Parallel()
			o.Length = 3 * time.Minute
			chaos(t, o)
		})
	}
}

func chaos(t *testing.T, o options) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	outcome, err := run(ctx, o, func(format string, args ...any) { t.Logf(format, args...) })
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
