package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// realTrace gives a setup of a trace in the folder that FAIRLEASE_TRACES names.
func realTrace(t testing.TB, file, fleet string, weights func(dir string) (map[string]int64, error)) Setup {
	dir := os.Getenv("FAIRLEASE_TRACES")
	if dir == "" {
		t.Skip("FAIRLEASE_TRACES names no folder with the traces")
	}
	jobs, err := trace.Open(filepath.Join(dir, file), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := Default()
	s.Load = Of(jobs)
	if s.Fleet, err = ParseFleet(fleet); err != nil {
		t.Fatal(err)
	}
	if s.Weights, err = weights(dir); err != nil {
		t.Fatal(err)
	}
	return s
}

func phillyWeights(string) (map[string]int64, error) {
	return ReadWeights(strings.NewReader(simtest.Philly), "philly")
}

func venusWeights(dir string) (map[string]int64, error) {
	f, err := os.Open(filepath.Join(dir, "venus_tenants.csv"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return ReadWeights(f, "venus_tenants.csv")
}

// On real traces no job is lost, and held GPU time is at least due GPU time.
func TestRealTraces(t *testing.T) {
	for _, c := range []struct {
		file, fleet string
		weights     func(string) (map[string]int64, error)
	}{
		{"philly_2w_most_demand.csv.gz", "64x8", phillyWeights},
		{"venus_2w.csv.gz", "40x8", venusWeights},
	} {
		t.Run(c.file, func(t *testing.T) {
			s := realTrace(t, c.file, c.fleet, c.weights)
			r, err := Run(context.Background(), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if all := Survey(s.Load).Jobs; r.Jobs.Finished+r.Refused.Jobs != all || r.Jobs.Unfinished > 0 {
				t.Errorf("%d jobs finished and %d were refused, of %d", r.Jobs.Finished, r.Refused.Jobs, all)
			}
			t.Logf("%d jobs, %d turns, JCT %.0f s, slowdown %.2f, rho < 0.95: %.2f %%, unfair %.2f %% and %.2f %%, utilisation %.3f, overhead %.2f %% of run, %d preemptions, %d refused",
				r.Jobs.Finished, r.Turns, r.Completion.Mean, r.Slowdown.Mean, 100*r.Loss.Share, 100*r.Periods[0].Ratio(), 100*r.Periods[1].Ratio(),
				r.Utilisation, 100*r.Overhead.OfRun, r.Preemptions, r.Refused.Jobs)
		})
	}
}

// Sharing safety on real traces, at 60, 100 and 130 % load: no tenant with a VC waits longer than
// alone on it. With quota alone some do.
func TestNobodyWaitsLongerThanAloneOnRealTraces(t *testing.T) {
	for _, c := range []struct {
		file    string
		weights func(string) (map[string]int64, error)
		length  cluster.Span // of the part that is used
	}{{"venus_2w.csv.gz", venusWeights, 7 * cluster.Day}, {"philly_2w_most_demand.csv.gz", phillyWeights, 4 * cluster.Day}} {
		t.Run(c.file, func(t *testing.T) {
			s := realTrace(t, c.file, "1x8", c.weights)
			jobs := s.Load.Jobs
			s.Load.Jobs = func(yield func(trace.Job) bool) {
				for j := range jobs {
					if j.Submit >= c.length || !yield(j) {
						return
					}
				}
			}
			atLoads(t, s)
		})
	}
}
