package policy

import (
	"errors"
	"math"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// maxMin maximises the smallest throughput_m / need_m over the jobs with a need, and among
// the answers takes one with the largest sum of throughput_m / top_m: nobody's can rise but at
// another's cost. Jobs with equal keys are alike but for gangs and throughputs.
func (d *division) maxMin(need []float64, key func(m int) []float64) error {
	if !needed(need) {
		return nil
	}
	v := d.solve(d.space(key))
	t, err := v.rise(need)
	if err != nil {
		return err
	}
	if !d.o.Whole {
		if err := v.spread(need, t); err != nil {
			return err
		}
	}
	d.take(v.uses())
	return nil
}

func needed(need []float64) bool {
	for _, x := range need {
		if x > 0 {
			return true
		}
	}
	return false
}

// rise maximises t with throughput_m >= need_m·t, by job.
func (v *solver) rise(need []float64) (t float64, err error) {
	unit := v.unit(need)
	for m, jobs := range v.s.rows {
		v.p.SetRowBounds(m, 0, math.Inf(1))
		v.need(m, need[jobs[0]]*unit)
	}
	v.gain(func(way) float64 { return 0 })
	v.height(1, 0, math.Inf(1))
	if err := v.run(); err != nil {
		return 0, err
	}
	return v.p.Objective() * unit, nil
}

// unit is about as large as rise's t, so that the program's is about 1: what prices
// of one for every model would let it be.
func (v *solver) unit(need []float64) float64 {
	unit, cost := math.Inf(1), 0.0
	models := v.d.p.Models
	cheapest := make([]float64, len(v.s.rows)) // a step a second
	for m := range cheapest {
		cheapest[m] = math.Inf(1)
	}
	for _, x := range v.s.ways[:v.s.alone] {
		cheapest[x.a] = min(cheapest[x.a], v.gang(x)/models[x.model].GPUs/float64(len(models))/x.speedA)
	}
	for m, jobs := range v.s.rows {
		if n := need[jobs[0]]; n > 0 {
			cost += cheapest[m] * n * float64(len(jobs))
			unit = min(unit, v.top[m]/n)
		}
	}
	return min(unit, 1/cost)
}

// spread maximises the sum of all throughputs, each relative to that on the job's fastest model,
// with throughput_m/need_m at t at least.
func (v *solver) spread(need []float64, t float64) error {
	v.gain(func(x way) float64 {
		sum := x.speedA / v.top[x.a]
		if x.b >= 0 {
			sum += x.speedB / v.top[x.b]
		}
		return sum
	})
	for m := range v.s.rows {
		v.need(m, 0)
	}
	v.height(0, 0, 0)
	return v.above(func(m int) float64 { return need[v.s.rows[m][0]] * t })
}

// above solves with a floor for a job of every row that an earlier solution had. What rounding
// put above the feasible there is given way to: as little as helps, 1e-7 of it at most.
func (v *solver) above(throughput func(m int) float64) error {
	for slack := 1e-11; ; slack *= 10 {
		for m := range v.s.rows {
			v.floor(m, throughput(m)*(1-slack))
		}
		if err := v.run(); !errors.Is(err, lp.ErrInfeasible) || slack > 1e-8 {
			return err
		}
	}
}

// smallest gives the smallest throughput_m / need_m of the shares.
func (d *division) smallest(need []float64) float64 {
	out := math.Inf(1)
	for m, v := range d.throughputs() {
		if need[m] > 0 {
			out = min(out, v/need[m])
		}
	}
	if math.IsInf(out, 1) {
		return 0
	}
	return out
}
