package policy

import (
	"fmt"
	"math"
	"slices"
)

var inf = math.Inf(1)

// widest is how many times as large as another a tenant's speedup on a model may be. No hardware is further apart, and programs of such numbers are lost in rounding.
const widest = 1e9

// wide gives two models on which throughputs are further apart than they can be.
func wide(speed []float64) (slow, fast int, far bool) {
	slow = -1
	for j, v := range speed {
		if v > 0 && (slow < 0 || v < speed[slow]) {
			slow = j
		}
		if v > speed[fast] {
			fast = j
		}
	}
	return slow, fast, slow >= 0 && speed[fast] > widest*speed[slow]
}

// check finds the first number of the market that no program can be made of.
func (m Market) check() error {
	if len(m.Models) == 0 {
		return fmt.Errorf("market: there is no GPU model")
	}
	for _, model := range m.Models {
		if !positive(model.GPUs) {
			return fmt.Errorf("market: model %s: %v GPUs; it takes a number above 0", model.Name, model.GPUs)
		}
	}
	for _, t := range m.Tenants {
		if !sound(t.Weight) {
			return fmt.Errorf("market: tenant %s: weight %v; it takes 0 or more", t.Name, t.Weight)
		}
		if len(t.Speedup) != len(m.Models) {
			return fmt.Errorf("market: tenant %s: %d speedups for %d models", t.Name, len(t.Speedup), len(m.Models))
		}
		for j, w := range t.Speedup {
			if !sound(w) {
				return fmt.Errorf("market: tenant %s: speedup %v on model %s; it takes 0 or more", t.Name, w, m.Models[j].Name)
			}
		}
		if slow, fast, far := wide(t.Speedup); far {
			return fmt.Errorf("market: tenant %s: speedups %v on model %s and %v on model %s; none is more than %g times another",
				t.Name, t.Speedup[slow], m.Models[slow].Name, t.Speedup[fast], m.Models[fast].Name, widest)
		}
		if !sound(t.Demand) && !math.IsInf(t.Demand, 1) {
			return fmt.Errorf("market: tenant %s: a demand of %v GPUs; it takes 0 or more", t.Name, t.Demand)
		}
	}
	return nil
}

// present gives the tenants that take part: those with a weight, a demand and a usable model. The
// others get nothing, without reducing other shares.
func (m Market) present() []int {
	var in []int
	for l, t := range m.Tenants {
		if t.Weight > 0 && t.Demand > 0 && slices.Max(t.Speedup) > 0 {
			in = append(in, l)
		}
	}
	return in
}

// share gives the part of the models that is a tenant's by weight, and of it what the tenant
// would use: the models that are best for it first, up to its demand.
func (m Market) share(l int, weights float64) (whole, used []float64) {
	t, k := m.Tenants[l], len(m.Models)
	whole, used = make([]float64, k), make([]float64, k)
	left := t.Demand
	for _, j := range fastest(t.Speedup) {
		whole[j] = m.Models[j].GPUs * t.Weight / weights
		if t.Speedup[j] > 0 {
			used[j] = min(whole[j], left)
			left -= used[j]
		}
	}
	return whole, used
}

// fastest gives the models from the fastest to the slowest, ties in their order.
func fastest(speedup []float64) []int {
	order := make([]int, len(speedup))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case speedup[a] > speedup[b]:
			return -1
		case speedup[a] < speedup[b]:
			return 1
		}
		return 0
	})
	return order
}

// weights gives the sum of the weights of some tenants.
func (m Market) weights(of []int) float64 {
	sum := 0.0
	for _, l := range of {
		sum += m.Tenants[l].Weight
	}
	return sum
}

// sees gives what a tenant would have from GPUs, as many of them as it has a use for; best is
// its order of models.
func (t Tenant) sees(best []int, gpus []float64, times float64) float64 {
	sum, left := 0.0, t.Demand
	for _, j := range best {
		x := min(gpus[j]*times, left)
		sum += t.Speedup[j] * x
		left -= x
	}
	return sum
}

// none gives an empty answer.
func (m Market) none() Parts {
	p := Parts{GPUs: make([][]float64, len(m.Tenants))}
	for l := range p.GPUs {
		p.GPUs[l] = make([]float64, len(m.Models))
	}
	return p
}

// fixed gives every tenant its weighted share, up to its usable part, and says why.
func (m Market) fixed(present []int, why string) Parts {
	p := m.none()
	p.Why = why
	for _, l := range present {
		_, p.GPUs[l] = m.share(l, m.weights(present))
	}
	p.Objective = m.total(p.GPUs)
	return p
}

// total gives the sum of all tenants' throughputs.
func (m Market) total(gpus [][]float64) float64 {
	sum := 0.0
	for l, t := range m.Tenants {
		sum += worth(t.Speedup, gpus[l])
	}
	return sum
}

// worth gives the throughput that GPUs give at a speedup.
func worth(speedup, gpus []float64) float64 {
	sum := 0.0
	for j, w := range speedup {
		sum += w * gpus[j]
	}
	return sum
}

// fit removes rounding errors from an answer: nothing below 0, no model and no demand exceeded.
func (m Market) fit(gpus [][]float64) {
	used := make([]float64, len(m.Models))
	for l, t := range m.Tenants {
		sum := 0.0
		for j, x := range gpus[l] {
			gpus[l][j] = max(x, 0)
			sum += gpus[l][j]
		}
		for j := range gpus[l] {
			if sum > t.Demand {
				gpus[l][j] *= t.Demand / sum
			}
			used[j] += gpus[l][j]
		}
	}
	for j, model := range m.Models {
		if used[j] > model.GPUs {
			for l := range gpus {
				gpus[l][j] *= model.GPUs / used[j]
			}
		}
	}
}
