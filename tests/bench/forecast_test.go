package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/forecast"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

// drawnLoad draws jobs of four tenants with three users each for so many days: somewhat more than 32 GPUs can run, less at night. Each user has run
// times of its own.
func drawnLoad(seed uint64, days int) (out []trace.Job) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for at := cluster.Span(0); at < cluster.Span(days)*cluster.Day; {
		night := 1 + 0.8*math.Sin(2*math.Pi*float64(at)/float64(cluster.Day))
		at += cluster.Span(rng.ExpFloat64() * 27 / night * float64(cluster.Minute))
		tenant := rng.IntN(4)
		user := rng.IntN(3)
		gpus := []int{1, 1, 2, 4, 8, 8}[rng.IntN(6)]
		hours := math.Exp(0.7*float64(user) + 0.8*rng.NormFloat64())
		out = append(out, trace.Job{ID: fmt.Sprint(len(out)), Tenant: fmt.Sprintf("t%d", tenant), User: fmt.Sprintf("t%du%d", tenant, user), GPUs: gpus, Submit: at, Runs: max(cluster.Span(hours*float64(cluster.Hour)), cluster.Minute)})
	}
	return out
}

// On a drawn load, statements keep their word, with and without virtual clusters: together nearly as promised, and of each kind
// nearer to them than without calibration. The bounds of a kind are wider, since a few forecasts of one small queue fail together.
func TestForecastsKeepTheirWord(t *testing.T) {
	seeds.Slow(t)
	for seed := range seeds.Of(t, 3) {
		mean, classes := 0.0, 0
		for _, site := range []string{"", "cells"} {
			s := experiment.Default()
			s.Load, s.Weights = experiment.Of(&trace.Trace{Name: "drawn", Jobs: drawnLoad(seed, 16)}), map[string]int64{"t0": 1, "t1": 1, "t2": 1, "t3": 1}
			var err error
			if s.Fleet, err = experiment.ParseFleet("4x8"); err == nil && site != "" {
				err = forecastSites[site](&s)
			}
			if err != nil {
				t.Fatal(err)
			}
			c, said, err := foretell(t.Context(), &s, 20, 5*cluster.Day, 13*cluster.Day, func(*cluster.Snapshot, *cluster.Plan) {})
			if err != nil {
				t.Fatal(err)
			}
			after := c.known(said, said[len(said)-1].At.Add(lookAhead))
			before := slices.Clone(after)
			for i := range before {
				before[i].Said = before[i].Raw
			}
			was := forecast.Cover(before)
			off := func(x forecast.Coverage) float64 { return math.Abs(x.Percent - forecast.Promised) }
			for i, x := range forecast.Cover(after) {
				if x.By != "" {
					break
				}
				mean, classes = mean+x.Percent, classes+1
				if x.Statements < 100 || off(x) > 15 || off(x) >= off(was[i]) {
					t.Errorf("seed %d, site %q: %+v, without calibration %.1f", seed, site, x, was[i].Percent)
				}
			}
		}
		if mean /= float64(classes); classes != 6 || math.Abs(mean-forecast.Promised) > 8 {
			t.Errorf("seed %d: in the mean of %d classes %.1f %%", seed, classes, mean)
		}
	}
}
