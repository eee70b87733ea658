// Package value tells what GPUs are worth to several kinds of jobs: the largest throughput that they
// can have of them, each kind up to its demand.
package value

import "slices"

// Kind is jobs that are alike.
type Kind struct {
	Speed []float64 // the throughput of one GPU of each model; 0 = of no use
	Most  float64   // GPUs that its jobs can use at once; +Inf = any number
}

// Plan is the best use of GPUs.
type Plan struct {
	GPUs  [][]float64 // of each kind, by model
	Worth float64     // the throughput of all kinds
	Price []float64   // of each model: the throughput that one GPU more would add
}

// nothing is the part of all GPUs below which a number of them is a rounding error.
const nothing = 1e-13

// Of gives the best use of some GPUs of each model: max Σ speed·x with Σ_j x_kj <= most_k and Σ_k x_kj <= gpus_j. It gives the
// kinds GPUs by longest augmenting paths: each addition has the largest gain, if need be by moving other kinds between models.
func Of(kinds []Kind, gpus []float64) Plan {
	s := &search{kinds: kinds, left: slices.Clone(gpus), open: make([]float64, len(kinds)), gain: make([]float64, len(gpus)), by: make([]step, len(gpus))}
	all := 0.0
	for _, n := range gpus {
		all += n
	}
	s.least = nothing * all
	p := Plan{GPUs: make([][]float64, len(kinds)), Price: make([]float64, len(gpus))}
	for k := range kinds {
		p.GPUs[k] = make([]float64, len(gpus))
		s.open[k] = kinds[k].Most
	}
	s.x = p.GPUs
	for range 8 * (len(kinds) + 1) * (len(gpus) + 1) { // each ends with a kind, a model or a kind's GPUs of one used up
		if !s.augment() {
			break
		}
	}
	for k := range kinds {
		for j, v := range kinds[k].Speed {
			p.Worth += v * s.x[k][j]
		}
	}
	s.prices(p.Price)
	return p
}

// Worth gives the worth of the best use. A single kind that can use all of the GPUs needs no search.
func Worth(kinds []Kind, gpus []float64) float64 {
	all, worth := 0.0, 0.0
	for j, n := range gpus {
		all += n
		if len(kinds) == 1 {
			worth += kinds[0].Speed[j] * n
		}
	}
	if len(kinds) == 1 && all <= kinds[0].Most {
		return worth
	}
	return Of(kinds, gpus).Worth
}

// step is how one GPU more on a model is used: by a kind that has it from another model, or from nowhere (-1).
type step struct{ kind, from int }

type search struct {
	kinds      []Kind
	x          [][]float64
	left, open []float64 // by model, by kind
	least      float64
	gain       []float64 // of one GPU more on each model
	by         []step
}

// augment gives out GPUs where that gains the most; false = nowhere.
func (s *search) augment() bool {
	for j := range s.gain {
		s.gain[j], s.by[j] = 0, step{-1, -1}
		for k := range s.kinds {
			if v := s.kinds[k].Speed[j]; s.open[k] > s.least && v > s.gain[j] {
				s.gain[j], s.by[j] = v, step{k, -1}
			}
		}
	}
	s.relax()
	end := -1
	for j, n := range s.left {
		if n > s.least && s.gain[j] > 0 && (end < 0 || s.gain[j] > s.gain[end]) {
			end = j
		}
	}
	if end < 0 {
		return false
	}
	n, path := s.left[end], []int{end}
	for j := end; ; {
		at := s.by[j]
		if at.from < 0 {
			n = min(n, s.open[at.kind])
			break
		}
		n = min(n, s.x[at.kind][at.from])
		if j = at.from; len(path) > len(s.gain) {
			return false // rounding has made a circle
		}
		path = append(path, j)
	}
	s.left[end] -= n
	for _, j := range path {
		at := s.by[j]
		s.x[at.kind][j] += n
		if at.from >= 0 {
			s.x[at.kind][at.from] -= n
		} else {
			s.open[at.kind] -= n
		}
	}
	return true
}

// relax lets kinds move between models: one that leaves a model makes room for what gains there. It gives whether some do.
func (s *search) relax() (moved bool) {
	for range s.gain {
		again := false
		for k := range s.kinds {
			speed := s.kinds[k].Speed
			for i, has := range s.x[k] {
				if has <= s.least || s.gain[i] == 0 {
					continue
				}
				for j, v := range speed {
					if g := s.gain[i] + v - speed[i]; v > 0 && j != i && g > s.gain[j]*(1+1e-12) {
						s.gain[j], s.by[j], again = g, step{k, i}, true
					}
				}
			}
		}
		if !again {
			break
		}
		moved = true
	}
	return moved
}

// prices sets what one GPU more of each model would add: for a kind with open demand, or for one that moves there.
func (s *search) prices(price []float64) {
	for j := range price {
		for k := range s.kinds {
			if s.open[k] > s.least {
				price[j] = max(price[j], s.kinds[k].Speed[j])
			}
		}
	}
	for range price {
		again := false
		for k := range s.kinds {
			speed := s.kinds[k].Speed
			for i, has := range s.x[k] {
				if has <= s.least {
					continue
				}
				for j, v := range speed {
					if g := price[i] + v - speed[i]; j != i && g > price[j]*(1+1e-12)+1e-300 {
						price[j], again = g, true
					}
				}
			}
		}
		if !again {
			break
		}
	}
}

// Rest gives the part of the worth that prices do not explain: for every number of GPUs x and every price >= 0,
// price·x + Rest is at least the worth of x, and it is the worth at the x whose prices they are (linear programming duality).
func Rest(kinds []Kind, price []float64) float64 {
	sum := 0.0
	for k := range kinds {
		over := 0.0
		for j, v := range kinds[k].Speed {
			over = max(over, v-price[j])
		}
		if over > 0 {
			sum += over * kinds[k].Most
		}
	}
	return sum
}
