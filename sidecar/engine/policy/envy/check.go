package envy

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// exact is the tolerance, relative, of an answer's rows and of its distance from the bound.
const exact = 1e-9

// errGap tells that an answer breaks no row, and is not proven to be the best.
var errGap = errors.New("envy: the sum is below its bound")

// errCentral tells that the interior point does not get to the optimum.
var errCentral = errors.New("envy: no interior point gets to the optimum")

// fits tells which of the program's rows parts break, by its formulas alone.
func (p *Program) fits(y []float64) error {
	n, k := p.size()
	used := make([]float64, k)
	most := 1.0
	for _, x := range y {
		if x > most {
			most = x
		}
	}
	for l := range n {
		part := row(y, k, l)
		for j, x := range part {
			if !(x >= -exact*most) {
				return fmt.Errorf("envy: a part of %v of model %d", x, j)
			}
		}
		plus(used, p.Mass[l], part)
		if over := dot(p.Unit, part) - p.Cap[l]; !(over <= exact*p.Cap[l]) {
			return fmt.Errorf("envy: a part is %.1g GPUs above what its tenant can use", over)
		}
		own := dot(row(p.Own, k, l), part)
		if !(own >= p.Floor[l]*(1-exact)) {
			return fmt.Errorf("envy: a part is worth %v, less than its floor of %v", own, p.Floor[l])
		}
		for other := range n {
			if sees := p.sees(l, other, row(y, k, other)); other != l && !(sees <= own+exact*max(1, own)) {
				return fmt.Errorf("envy: a part is worth %v, and another %v to the same tenant", own, sees)
			}
		}
	}
	for j, x := range used {
		if mass := sum(p.Mass); !(x <= mass*(1+exact)) {
			return fmt.Errorf("envy: %v of %v of model %d are given", x, mass, j)
		}
	}
	return nil
}

// bound gives an upper bound of the sum, by multipliers of the own rows, of pairs' rows and of the
// models: with A·x <= b and multipliers z >= 0, c·x <= b·z + (c - Aᵀ·z)·x. Positive rounding errors in
// the last bracket are removed with more of the own rows' multipliers and then of the models'.
func (p *Program) bound(own []float64, pairs []pair, z, models []float64) float64 {
	n, k := p.size()
	overY, overV := make([]float64, n*k), slices.Clone(p.Gain)
	bound, eye := 0.0, make([]float64, k)
	for at, e := range pairs {
		f := max(z[at], 0)
		bound += f * p.reads(e, eye)
		plus(row(overY, k, int(e.l)), -f, eye)
		if e.i != e.l {
			overV[e.i] += f
		}
	}
	for i := range n {
		f := max(own[i], overV[i], 0)
		plus(row(overY, k, i), f, row(p.Own, k, i))
		bound += (overV[i] - f) * p.Floor[i]
	}
	for j := range k {
		f := max(models[j], 0)
		for l := range n {
			f = max(f, overY[l*k+j]/p.Mass[l])
		}
		bound += f * sum(p.Mass)
	}
	return bound
}

// bound gives an upper bound of the sum, by the multipliers of the point.
func (q *interior) bound() float64 {
	models := q.n + len(q.pairs)
	return q.p.bound(q.z[:q.n], q.pairs, q.z[q.n:models], q.z[models:][:q.k])
}

// bound gives an upper bound of the sum, by the multipliers of the last optimum.
func (r *rows) bound() float64 {
	z := r.lp.Duals(nil)
	own := z[:r.n]
	for i := range own {
		own[i] = -own[i] // a row of >=: its multiplier is below 0
	}
	return r.p.bound(own, r.pairs, z[r.n+r.k:], z[r.n:r.n+r.k])
}

// check tells what is wrong with parts. Where GPUs are limited rows are read at one point, and
// there is no bound.
func (r *rows) check(y []float64) error {
	if r.p.limited() {
		return r.p.fits(y)
	}
	return r.p.proves(y, r.bound())
}

// proves tells what is wrong with parts that should be the best, with an upper bound of the sum.
func (p *Program) proves(y []float64, bound float64) error {
	if err := p.fits(y); err != nil {
		return err
	}
	if value := p.Value(y); !(math.Abs(bound-value) <= exact*math.Abs(bound)) {
		return fmt.Errorf("%w: it is %v, and might be %v", errGap, value, bound)
	}
	return nil
}
