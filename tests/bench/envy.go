package main

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// onEnvy measures OEF's cooperative program on instances whose optima are known, beside CLP on
// all rows where that takes less than a minute.
func onEnvy() error {
	const models = 10
	fmt.Printf("OEF's cooperative program, %d models, one core (%s)\n", models, machine())
	for _, c := range []struct {
		tenants int
		optimum float64
		times   int
		clp     bool
	}{{200, 926.5011304963, 5, true}, {500, 772.7468532502, 2, false}, {1000, 1032.4721479218, 1, false}} {
		gpus, speedup := simtest.Tenants(c.tenants, models)
		var m policy.Market
		for _, n := range gpus {
			m.Models = append(m.Models, policy.Model{GPUs: n})
		}
		for l := range c.tenants {
			m.Tenants = append(m.Tenants, policy.Tenant{Weight: 1, Kind: policy.Kind{Speedup: speedup[l*models : (l+1)*models], Demand: math.Inf(1)}})
		}
		var got policy.Parts
		took, err := least(c.times, func() (err error) { got, err = policy.OEFCooperative(m); return err })
		if err != nil {
			return err
		}
		if got.Why != "" || math.Abs(got.Objective/c.optimum-1) > 1e-9 {
			return fmt.Errorf("%d tenants: the sum is %v, the optimum %v; %s", c.tenants, got.Objective, c.optimum, got.Why)
		}
		name := fmt.Sprintf("oef_coop_%d", c.tenants)
		timed(name+"_ms", took)
		if !c.clp {
			continue
		}
		var sum float64
		took, err = least(1, func() error {
			p := simtest.EnvyProgram(gpus, speedup)
			defer p.Close()
			err := p.Solve(lp.Presolve)
			sum = p.Objective()
			return err
		})
		if err != nil {
			return err
		}
		if math.Abs(sum/c.optimum-1) > 1e-7 {
			return fmt.Errorf("%d tenants: the optimum is %v, CLP's %v", c.tenants, c.optimum, sum)
		}
		timed("clp_"+name+"_ms", took)
	}
	return onDemands()
}

// onDemands measures the program where demands bind: tenants can use one to four GPUs each, less than all together.
func onDemands() error {
	const tenants, models = 200, 3
	gpus, speedup := simtest.Tenants(tenants, models)
	var m policy.Market
	for _, n := range gpus {
		m.Models = append(m.Models, policy.Model{GPUs: 8 * n})
	}
	for l := range tenants {
		m.Tenants = append(m.Tenants, policy.Tenant{Weight: float64(1 + l%3), Kind: policy.Kind{Speedup: speedup[l*models : (l+1)*models], Demand: float64(1 + l%4)}})
	}
	var got policy.Parts
	took, err := least(2, func() (err error) { got, err = policy.OEFCooperative(m); return err })
	if err != nil {
		return err
	}
	if got.Why != "" {
		return fmt.Errorf("%d tenants whose demands bind: %s", tenants, got.Why)
	}
	timed("oef_coop_demands_200_ms", took)
	figure("oef_coop_demands_200_proven_pct", 100*min(1, got.Objective/max(got.Bound, 1e-9)), "%")
	return nil
}
