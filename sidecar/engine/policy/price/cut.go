package price

import "math"

// look is how a crowd answers prices p (of k models, then 0) at level t: what it pays for
// what it asks for, and how fast that rises with t.
type look func(t float64, p []float64) (cost, slope float64)

// cut is the search for the largest level that can be had.
type cut struct {
	gpus      []float64
	master    *master
	at        []float64 // the level of each column after the slacks
	low, high float64   // the level of the best mix, and what no answer exceeds
	rounds    int
}

// Limits of the search. Where rounding stops it before gap is reached, low and high say so.
const (
	gap       = 1e-10 // between low and high, relative
	maxRounds = 2000
	damping   = 0.5
)

// search finds the mix of columns with the largest level up to top, which may be +Inf.
// After ask, use has the GPUs of each model that were asked for; keep is called once for each column, in order.
func search(gpus []float64, top float64, use []float64, ask look, keep func()) *cut {
	k := len(gpus)
	c := &cut{gpus: gpus, master: newMaster(k), high: top}
	p, best := make([]float64, k+1), make([]float64, k)
	for j := range k {
		p[j] = 1 / (float64(k) * gpus[j])
	}
	copy(best, p)
	// Newton's method from above at the first prices gives a bound near which to start; it
	// is the unit of levels, too: reduced costs are compared with an absolute number.
	if math.IsInf(top, 1) {
		c.high = 1
		cost, slope := ask(1, p)
		c.high += (1 - cost) / slope
	}
	for range 6 {
		cost, slope := ask(c.high, p)
		next := c.high + (1-cost)/slope
		if !(next < c.high*(1-gap)) {
			break
		}
		c.high = next
	}
	unit := c.high
	beta := damping
	for c.rounds < maxRounds {
		c.rounds++
		t := c.high
		cost, slope := ask(t, p)
		fell := false
		if next := t + (1-cost)/slope; next < t {
			c.high = next
			copy(best, p)
			fell = true
		}
		gain := c.master.add(t/unit, use, gpus)
		c.at = append(c.at, t)
		keep()
		c.low = c.master.solve() * unit
		if c.high-c.low <= gap*c.high {
			break
		}
		if gain > noise || fell {
			beta = damping
		} else if beta == 0 {
			break // rounding hides what is left
		} else if beta /= 2; beta < 0.05 {
			beta = 0
		}
		c.master.prices(p, best, beta, gpus)
	}
	return c
}

// prices writes the master's duals as the next prices p, with p·gpus = 1, damped by beta
// towards best.
func (m *master) prices(p, best []float64, beta float64, gpus []float64) {
	sum := 0.0
	for j := range gpus {
		sum += max(m.dual[j], 0)
	}
	if sum <= 0 {
		copy(p, best)
		return
	}
	for j, n := range gpus {
		p[j] = beta*best[j] + (1-beta)*max(m.dual[j], 0)/(sum*n)
	}
}

// mixed calls f for each column of the best mix: its number after the slacks, its share.
func (c *cut) mixed(f func(column int, share float64)) {
	for i, b := range c.master.basis {
		if b >= c.master.rows && c.master.theta[i] > 0 {
			f(b-c.master.rows, c.master.theta[i])
		}
	}
}
