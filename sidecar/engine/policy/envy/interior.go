package envy

import "math"

const (
	startSlack  = 0.3 // of every row; values are about 1
	refinements = 1   // of every step
)

// interior is a primal-dual interior point method (Mehrotra's predictor and corrector) for the
// program with some of its envy rows: a start for the simplex.
//
// Rows are G·(y, v) + s = h with multipliers z: first n own rows v_i - Own_i·y_i <= 0, then
// the pairs Own_i·y_l - v_i <= 0 and, as pair (i, i), the caps Unit·y_i / Cap_i <= 1; then k models
// Σ Mass_l·y_lj <= mass. Where GPUs are limited, n floors -v_i <= -Floor_i follow: elsewhere they
// hold by themselves (OEF Theorem 5.1).
//
// A Newton step has a k×k block for each tenant's part, so the parts are eliminated one by one.
// The rest is dense in the n values and bordered by the k models' rows.
type interior struct {
	p     *Program
	n, k  int
	mass  float64   // of all
	pairs []pair    // by l, then i
	from  []int     // those of l are pairs[from[l]:from[l+1]]
	eyes  []float64 // k numbers a pair: what a part counts in its row
	h     []float64 // of every row
	floor bool      // there are rows of floors

	point
	move point // the Newton step from there

	miss   residual
	newton system
}

// point is where the method stands, or how far it moves.
type point struct {
	y, zy []float64 // n×k parts, and the multipliers of y >= 0
	v     []float64 // values
	s, z  []float64 // slack and multiplier of every row
}

// residual is what a point is off.
type residual struct {
	rows []float64 // h - G·(y, v) - s
	y, v []float64 // of stationarity
}

// system is the factors of the Newton system at a point.
type system struct {
	d          []float64 // z/s of every row
	h          []float64 // n blocks of k×k
	schur      *cholesky
	edge, back []float64 // k×n: the border, and schur⁻¹ times it
	corner     []float64 // k×k: of the models' own Schur complement
}

// newInterior starts at the equal division.
func newInterior(p *Program, pairs []pair) *interior {
	n, k := p.size()
	rows := n + len(pairs) + k
	if p.limited() {
		rows += n
	}
	zeros := func(n int) []float64 { return make([]float64, n) }
	newPoint := func() point {
		return point{y: zeros(n * k), zy: zeros(n * k), v: zeros(n), s: zeros(rows), z: zeros(rows)}
	}
	q := &interior{p: p, n: n, k: k, mass: sum(p.Mass), pairs: pairs, from: make([]int, n+1),
		eyes: zeros(len(pairs) * k), h: zeros(rows), floor: p.limited(),
		point: newPoint(), move: newPoint(),
		miss: residual{rows: zeros(rows), y: zeros(n * k), v: zeros(n)},
		newton: system{d: zeros(rows), h: zeros(n * k * k), schur: newCholesky(n),
			edge: zeros(n * k), back: zeros(n * k), corner: zeros(k * k)},
	}
	for at, e := range pairs {
		q.from[e.l+1]++
		q.h[n+at] = p.reads(e, row(q.eyes, k, at))
	}
	for j := range k {
		q.h[n+len(pairs)+j] = q.mass
	}
	for i := range rows - n - len(pairs) - k {
		q.h[n+len(pairs)+k+i] = -p.Floor[i]
	}
	for l := range n {
		q.from[l+1] += q.from[l]
	}
	gain := sum(p.Gain)
	for i := range q.y {
		q.y[i], q.zy[i] = 1, gain/(q.mass*float64(k))
	}
	for i := range q.v {
		q.v[i] = 1
	}
	for r := range q.s {
		q.s[r], q.z[r] = startSlack, gain/float64(n)
		if r >= n+len(pairs) && r < n+len(pairs)+k {
			q.z[r] = gain / (q.mass * float64(k))
		}
	}
	return q
}

// times sets out to G·(y, v).
func (q *interior) times(y, v, out []float64) {
	n, k, p := q.n, q.k, q.p
	models := out[n+len(q.pairs):][:k]
	clear(models)
	for l := range n {
		part := row(y, k, l)
		out[l] = v[l] - dot(row(p.Own, k, l), part)
		plus(models, p.Mass[l], part)
		for at := q.from[l]; at < q.from[l+1]; at++ {
			out[n+at] = dot(row(q.eyes, k, at), part)
			if i := int(q.pairs[at].i); i != l {
				out[n+at] -= v[i]
			}
		}
	}
	if q.floor {
		floors := out[n+len(q.pairs)+k:]
		for i := range floors {
			floors[i] = -v[i]
		}
	}
}

// transposed adds f·Gᵀ·z to y and v.
func (q *interior) transposed(f float64, z, y, v []float64) {
	n, k, p := q.n, q.k, q.p
	models := z[n+len(q.pairs):][:k]
	for l := range n {
		part := row(y, k, l)
		plus(part, -f*z[l], row(p.Own, k, l))
		v[l] += f * z[l]
		plus(part, f*p.Mass[l], models)
		for at := q.from[l]; at < q.from[l+1]; at++ {
			plus(part, f*z[n+at], row(q.eyes, k, at))
			if i := int(q.pairs[at].i); i != l {
				v[i] -= f * z[n+at]
			}
		}
	}
	if q.floor {
		plus(v, -f, z[n+len(q.pairs)+k:])
	}
}

// residuals sets what the point is off, and gives the largest of a row, the gap and the
// objective.
func (q *interior) residuals() (worst, gap, value float64) {
	q.times(q.y, q.v, q.miss.rows)
	for r := range q.miss.rows {
		q.miss.rows[r] = q.h[r] - q.miss.rows[r] - q.s[r]
		worst = max(worst, math.Abs(q.miss.rows[r]))
		gap += q.s[r] * q.z[r]
	}
	copy(q.miss.y, q.zy)
	copy(q.miss.v, q.p.Gain)
	q.transposed(-1, q.z, q.miss.y, q.miss.v)
	for i := range q.y {
		gap += q.y[i] * q.zy[i]
	}
	for i, g := range q.p.Gain {
		value += g * q.v[i]
	}
	return worst, gap, value
}

// factor prepares steps from the point. It gives false where the numbers do not allow it.
func (q *interior) factor() bool {
	n, k, p := q.n, q.k, q.p
	for r := range q.newton.d {
		q.newton.d[r] = q.z[r] / q.s[r]
	}
	clear(q.newton.schur.a)
	clear(q.newton.edge)
	clear(q.newton.corner)
	for j := range k {
		q.newton.corner[j*k+j] = 1 / q.newton.d[n+len(q.pairs)+j]
	}
	var who []int      // the enviers of a part and its owner, in order
	var seen []float64 // their values of it times their row's d, forward solved
	unit := make([]float64, k)
	for l := range n {
		h := q.newton.h[l*k*k : (l+1)*k*k]
		clear(h)
		for j := range k {
			h[j*k+j] = q.zy[l*k+j] / q.y[l*k+j]
		}
		who, seen = who[:0], seen[:0]
		add := func(i int, d float64, w []float64) {
			who = append(who, i)
			for _, x := range w {
				seen = append(seen, d*x)
			}
			outer(h, d, w)
			q.newton.schur.a[i*n+i] += d
		}
		owned := false
		for at := q.from[l]; at < q.from[l+1]; at++ {
			i := int(q.pairs[at].i)
			if i >= l && !owned {
				owned = true
				add(l, q.newton.d[l], row(p.Own, k, l))
			}
			if i == l {
				outer(h, q.newton.d[n+at], row(q.eyes, k, at))
				continue
			}
			add(i, q.newton.d[n+at], row(q.eyes, k, at))
		}
		if !owned {
			add(l, q.newton.d[l], row(p.Own, k, l))
		}
		if !factorSmall(h, k) {
			return false
		}
		for a := range who {
			forward(h, k, row(seen, k, a))
		}
		q.spread(who, seen)
		for j := range k {
			clear(unit)
			unit[j] = p.Mass[l]
			forward(h, k, unit)
			for a, i := range who {
				q.newton.edge[j*n+i] += dot(unit, row(seen, k, a))
			}
			backward(h, k, unit)
			for j2 := range k {
				q.newton.corner[j*k+j2] += p.Mass[l] * unit[j2]
			}
		}
	}
	if q.floor {
		for i, d := range q.newton.d[n+len(q.pairs)+k:] {
			q.newton.schur.a[i*n+i] += d
		}
	}
	if !q.newton.schur.factor(1e-13) {
		return false
	}
	copy(q.newton.back, q.newton.edge)
	for j := range k {
		q.newton.schur.solve(q.newton.back[j*n : (j+1)*n])
	}
	for j := range k {
		for j2 := range k {
			q.newton.corner[j*k+j2] += dot(q.newton.edge[j*n:(j+1)*n], q.newton.back[j2*n:(j2+1)*n])
		}
	}
	return factorSmall(q.newton.corner, k)
}

// spread subtracts the products of all rows of seen from the lines of their enviers, two by two,
// so that two rows are read for four products. Its results above the diagonal are meaningless.
func (q *interior) spread(who []int, seen []float64) {
	n, k := q.n, q.k
	for a := 0; a < len(who); a += 2 {
		a1 := min(a+1, len(who)-1) // the last by itself, twice
		x0, x1 := row(seen, k, a), row(seen, k, a1)
		line0, line1 := q.newton.schur.a[who[a]*n:][:n], q.newton.schur.a[who[a1]*n:][:n]
		for b := 0; b <= a; b += 2 {
			b1 := min(b+1, len(who)-1)
			y0, y1 := row(seen, k, b)[:len(x0)], row(seen, k, b1)[:len(x0)]
			x1 := x1[:len(x0)]
			var s00, s01, s10, s11 float64
			for t, v := range x0 {
				w, c, d := x1[t], y0[t], y1[t]
				s00 += v * c
				s01 += v * d
				s10 += w * c
				s11 += w * d
			}
			i, i1 := who[b], who[b1]
			line0[i] -= s00
			if b1 > b {
				line0[i1] -= s01
			}
			if a1 > a {
				line1[i] -= s10
				if b1 > b {
					line1[i1] -= s11
				}
			}
		}
	}
}

// reduced solves the Newton system for the right sides y, v and c, which it replaces by the steps
// of y, v and of the models' multipliers.
func (q *interior) reduced(y, v, c []float64) {
	n, k, p := q.n, q.k, q.p
	part := make([]float64, k)
	right := make([]float64, k)
	for l := range n {
		copy(part, row(y, k, l))
		h := q.newton.h[l*k*k : (l+1)*k*k]
		forward(h, k, part)
		backward(h, k, part)
		v[l] += q.newton.d[l] * dot(row(p.Own, k, l), part)
		for at := q.from[l]; at < q.from[l+1]; at++ {
			if i := int(q.pairs[at].i); i != l {
				v[i] += q.newton.d[n+at] * dot(row(q.eyes, k, at), part)
			}
		}
		plus(right, p.Mass[l], part)
	}
	q.newton.schur.solve(v)
	for j := range k {
		right[j] += dot(q.newton.edge[j*n:(j+1)*n], v) - c[j]
	}
	forward(q.newton.corner, k, right)
	backward(q.newton.corner, k, right)
	copy(c, right)
	for j := range k {
		plus(v, -c[j], q.newton.back[j*n:(j+1)*n])
	}
	for l := range n {
		part := row(y, k, l)
		plus(part, q.newton.d[l]*v[l], row(p.Own, k, l))
		for at := q.from[l]; at < q.from[l+1]; at++ {
			if i := int(q.pairs[at].i); i != l {
				plus(part, q.newton.d[n+at]*v[i], row(q.eyes, k, at))
			}
		}
		plus(part, -p.Mass[l], c)
		h := q.newton.h[l*k*k : (l+1)*k*k]
		forward(h, k, part)
		backward(h, k, part)
	}
}

// step finds the Newton step to s·z = target and y·zy = targetY.
func (q *interior) step(target, targetY []float64) {
	n, k := q.n, q.k
	models := n + len(q.pairs) // their rows begin there
	others := func(f func(r int)) {
		for r := range q.s {
			if r < models || r >= models+k {
				f(r)
			}
		}
	}
	// The right sides once the multipliers are eliminated, the models' excepted.
	g := make([]float64, len(q.s))
	others(func(r int) { g[r] = (target[r] - q.s[r]*q.z[r] - q.z[r]*q.miss.rows[r]) / q.s[r] })
	rightY, rightV, rightC := make([]float64, n*k), make([]float64, n), make([]float64, k)
	copy(rightY, q.miss.y)
	copy(rightV, q.miss.v)
	q.transposed(-1, g, rightY, rightV)
	for i := range rightY {
		rightY[i] += targetY[i]/q.y[i] - q.zy[i]
	}
	for j := range k {
		r := models + j
		rightC[j] = q.miss.rows[r] - (target[r]/q.z[r] - q.s[r])
	}
	clear(q.move.y)
	clear(q.move.v)
	dc := q.move.z[models:][:k]
	clear(dc)
	y, v, c := make([]float64, n*k), make([]float64, n), make([]float64, k)
	moved := make([]float64, len(q.s))
	for range 1 + refinements {
		// The residual of the step, in the eliminated system.
		q.times(q.move.y, q.move.v, moved)
		for j := range k {
			r := models + j
			c[j] = rightC[j] - moved[r] + q.s[r]/q.z[r]*dc[j]
			moved[r] = dc[j]
		}
		others(func(r int) { moved[r] *= q.newton.d[r] })
		copy(y, rightY)
		copy(v, rightV)
		q.transposed(-1, moved, y, v)
		for i := range y {
			y[i] -= q.zy[i] / q.y[i] * q.move.y[i]
		}
		q.reduced(y, v, c)
		plus(q.move.y, 1, y)
		plus(q.move.v, 1, v)
		plus(dc, 1, c)
	}
	q.times(q.move.y, q.move.v, q.move.s)
	for r := range q.move.s {
		q.move.s[r] = q.miss.rows[r] - q.move.s[r]
	}
	others(func(r int) { q.move.z[r] = (target[r] - q.s[r]*q.z[r] - q.z[r]*q.move.s[r]) / q.s[r] })
	for i := range q.move.zy {
		q.move.zy[i] = (targetY[i] - q.y[i]*q.zy[i] - q.zy[i]*q.move.y[i]) / q.y[i]
	}
}

// reach gives how far a goes along da, 1 at most, and stays positive.
func reach(most float64, a, da []float64) float64 {
	for i, d := range da {
		if d < 0 {
			most = min(most, -a[i]/d)
		}
	}
	return most
}

// solve goes on until gap and infeasibility are below tolerance, relatively. It gives
// false where it does not get there.
func (q *interior) solve(tolerance float64) bool {
	const most = 60
	target, targetY := make([]float64, len(q.s)), make([]float64, len(q.y))
	for range most {
		worst, gap, value := q.residuals()
		if gap <= tolerance*math.Abs(value) && worst <= tolerance {
			return true
		}
		if !q.factor() {
			return false
		}
		clear(target)
		clear(targetY)
		q.step(target, targetY)
		primal := reach(reach(1, q.s, q.move.s), q.y, q.move.y)
		dual := reach(reach(1, q.z, q.move.z), q.zy, q.move.zy)
		ahead := 0.0
		for r := range q.s {
			ahead += (q.s[r] + primal*q.move.s[r]) * (q.z[r] + dual*q.move.z[r])
		}
		for i := range q.y {
			ahead += (q.y[i] + primal*q.move.y[i]) * (q.zy[i] + dual*q.move.zy[i])
		}
		ratio := ahead / gap
		mu := ratio * ratio * ratio * gap / float64(len(q.s)+len(q.y))
		for r := range target {
			target[r] = mu - q.move.s[r]*q.move.z[r]
		}
		for i := range targetY {
			targetY[i] = mu - q.move.y[i]*q.move.zy[i]
		}
		q.step(target, targetY)
		primal = min(1, .995*reach(reach(1/.995, q.s, q.move.s), q.y, q.move.y))
		dual = min(1, .995*reach(reach(1/.995, q.z, q.move.z), q.zy, q.move.zy))
		plus(q.y, primal, q.move.y)
		plus(q.v, primal, q.move.v)
		plus(q.s, primal, q.move.s)
		plus(q.z, dual, q.move.z)
		plus(q.zy, dual, q.move.zy)
	}
	return false
}

func sum(a []float64) float64 {
	s := 0.0
	for _, x := range a {
		s += x
	}
	return s
}

// outer adds d·w·wᵀ to the lower triangle of h.
func outer(h []float64, d float64, w []float64) {
	k := len(w)
	for a := range k {
		plus(h[a*k:a*k+a+1], d*w[a], w[:a+1])
	}
}

// factorSmall replaces the lower triangle of a k×k matrix by its Cholesky factor.
func factorSmall(h []float64, k int) bool {
	for j := range k {
		row := h[j*k : j*k+j]
		pivot := h[j*k+j] - dot(row, row)
		if !(pivot > 0) || math.IsInf(pivot, 1) {
			return false
		}
		pivot = math.Sqrt(pivot)
		h[j*k+j] = pivot
		for i := j + 1; i < k; i++ {
			h[i*k+j] = (h[i*k+j] - dot(h[i*k:i*k+j], row)) / pivot
		}
	}
	return true
}

// forward replaces b by L⁻¹·b.
func forward(l []float64, k int, b []float64) {
	for i := range k {
		b[i] = (b[i] - dot(l[i*k:i*k+i], b[:i])) / l[i*k+i]
	}
}

// backward replaces b by L⁻ᵀ·b.
func backward(l []float64, k int, b []float64) {
	for i := k - 1; i >= 0; i-- {
		b[i] /= l[i*k+i]
		plus(b[:i], -b[i], l[i*k:i*k+i])
	}
}
