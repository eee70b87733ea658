package price

import (
	"math"
	"slices"
)

// Total gives the division with the largest sum of levels: maximise Σ_m Σ_j speed_mj·x_mj subject
// to Σ_j x_mj <= 1 and Σ_m gang_m·x_mj <= gpus_j. speed includes the worth of a unit of the job's
// throughput. Low and High are bounds of the sum, about 1e-12 and at most 1e-9 apart, relative: a job that adds
// less may be left out. Errors are as for MaxMin.
//
// Under prices p >= 0 per GPU each job runs where speed_mj - gang_m·p_j is largest and positive,
// or not at all. For any p, p·N plus the positive surpluses is an upper bound of the sum; the
// jobs' demand is a column, and the best mix of columns is an answer.
func Total(in Instance) (Answer, error) {
	if err := in.check(); err != nil {
		return Answer{}, err
	}
	t := &takers{in: in, take: make([]uint8, len(in.Gang)), use: make([]float64, len(in.GPUs))}
	k := len(in.GPUs)
	p, best := make([]float64, k), make([]float64, k)
	out := Answer{X: make([]float64, len(in.Speed)), High: math.Inf(1)}
	// The same price for every model in parts of its GPUs, and half of it as long as that helps, is where to
	// start. The bound there is the unit of values: reduced costs are compared with an absolute number.
	_, all := t.ask(p)
	for one := all; ; one /= 2 {
		for j, n := range in.GPUs {
			p[j] = one / (float64(k) * n)
		}
		out.Rounds++
		_, bound := t.ask(p)
		if !(bound < out.High) {
			break
		}
		out.High = bound
		copy(best, p)
	}
	copy(p, best)
	unit := out.High
	m := newMaster(k)
	var takes [][]uint8 // of each column
	beta := damping
	for range maxRounds {
		out.Rounds++
		value, bound := t.ask(p)
		fell := bound < out.High*(1-1e-15)
		if fell {
			out.High = bound
			copy(best, p)
		}
		gain := m.add(value/unit, t.use, in.GPUs)
		takes = append(takes, slices.Clone(t.take))
		if low := m.solve() * unit; out.High-low <= 1e-12*out.High {
			break
		}
		var more bool
		if beta, more = heldBack(beta, damping, gain > noise || fell); !more {
			break
		}
		for j, n := range in.GPUs {
			p[j] = beta*best[j] + (1-beta)*max(m.dual[j], 0)*unit/n
		}
	}
	for i, b := range m.basis {
		if b < m.rows {
			continue
		}
		for job, j := range takes[b-m.rows] {
			if int(j) < k {
				out.X[job*k+int(j)] += m.theta[i]
			}
		}
	}
	high := out.High
	out.finish(in)
	out.Low = 0
	for _, l := range out.Level {
		out.Low += l
	}
	out.High = max(high, out.Low)
	return out, out.proves()
}

// takers are jobs that answer prices: each takes the model that is worth most above its price, or none.
type takers struct {
	in   Instance
	take []uint8   // by each job at the last look; the number of models = none
	use  []float64 // GPUs of each model that were taken
}

// ask gives what the jobs have of what they take at prices p, and the bound of all sums. Ties go to the first model.
func (t *takers) ask(p []float64) (value, bound float64) {
	k := len(p)
	clear(t.use)
	for j, n := range t.in.GPUs {
		bound += n * p[j]
	}
	for m, gang := range t.in.Gang {
		take, most := k, 0.0
		for j, v := range t.in.Speed[m*k : (m+1)*k] {
			if more := v - gang*p[j]; more > most && v > 0 {
				take, most = j, more
			}
		}
		t.take[m] = uint8(take)
		if take < k {
			t.use[take] += gang
			value += t.in.Speed[m*k+take]
			bound += most
		}
	}
	return value, bound
}
