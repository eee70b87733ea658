package price

import (
	"math"
	"slices"
)

// rounding is the relative error of sums of some thousand terms.
const rounding = 2e-15

// exact corrects the water level tau, and the ways x of the jobs at that level, so that every
// such job has its level and all of them use up the rest of the closed models. It gives the new
// tau. The search ends within 1e-11 of it, and the trades of early models amplify such errors by
// the inverse of the smallest difference of speeds. Here the used ways are kept, and their parts
// solve the equations to rounding.
//
// It makes the smallest change: Σ dx²/x over the ways. A job has an equation for its level and,
// if its time is used up, one for its time; k models and tau couple them, so by Lagrange's
// multipliers the system has k+1 unknowns. If a step does not reduce all errors nothing is
// changed.
func (f *filling) exact(jobs []int, tau float64) (found, off float64) {
	k := len(f.gpus)
	e := exactly{filling: f, jobs: jobs, full: slices.Clone(f.closed)}
	found, off = tau, e.amiss()
	saved := make([]float64, 0, len(jobs)*k)
	for _, m := range jobs {
		saved = append(saved, f.x[m*k:(m+1)*k]...)
	}
	next, last := tau, math.Inf(1)
	for range 8 {
		full := slices.Clone(e.full)
		next += e.step()
		if !(math.Abs(next-tau) <= 1e-6*tau) {
			break
		}
		f.water.pour(next)
		now := e.amiss()
		if now < off {
			off, found = now, next
			for i, m := range jobs {
				copy(saved[i*k:(i+1)*k], f.x[m*k:(m+1)*k])
			}
		}
		if now <= rounding || now > last/2 && slices.Equal(full, e.full) {
			break
		}
		last = now
	}
	for i, m := range jobs {
		copy(f.x[m*k:(m+1)*k], saved[i*k:(i+1)*k])
	}
	f.water.pour(found)
	return found, off
}

// exactly is the state of exact.
type exactly struct {
	*filling
	jobs []int
	full []bool // models whose GPUs are all used: closed ones, and overused ones
}

// amiss gives the maximum relative error of the jobs' ways in levels, time and remaining GPUs.
func (e *exactly) amiss() float64 {
	k, w := len(e.gpus), len(e.gpus)+1
	use := make([]float64, k)
	most := 0.0
	for _, m := range e.jobs {
		level, time := 0.0, 0.0
		for j, v := range e.x[m*k : (m+1)*k] {
			level += v * e.crowd.speed[m*w+j]
			time += v
			use[j] += e.in.Gang[m] * v
		}
		most = max(most, time-1)
		most = max(most, math.Abs(level-e.water.level[m])/highest(e.in.Speed[m*k:(m+1)*k]))
	}
	for j, n := range e.in.GPUs {
		over := use[j] - e.left[j]
		e.full[j] = e.full[j] || over > 0
		if e.closed[j] {
			over = math.Abs(over)
		}
		most = max(most, over/n)
	}
	return most
}

// step takes one step, and gives that of tau.
func (e *exactly) step() float64 {
	k, w := len(e.gpus), len(e.gpus)+1
	// Rows and columns of the system: full models, then tau; its right side is the last column.
	s := make([][]float64, w)
	for i := range s {
		s[i] = make([]float64, w+1)
	}
	scale := make([]float64, w)
	ties, room := make([]tie, len(e.jobs)), make([]float64, len(e.jobs)*k)
	use := make([]float64, k)
	for i, m := range e.jobs {
		t := &ties[i]
		x, gang := e.x[m*k:(m+1)*k], e.in.Gang[m]
		t.set(x, e.crowd.speed[m*w:m*w+k], e.water.level[m], e.water.rate[m], room[i*k:(i+1)*k])
		for j, v := range x {
			use[j] += gang * v
			if v == 0 || !e.full[j] {
				continue
			}
			scale[j] += gang * gang * v
			s[j][j] += gang * gang * v
			for q := range t.on {
				r := &t.row[q]
				part := gang * v * r.at[j] / r.norm
				for i, u := range x {
					if e.full[i] {
						s[j][i] -= part * gang * u * r.at[i]
					}
				}
				s[j][k] += part * r.rate
				s[k][j] -= part * r.rate
				s[j][w] -= part * r.short
			}
		}
		for q := range t.on {
			r := &t.row[q]
			s[k][k] += r.rate * r.rate / r.norm
			s[k][w] -= r.rate * r.short / r.norm
		}
	}
	scale[k] = s[k][k]
	for j := range k {
		if e.full[j] {
			s[j][w] += e.left[j] - use[j]
		}
	}
	y := eliminate(s, scale)
	for i, m := range e.jobs {
		ties[i].move(e.x[m*k:(m+1)*k], e.in.Gang[m], e.full, y)
	}
	return y[k]
}

// move takes a job's part of a step: y has the multipliers of the full models, and tau's step.
func (t *tie) move(x []float64, gang float64, full []bool, y []float64) {
	var lambda [2]float64
	for q := range t.on {
		r := &t.row[q]
		sum := r.short + r.rate*y[len(x)]
		for j, v := range x {
			if full[j] {
				sum -= gang * v * r.at[j] * y[j]
			}
		}
		lambda[q] = sum / r.norm
	}
	for j, v := range x {
		if v == 0 {
			continue
		}
		change := 0.0
		if full[j] {
			change = gang * y[j]
		}
		for q := range t.on {
			change += lambda[q] * t.row[q].at[j]
		}
		x[j] = max(0, v+v*change)
	}
}

// tie is what holds the ways of a job: the equations of its level and of its time, the second made
// orthogonal to the first.
type tie struct {
	on  int // equations
	row [2]struct {
		at    []float64 // coefficients of x
		norm  float64   // Σ x·at²
		short float64   // shortfall of x from the right side
		rate  float64   // how fast that grows with tau
	}
}

func (t *tie) set(x, speed []float64, level, rate float64, room []float64) {
	time := 0.0
	r, u := &t.row[0], &t.row[1]
	r.at, r.short, r.rate = speed, level, rate
	for j, v := range x {
		time += v
		r.norm += v * speed[j] * speed[j]
		r.short -= v * speed[j]
	}
	if r.norm == 0 {
		return
	}
	t.on = 1
	if time < 1-1e-12 {
		return
	}
	u.at = room
	c := 0.0
	for i, v := range x {
		c += v * speed[i]
		for j := range x {
			u.at[j] += v * speed[i] * (speed[i] - speed[j]) / r.norm // of 1 - c·speed, without its rounding
		}
	}
	c /= r.norm
	for j, v := range x {
		u.norm += v * u.at[j] * u.at[j]
	}
	u.short, u.rate = 1-time-c*r.short, -c*rate
	if u.norm > 1e-24*time {
		t.on = 2
	}
}

// eliminate solves a system whose right side is its last column, by Gauss's elimination with the
// largest pivots on the diagonal, relative to scale. Undetermined values are 0.
func eliminate(s [][]float64, scale []float64) []float64 {
	n := len(s)
	var done []int
	for range n {
		pivot, most := -1, 1e-14
		for i := range n {
			if v := math.Abs(s[i][i]); v > most*scale[i] && !slices.Contains(done, i) {
				pivot, most = i, v/scale[i]
			}
		}
		if pivot < 0 {
			break
		}
		done = append(done, pivot)
		for i := range n {
			if part := s[i][pivot] / s[pivot][pivot]; i != pivot && part != 0 {
				for j, v := range s[pivot] {
					s[i][j] -= part * v
				}
				s[i][pivot] = 0
			}
		}
	}
	y := make([]float64, n)
	for _, i := range done {
		y[i] = s[i][n] / s[i][i]
	}
	return y
}
