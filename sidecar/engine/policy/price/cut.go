package price

import (
	"math"
	"slices"
)

// look is how a crowd answers prices p (of k models, then 0) at level t: what it pays for
// what it asks for, and how fast that rises with t.
type look func(t float64, p []float64) (cost, slope float64)

// cut is the search for the largest level that can be had.
type cut struct {
	gpus      []float64
	master    *master
	at        []float64   // the level of each column after the slacks
	prices    [][]float64 // and its prices
	low, high float64     // the level of the best mix, and what no answer exceeds
	rounds    int
}

// Limits of the search. Where rounding stops it before that is reached, low and high say so.
const (
	certified = 1e-10 // between low and high, relative
	maxRounds = 2000
	damping   = 0.5 // how far the best prices so far hold back the next ones
	damped    = 0.8 // the same where the search starts near the end
	// So far, relative, prices may go at first from the best where the search starts near
	// the end, and twice as far each time: the first columns lie too close to each other to
	// say more.
	trusted = 0.05
)

// start is where a search begins: near the end, if it has prices.
type start struct {
	level  float64
	prices [][]float64
}

// search finds the mix of columns with the largest level up to top, which may be +Inf, to
// within gap, relative. It first looks at the prices of warm, and at its level. After ask,
// use has the GPUs of each model that were asked for; keep is called once for each column,
// in order.
func search(gpus []float64, top, gap float64, warm start, use []float64, ask look, keep func()) *cut {
	k := len(gpus)
	c := &cut{gpus: gpus, master: newMaster(k), high: top}
	p, best := make([]float64, k+1), make([]float64, k)
	for j := range k {
		p[j] = 1 / (float64(k) * gpus[j])
	}
	hold, trust := damping, 1.0
	if len(warm.prices) > 0 {
		hold, trust = damped, trusted
		copy(p, warm.prices[0])
	}
	copy(best, p)
	// Newton's method from above at the first prices gives a bound near which to start; it
	// is the unit of levels, too: reduced costs are compared with an absolute number.
	if math.IsInf(top, 1) || warm.level > 0 {
		t := warm.level
		if t == 0 {
			t = 1
		}
		cost, slope := ask(t, p)
		c.high = min(top, t+(1-cost)/slope)
	}
	for last := math.Inf(1); c.high < last*(1-1e-3); {
		last = c.high
		cost, slope := ask(last, p)
		c.high = min(last, last+(1-cost)/slope)
	}
	unit := c.high
	beta := hold
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
		c.at, c.prices = append(c.at, t), append(c.prices, slices.Clone(p))
		keep()
		c.low = c.master.solve() * unit
		if c.high-c.low <= gap*c.high {
			break
		}
		if c.rounds < len(warm.prices) {
			copy(p, warm.prices[c.rounds])
			continue
		}
		var more bool
		if beta, more = heldBack(beta, hold, gain > noise || fell); !more {
			break
		}
		c.master.prices(p, best, beta, gpus)
		if trust < 1 && far(p[:k], best) > trust {
			toward(p, best, trust, gpus)
			trust *= 2
		}
	}
	return c
}

// heldBack gives how far the best prices hold back the next: as hold says after a step that
// gained, else half of beta each time. After the last halving no gain is possible, since rounding
// hides the rest.
// rounding hides the rest.
func heldBack(beta, hold float64, gained bool) (next float64, more bool) {
	switch {
	case gained:
		return hold, true
	case beta == 0:
		return 0, false
	case beta/2 < 0.05:
		return 0, true
	}
	return beta / 2, true
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

// toward keeps each price within a part of the best.
func toward(p, best []float64, part float64, gpus []float64) {
	sum := 0.0
	for j, b := range best {
		p[j] = max(b*(1-part), min(b*(1+part), p[j]))
		sum += p[j] * gpus[j]
	}
	for j := range best {
		p[j] /= sum
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
