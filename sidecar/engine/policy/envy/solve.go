package envy

import (
	"cmp"
	"math"
	"slices"
)

// few is the number of tenants up to which the simplex is as fast without a start.
const few = 50

// Solve gives the parts that maximise the program, n×k, with no envy row, floor or (relatively) cap
// broken by more than 1e-9, and a proven upper bound of the sum. Where no Cap binds, the sum is nearly always within
// 1e-9 of the bound. Else the parts are the best of a sequence of readings, and the sum may be below the
// bound. The simplex has a limit of iterations. Where GPUs are limited the answer at the limit is
// the best reading so far, which breaks no row. Else there is none: the error is ErrLimit, or
// of the simplex or that check, for programs whose numbers are too far apart.
func Solve(p *Program) (y []float64, bound float64, err error) {
	n, k := p.size()
	tenants := order(p)
	if ladder(p) != nil {
		slices.Sort(tenants)
	}
	sorted, bound, err := permuted(p, tenants).solve()
	if err != nil {
		return nil, 0, err
	}
	y = make([]float64, n*k)
	for at, i := range tenants {
		copy(row(y, k, i), row(sorted, k, at))
	}
	return y, bound, nil
}

// proven is the relative distance from the bound at which a sum counts as the largest, at which readings
// end, and to which the interior point goes.
const proven = 1e-4

// solve gives the best parts and an upper bound of the sum; where GPUs are limited, the best parts that
// rows find that are read again at each answer.
func (p *Program) solve() (y []float64, bound float64, err error) {
	const readings = 20
	largest := p.most()
	for i, c := range p.Cap {
		if c >= largest {
			p.Cap[i] = math.Inf(1) // it cannot bind
		}
	}
	if !p.limited() {
		return p.reading()
	}
	bound = p.read(largest)
	if y, _, err = p.reading(); err != nil {
		p.marginal = p.marginals(p.equal())
		y, _, err = p.reading()
	}
	for range readings {
		if err != nil || p.Value(y) >= bound*(1-proven) {
			break
		}
		p.marginal = p.marginals(y)
		again, _, lost := p.reading() // then the last answer is the best
		if lost != nil || p.Value(again) <= p.Value(y) {
			break
		}
		done := p.Value(again) <= p.Value(y)*(1+proven)
		if y = again; done {
			break
		}
	}
	return y, bound, err
}

// reading gives the best parts as the rows read them, and an upper bound of the sum as they do.
func (p *Program) reading() (y []float64, bound float64, err error) {
	if n, _ := p.size(); n > few && !p.limited() && ladder(p) == nil {
		if y, bound, err = p.central(); err == nil {
			return y, bound, nil
		}
	}
	r := start(p)
	defer r.lp.Close()
	if y, err = r.solve(); err != nil {
		return nil, 0, err
	}
	return y, max(r.bound(), p.Value(y)), nil
}

// central gives the best parts, in the middle of all that are, and an upper bound of the sum; the interior point gets there by itself. The
// error is that the numbers do not allow it.
func (p *Program) central() (y []float64, bound float64, err error) {
	q := newInterior(p, p.first())
	if !q.solve(exact / 4) {
		return nil, 0, errCentral
	}
	y = slices.Clone(q.y)
	for i, zy := range q.zy {
		if y[i] < min(zy, exact/100) {
			y[i] = 0
		}
	}
	bound = max(q.bound(), p.Value(y))
	return y, bound, p.proves(y, bound)
}

// equal gives the equal division.
func (p *Program) equal() []float64 { return slices.Repeat([]float64{1}, len(p.Own)) }

// read sets the first μ, and gives an upper bound of the sum; largest is a number of GPUs that no part
// exceeds.
//
// The bound is that of a program with less envy: of a part of at most u GPUs, a tenant that can use c
// sees c/u of the worth. This is not more than its best c GPUs. If the answer is free of envy it is the
// best of all, and rows read it. Else they read the equal division, which breaks none.
func (p *Program) read(largest float64) (bound float64) {
	less := *p
	less.largest = largest
	q, bound := less.approach()
	if q != nil {
		p.marginal = p.marginals(q.y)
		if again, _ := p.approach(); again != nil && p.Value(again.y) >= bound*(1-10*proven) {
			return bound
		}
	}
	p.marginal = p.marginals(p.equal())
	return bound
}

// approach gives the interior point at the optimum of the program as its rows are read, nil if it does
// not get there, and the least upper bound of the sum that it finds on the way.
func (p *Program) approach() (q *interior, bound float64) {
	n, k := p.size()
	bound = p.bound(make([]float64, n), nil, nil, make([]float64, k)) // by no row but the models
	if q = newInterior(p, p.first()); !q.solve(proven) {
		return nil, bound
	}
	return q, min(bound, q.bound())
}

// first gives the rows between each tenant and those nearest to it in taste, and all caps.
func (p *Program) first() []pair {
	pairs := near(p, 8)
	for i, c := range p.Cap {
		if !math.IsInf(c, 1) {
			pairs = append(pairs, pair{int32(i), int32(i)})
		}
	}
	return tidy(pairs)
}

// start gives the first rows, with a basis where the interior point has found one.
func start(p *Program) *rows {
	n, _ := p.size()
	if pairs := ladder(p); pairs != nil {
		return newRows(p, tidy(append(pairs, near(p, 2)...)))
	}
	if n <= few {
		return newRows(p, near(p, 6))
	}
	q := newInterior(p, p.first())
	if !q.solve(1e-4) {
		return newRows(p, near(p, 6))
	}
	pairs, z := likely(q)
	r := newRows(p, pairs)
	r.crash(q, z)
	return r
}

// ladder gives the rows between neighbours where tastes are in a total order: of any two
// tenants, one gains more from every better model, and models are better in the
// same order for all. It gives nil where they are not.
func ladder(p *Program) []pair {
	n, k := p.size()
	rank := make([]float64, n)
	steps := make([]int, n)
	for i := range n {
		own := row(p.Own, k, i)
		if slices.Min(own) <= 0 {
			return nil
		}
		steps[i] = i
		for _, w := range own {
			rank[i] += w / own[0]
		}
	}
	slices.SortFunc(steps, func(a, b int) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) })
	gain := func(a, b, j int) float64 { return p.Own[b*k+j] / p.Own[a*k+j] }
	models := make([]int, k)
	for j := range models {
		models[j] = j
	}
	first, last := steps[0], steps[n-1]
	slices.SortFunc(models, func(a, b int) int {
		return cmp.Or(cmp.Compare(gain(first, last, a), gain(first, last, b)), cmp.Compare(a, b))
	})
	pairs := []pair{}
	for at := range n - 1 {
		a, b := steps[at], steps[at+1]
		for j := range k - 1 {
			if gain(a, b, models[j]) > gain(a, b, models[j+1])*(1+1e-9) {
				return nil
			}
		}
		pairs = append(pairs, pair{int32(a), int32(b)}, pair{int32(b), int32(a)})
	}
	return pairs
}
