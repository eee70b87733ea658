package policy

import (
	"errors"
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// errGap tells that a smallest level is not proven to be the largest that can be had.
var errGap = errors.New("the smallest level is below its bound")

// exact is how far the largest smallest level may be above that of an answer, relatively.
const exact = 1e-9

// prove checks the last solution of rise, and solves again with a tenth of the tolerance where it is not proven.
func (v *solver) prove(need []float64) error {
	if v.d.in.o.Whole || proven(v.value(v.p.Values(nil), need), v.bound(need)) == nil {
		return nil
	}
	v.p.Set(lp.Options{PrimalTolerance: tolerance / 10, DualTolerance: tolerance / 10})
	if err := v.run(); err != nil {
		return err
	}
	return proven(v.value(v.p.Values(nil), need), v.bound(need))
}

// proven tells that a smallest level is too far below its bound.
func proven(value, bound float64) error {
	if !(bound-value <= exact*bound) {
		return fmt.Errorf("%w: it is %v, and might be %v", errGap, value, bound)
	}
	return nil
}

// value gives the smallest level of columns x, divided by what makes them fit.
func (v *solver) value(x, need []float64) float64 {
	n, k := len(v.s.rows), len(v.d.in.p.Models)
	throughput, time, gpus := make([]float64, n), make([]float64, n), make([]float64, 2*k)
	for c, w := range v.ways {
		y, part := v.s.ways[w], max(0, x[1+c])
		throughput[y.a] += y.speedA * part
		time[y.a] += part
		if y.b >= 0 {
			throughput[y.b] += y.speedB * part
			time[y.b] += part
		}
		model := v.d.in.p.Models[y.model]
		gpus[y.model] += v.gang(y) * part / model.GPUs
		if v.confined(y) {
			gpus[k+y.model] += v.gang(y) * part / model.together()
		}
	}
	level, most := math.Inf(1), 1.0
	for m, jobs := range v.s.rows {
		each := float64(len(jobs))
		most = max(most, time[m]/each)
		if needs := need[jobs[0]]; needs > 0 {
			level = min(level, throughput[m]/(needs*each))
		}
	}
	for _, part := range gpus {
		most = max(most, part)
	}
	return level / most
}

// bound gives an upper bound of the smallest level of every answer, by the prices of the last solution: what all time and
// all GPUs cost, over what level 1 is worth. The worth of a way above its cost raises the price of its row's time.
func (v *solver) bound(need []float64) float64 {
	n, k := len(v.s.rows), len(v.d.in.p.Models)
	price := func(row int) float64 { return max(0, v.duals[row]) }
	worth, over := make([]float64, n), make([]float64, n)
	for m := range worth {
		worth[m] = max(0, -v.duals[m]/v.scale[m])
	}
	for _, x := range v.s.ways {
		more := worth[x.a]*x.speedA - price(n+x.a)
		if x.b >= 0 {
			more += worth[x.b]*x.speedB - price(n+x.b)
		}
		if more <= over[x.a] {
			continue
		}
		model := v.d.in.p.Models[x.model]
		more -= v.gang(x) / model.GPUs * price(2*n+x.model)
		if v.confined(x) {
			more -= v.gang(x) / model.together() * price(2*n+k+x.model)
		}
		over[x.a] = max(over[x.a], more)
	}
	cost, one := 0.0, 0.0
	for m, jobs := range v.s.rows {
		cost += float64(len(jobs)) * (price(n+m) + over[m])
		one += float64(len(jobs)) * worth[m] * need[jobs[0]]
	}
	for j := range 2 * k {
		cost += price(2*n + j)
	}
	return cost / one
}
