package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// onPrices measures the solvers by one price a model on instances where no two jobs are
// alike: the least of some times, beside CLP on the same program where that takes less
// than a minute.
func onPrices() error {
	fmt.Printf("Max-min fairness, water filling, sums and equal throughput by prices, one core (%s)\n", machine())
	for _, c := range []struct {
		name         string
		jobs, models int
		clp          bool
	}{
		{"las_2048", 2048, 3, true}, {"las_8192", 8192, 3, true}, {"las_50k", 50_000, 3, false},
		{"las_2048_k8", 2048, 8, true}, {"las_8192_k8", 8192, 8, true}, {"las_50k_k8", 50_000, 8, false},
	} {
		in := simtest.Weighted(simtest.Scarce(c.jobs, c.models))
		var got price.Answer
		took, err := least(20, func() (err error) { got, err = price.MaxMin(in); return err })
		if err != nil {
			return err
		}
		if got.High-got.Low > 1e-9*got.High {
			return fmt.Errorf("%s: between %v and %v", c.name, got.Low, got.High)
		}
		fmt.Printf("%s: %d looks at prices, level %.12g to %.12g\n", c.name, got.Rounds, got.Low, got.High)
		timed(c.name+"_ms", took)
		if c.clp {
			if err := beside(c.name, got, func() *lp.Program { return simtest.MaxMinProgram(in, got.High) }); err != nil {
				return err
			}
		}
	}
	for _, models := range []int{3, 8} {
		in, weight := simtest.Scarce(2048, models)
		worst := timing{}
		for _, c := range []struct {
			kind     string
			entities []price.Entity
		}{{"flat", nil}, {"fair", simtest.Teams(2048, 0)}, {"FIFO", simtest.Teams(2048, 32)}, {"mixed", simtest.Teams(2048, 16)}} {
			var got price.Filling
			took, err := least(10, func() (err error) { got, err = price.Fill(in, weight, c.entities); return err })
			if err != nil {
				return err
			}
			if got.Short {
				return fmt.Errorf("water filling of %d models, %s, ended early", models, c.kind)
			}
			fmt.Printf("water filling of 2048 jobs, %d models, %s: %d phases, %d looks at prices, %.1f ms\n", models, c.kind, got.Phases, got.Rounds, took.wall)
			worst = worst.most(took)
		}
		name := "hier_2048_ms"
		if models == 8 {
			name = "hier_2048_k8_ms"
		}
		timed(name, worst) // of all four kinds
		if _, err := byCLP("hierarchical", strings.TrimSuffix(name, "_ms"), scarce(2048, models, simtest.Teams(2048, 0))); err != nil {
			return err
		}
	}
	for _, name := range []string{"fifo", "throughput"} {
		figures := name + "_8192"
		took, err := byCLP(name, figures, scarce(8192, 3, nil))
		if err != nil {
			return err
		}
		timed(figures+"_ms", took)
	}
	gpus, speedup := simtest.Tenants(1000, 10)
	weight := make([]float64, 1000)
	for l := range weight {
		weight[l] = 1
	}
	var got price.Answer
	took, err := least(20, func() (err error) { got, err = price.EqualThroughput(gpus, weight, speedup); return err })
	if err != nil {
		return err
	}
	timed("oef_noncoop_1000_ms", took)
	return beside("oef_noncoop_1000", got, func() *lp.Program { return simtest.EqualProgram(gpus, speedup, got.High) })
}

// scarce is the instance of a number of jobs as policies are given it; teams are its entities, if there are any.
func scarce(jobs, models int, teams []price.Entity) policy.Problem {
	in, weight := simtest.Scarce(jobs, models)
	var p policy.Problem
	for _, n := range in.GPUs {
		p.Models = append(p.Models, policy.Model{GPUs: n})
	}
	for m, gang := range in.Gang {
		p.Jobs = append(p.Jobs, policy.Job{ID: int64(1 + m), Gang: int(gang), Weight: weight[m], Speed: in.Speed[m*models : (m+1)*models]})
	}
	for e, team := range teams {
		p.Entities = append(p.Entities, policy.Entity{Name: fmt.Sprint(e), Weight: team.Weight, FIFO: team.FIFO})
		for _, m := range team.Jobs {
			p.Jobs[m].Entity = e
		}
	}
	return p
}

// byCLP measures a policy of Gavel's solved by CLP alone, and fails if its objective is not ours.
// The figure of the given name has our own time.
func byCLP(name, figures string, p policy.Problem) (took timing, err error) {
	divide := func(o policy.Options, times int) (objective float64, took timing, err error) {
		took, err = least(times, func() error {
			s, err := policy.Gavel(name, p, o)
			if err == nil && s.Why != "" {
				err = errors.New(s.Why)
			}
			objective = s.Objective
			return err
		})
		return objective, took, err
	}
	ours, took, err := divide(policy.Options{}, 10)
	if err != nil {
		return took, fmt.Errorf("%s: %w", name, err)
	}
	theirs, clp, err := divide(policy.Options{Whole: true}, 1)
	if err != nil {
		return took, fmt.Errorf("%s by CLP: %w", name, err)
	}
	if math.Abs(theirs-ours) > 1e-7*ours {
		return took, fmt.Errorf("%s: the objective is %v, CLP's %v", name, ours, theirs)
	}
	timed("clp_"+figures+"_ms", clp)
	return took, nil
}

// beside measures CLP on the same program once, and fails where it finds another optimum.
func beside(name string, ours price.Answer, program func() *lp.Program) error {
	var level float64
	took, err := least(1, func() error {
		p := program()
		defer p.Close()
		err := p.Solve(lp.Presolve)
		level = p.Objective() * ours.High
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if math.Abs(level-ours.Low) > 1e-7*level {
		return fmt.Errorf("%s: the optimum is %v, CLP's %v", name, ours.Low, level)
	}
	timed("clp_"+name+"_ms", took)
	return nil
}
