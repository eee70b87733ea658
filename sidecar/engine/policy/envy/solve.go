package envy

import (
	"cmp"
	"slices"
)

// The numbers of tenants up to which the simplex is as fast without a start, in general and with
// limited GPUs, which the interior point ignores.
const (
	few        = 50
	fewLimited = 200
)

// Solve gives the parts that maximise the program, n×k, with no envy row, floor or (relatively) cap
// broken by more than 1e-9 and, where no Cap is finite, a sum proven to be within 1e-9 of the
// largest. The simplex has a limit of iterations. Where GPUs are limited the answer at the limit is
// the best reading so far, which breaks no row. Else there is none: the error is ErrLimit, or
// of the simplex or that check, for programs whose numbers are too far apart.
func Solve(p *Program) ([]float64, error) {
	n, k := p.size()
	tenants := order(p)
	if ladder(p) != nil {
		slices.Sort(tenants)
	}
	sorted, err := permuted(p, tenants).solve()
	if err != nil {
		return nil, err
	}
	y := make([]float64, n*k)
	for at, i := range tenants {
		copy(row(y, k, i), row(sorted, k, at))
	}
	return y, nil
}

// solve gives the best parts; where GPUs are limited, the best that rows find that are read again
// at each answer, from the equal division on.
func (p *Program) solve() ([]float64, error) {
	const readings = 20
	n, k := p.size()
	if p.limited() {
		p.marginal = p.marginals(slices.Repeat([]float64{1}, n*k))
	}
	r := start(p)
	y, err := r.solve()
	r.lp.Close()
	if err != nil || !p.limited() {
		return y, err
	}
	for range readings {
		p.marginal = p.marginals(y)
		r = newRows(p, r.pairs)
		again, lost := r.solve() // then the last answer is the best
		r.lp.Close()
		if better := lost == nil && p.value(again) > p.value(y); !better {
			break
		}
		done := p.value(again) <= p.value(y)*(1+1e-6)
		if y = again; done {
			break
		}
	}
	return y, nil
}

// start gives the first rows, with a basis where the interior point has found one.
func start(p *Program) *rows {
	n, _ := p.size()
	if pairs := ladder(p); pairs != nil {
		return newRows(p, tidy(append(pairs, near(p, 2)...)))
	}
	if n <= few || n <= fewLimited && p.limited() {
		return newRows(p, near(p, 6))
	}
	// First with the nearest only, then with the rows that this breaks as well.
	pairs := near(p, 15+n/100)
	q := newInterior(p, pairs)
	if q.solve(1e-3) {
		q = newInterior(p, tidy(append(pairs, broken(p, q.y, q.v, 12, keepSlack)...)))
	}
	if !q.solve(1e-4) {
		return newRows(p, near(p, 6))
	}
	pairs, z := likely(q)
	r := newRows(p, append(pairs, broken(p, q.y, q.v, 12, keepSlack)...))
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
