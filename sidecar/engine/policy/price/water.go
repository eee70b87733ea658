package price

import (
	"cmp"
	"math"
	"slices"
)

// Entity is a group of jobs that share what is due to it (Gavel §4.3).
type Entity struct {
	Weight float64 // > 0
	FIFO   bool    // the first of Jobs first; else all of them by weight
	Jobs   []int   // their numbers
}

// water says how high each job stands when every entity has had Weight·tau of water. A
// job's cap is what it can hold: the rest of its entity shares what does not fit. That is
// Gavel's redistribution of the weights of bottlenecked jobs.
type water struct {
	entities []Entity
	weight   []float64 // of jobs, within their entity
	cap      []float64
	full     []bool      // stands at its cap for good
	level    []float64   // written by pour
	rate     []float64   // how fast level rises with tau; written by pour
	order    [][]int     // of each fair entity: jobs by cap over weight
	rest     [][]float64 // the weight of the job there and of all later ones
}

func newWater(entities []Entity, weight, caps []float64) *water {
	n := len(weight)
	w := &water{entities: entities, weight: weight, cap: caps, full: make([]bool, n), level: make([]float64, n), rate: make([]float64, n)}
	for _, e := range entities {
		w.order = append(w.order, slices.Clone(e.Jobs))
		w.rest = append(w.rest, make([]float64, len(e.Jobs)))
	}
	return w
}

// settle takes over new caps, and gives the tau at which all stand at theirs.
func (w *water) settle() float64 {
	top := 0.0
	for i, e := range w.entities {
		all := 0.0
		for _, m := range e.Jobs {
			all += w.cap[m]
		}
		top = max(top, all/e.Weight)
		if e.FIFO {
			continue
		}
		slices.SortFunc(w.order[i], func(a, b int) int {
			return cmp.Or(cmp.Compare(w.cap[a]/w.weight[a], w.cap[b]/w.weight[b]), cmp.Compare(a, b))
		})
		sum := 0.0
		for at, m := range slices.Backward(w.order[i]) {
			sum += w.weight[m]
			w.rest[i][at] = sum
		}
	}
	return top * (1 + 1e-12) // all reach their caps in spite of rounding
}

// pour sets level and rate.
func (w *water) pour(tau float64) {
	for i, e := range w.entities {
		left := e.Weight * tau
		if e.FIFO {
			for _, m := range e.Jobs {
				w.rate[m] = 0
				if w.full[m] || left >= w.cap[m] {
					w.level[m] = w.cap[m]
				} else if w.level[m] = left; left > 0 {
					w.rate[m] = e.Weight
				}
				left = max(left-w.cap[m], 0)
			}
			continue
		}
		high := math.Inf(1) // level over weight, once some job is below its cap
		slope := 0.0
		for at, m := range w.order[i] {
			if rest := w.rest[i][at]; math.IsInf(high, 1) && left < w.cap[m]/w.weight[m]*rest {
				high, slope = left/rest, e.Weight/rest
			}
			if w.full[m] || w.weight[m]*high >= w.cap[m] {
				w.level[m], w.rate[m] = w.cap[m], 0
				left -= w.cap[m]
				continue
			}
			w.level[m], w.rate[m] = w.weight[m]*high, w.weight[m]*slope
		}
	}
}
