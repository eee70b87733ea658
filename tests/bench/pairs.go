package main

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// onPairs measures Gavel's max-min fairness with space sharing: 512 jobs of one GPU with all their
// pairs, where jobs of a kind are alike, and where no two are; beside CLP on the program as
// it is written.
func onPairs() error {
	const jobs = 512
	table, err := trace.OpenThroughputs("sidecar/sim/trace/testdata/gavel/simulation_throughputs.json.gz")
	if err != nil {
		return err
	}
	fmt.Printf("Max-min fairness of %d jobs and their pairs, one core (%s)\n", jobs, machine())
	for _, c := range []struct {
		name  string
		alike bool
	}{{"packing_512", true}, {"packing_512_different", false}} {
		p, err := simtest.Packing(table, jobs, c.alike)
		if err != nil {
			return err
		}
		ours, took, err := divided(p, policy.Options{}, 5)
		if err != nil {
			return err
		}
		clp, clpTook, err := divided(p, policy.Options{Whole: true}, 1)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d pairs, the smallest level %.12g; CLP on the whole %.12g\n", c.name, len(p.Pairs), ours, clp)
		if math.Abs(ours-clp) > 1e-6*clp {
			return fmt.Errorf("%s: the smallest level is %v, CLP's on the whole program %v", c.name, ours, clp)
		}
		timed(c.name+"_ms", took)
		timed("clp_"+c.name+"_ms", clpTook)
	}
	return nil
}

// divided gives the smallest level, and the fastest of some runs.
func divided(p policy.Problem, o policy.Options, times int) (level float64, took timing, err error) {
	took, err = least(times, func() error {
		s, err := policy.Gavel("las", p, o)
		if err == nil && s.Why != "" {
			err = fmt.Errorf("las: %s", s.Why)
		}
		level = s.Objective
		return err
	})
	return level, took, err
}
