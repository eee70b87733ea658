package envy

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/factor"
)

const (
	startSlack  = 0.3 // of every row; values are about 1
	refinements = 1   // of every step

	// Near the optimum the Newton system is nearly singular, and without terms beside its diagonal no factor of it is exact enough. They
	// are the proximal method of multipliers': a step is off by them times its length, so they do not change where steps end.
	proximalRows  = 1e-7
	proximalParts = 3e-9

	// A step ends before a row that is not there would be broken by more than leeway: 3e-10, or part of the mean product of a row's slack and multiplier.
	leeway     = 3e-10
	leewayPart = .01
	mostNew    = 4 // rows of a part in a step

	newSlack = .1 // of the root of that product: the least slack with which a row begins
)

// interior is a primal-dual interior point method (Mehrotra's predictor and corrector) for the
// program. It begins with some of the envy rows, and takes others when a step would break them: a
// step ends before that, so the point keeps to all rows, and few ever count.
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
	pairs []pair    // by l, then i
	from  []int     // those of l are pairs[from[l]:from[l+1]]
	eyes  []float64 // k numbers a pair: what a part counts in its row
	h     []float64 // of every row
	floor bool      // there are rows of floors
	own   []float64 // k×n: the program's Own, by model
	there []bool    // n×n: the pairs that have rows
	begin float64   // the part that is left of the distance of all rows from a slack of startSlack at the equal division

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
	d             []float64 // 1 / (s/z + proximalRows) of every row
	h             []float64 // n blocks of k×k
	back          []float64 // k×n: A⁻¹ times the border
	factor.System           // of the values, bordered by the models' rows
}

// newInterior starts at the equal division.
func newInterior(p *Program, pairs []pair) *interior {
	n, k := p.size()
	zeros := func(n int) []float64 { return make([]float64, n) }
	q := &interior{p: p, n: n, k: k, floor: p.limited(), own: zeros(k * n), there: make([]bool, n*n), begin: 1,
		miss: residual{y: zeros(n * k), v: zeros(n)},
		newton: system{h: zeros(n * k * k), back: zeros(k * n),
			System: factor.System{N: n, A: zeros(n * n), Edge: zeros(k * n), Corner: zeros(k * k)}},
	}
	for i := range n {
		for j, w := range row(p.Own, k, i) {
			q.own[j*n+i] = w
		}
	}
	q.move = point{y: zeros(n * k), zy: zeros(n * k), v: zeros(n)}
	q.point = point{y: slices.Repeat([]float64{1}, n*k), zy: zeros(n * k), v: slices.Repeat([]float64{1}, n), s: zeros(n + k), z: zeros(n + k)}
	if q.floor {
		q.s, q.z = zeros(n+k+n), zeros(n+k+n)
	}
	gain := sum(p.Gain)
	price := gain / (sum(p.Mass) * float64(k))
	for i := range q.zy {
		q.zy[i] = price
	}
	for r := range q.s {
		q.s[r], q.z[r] = startSlack, gain/float64(n)
		if r >= n && r < n+k {
			q.z[r] = price
		}
	}
	q.take(pairs, func(pair) (s, z float64) { return startSlack, gain / float64(n) })
	return q
}

// take adds rows, with the slacks and multipliers that at gives.
func (q *interior) take(more []pair, at func(pair) (s, z float64)) {
	n, k, old := q.n, q.k, q.pairs
	q.pairs = merged(old, more)
	rows := n + len(q.pairs) + len(q.s) - n - len(old)
	s, z, eyes := make([]float64, rows), make([]float64, rows), make([]float64, len(q.pairs)*k)
	q.h, q.from = make([]float64, rows), make([]int, n+1)
	copy(s, q.s[:n])
	copy(z, q.z[:n])
	was := 0
	for r, e := range q.pairs {
		q.from[e.l+1]++
		q.there[int(e.i)*n+int(e.l)] = true
		q.h[n+r] = q.p.reads(e, row(eyes, k, r))
		if was < len(old) && old[was] == e {
			s[n+r], z[n+r] = q.s[n+was], q.z[n+was]
			was++
			continue
		}
		s[n+r], z[n+r] = at(e)
	}
	for l := range n {
		q.from[l+1] += q.from[l]
	}
	rest := n + len(q.pairs) // the rows of models and floors
	copy(s[rest:], q.s[n+len(old):])
	copy(z[rest:], q.z[n+len(old):])
	for j := range k {
		q.h[rest+j] = sum(q.p.Mass)
	}
	for i := range rows - rest - k {
		q.h[rest+k+i] = -q.p.Floor[i]
	}
	q.s, q.z, q.eyes = s, z, eyes
	q.move.s, q.move.z, q.miss.rows, q.newton.d = make([]float64, rows), make([]float64, rows), make([]float64, rows), make([]float64, rows)
}

// merged gives two lists without a common pair as one; both are in tidy's order.
func merged(a, b []pair) []pair {
	all := make([]pair, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byPart(a[0], b[0]) < 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
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
	n, k, p, w := q.n, q.k, q.p, &q.newton
	for r := range w.d {
		w.d[r] = q.z[r] / (q.s[r] + proximalRows*q.z[r])
	}
	clear(w.A)
	clear(w.Edge)
	clear(w.Corner)
	for j := range k {
		w.Corner[j*k+j] = q.s[n+len(q.pairs)+j] / q.z[n+len(q.pairs)+j]
	}
	var who []int32 // the enviers of a part and its owner, in order
	var x []float64 // k rows: what they see in it times their row's d, and then a column of each model's row
	for l := range n {
		h := w.h[l*k*k : (l+1)*k*k]
		clear(h)
		for j := range k {
			h[j*k+j] = q.zy[l*k+j]/q.y[l*k+j] + proximalParts
		}
		width := (q.from[l+1] - q.from[l] + 1 + k + 3) / 4 * 4
		who, x = who[:0], append(x[:0], make([]float64, k*width)...)
		add := func(i int32, d float64, eye []float64) {
			for t, v := range eye {
				x[t*width+len(who)] = d * v
			}
			who = append(who, i)
			outer(h, d, eye)
			w.A[int(i)*n+int(i)] += d
		}
		owned := false
		for at := q.from[l]; at < q.from[l+1]; at++ {
			i := q.pairs[at].i
			if int(i) >= l && !owned {
				owned = true
				add(int32(l), w.d[l], row(p.Own, k, l))
			}
			if int(i) == l {
				outer(h, w.d[n+at], row(q.eyes, k, at))
				continue
			}
			add(i, w.d[n+at], row(q.eyes, k, at))
		}
		if !owned {
			add(int32(l), w.d[l], row(p.Own, k, l))
		}
		for j := range k {
			x[j*width+len(who)+j] = p.Mass[l]
		}
		if !factorSmall(h, k) {
			return false
		}
		factor.Eliminate(&w.System, who, h, k, x)
	}
	if q.floor {
		for i, d := range w.d[n+len(q.pairs)+k:] {
			w.A[i*n+i] += d
		}
	}
	for i := range n {
		w.A[i*n+i] *= 1 + 1e-13
	}
	if !factor.Cholesky(w.A, n) {
		return false
	}
	copy(w.back, w.Edge)
	factor.Solve(w.A, n, w.back)
	for j := range k {
		for j2 := range j + 1 {
			w.Corner[j*k+j2] += dot(w.Edge[j*n:(j+1)*n], w.back[j2*n:(j2+1)*n])
		}
	}
	return factorSmall(w.Corner, k)
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
	factor.Solve(q.newton.A, n, v)
	for j := range k {
		right[j] += dot(q.newton.Edge[j*n:(j+1)*n], v) - c[j]
	}
	forward(q.newton.Corner, k, right)
	backward(q.newton.Corner, k, right)
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
	// The right sides once the multipliers are eliminated, the models' excepted.
	g := make([]float64, len(q.s))
	for r, d := range q.newton.d {
		g[r] = d * (target[r]/q.z[r] - q.s[r] - q.miss.rows[r])
	}
	clear(g[models:][:k])
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
		for r, d := range q.newton.d {
			if r < models || r >= models+k {
				moved[r] *= d
			}
		}
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
	for r, moved := range q.move.s {
		q.move.s[r] = q.miss.rows[r] - moved
		if r < models || r >= models+k {
			q.move.z[r] = g[r] + q.newton.d[r]*moved
			q.move.s[r] += proximalRows * q.move.z[r]
		}
	}
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

// solve goes on until gap and infeasibility are below tolerance, relatively, and no row is broken by more
// than leeway. It gives false where it does not get there.
func (q *interior) solve(tolerance float64) bool {
	const most = 100
	for range most {
		worst, gap, value := q.residuals()
		if gap <= tolerance*math.Abs(value) && worst <= 4*tolerance && q.bound() <= value*(1+2*tolerance) {
			return true
		}
		if !q.factor() {
			return false
		}
		target, targetY := make([]float64, len(q.s)), make([]float64, len(q.y))
		q.step(target, targetY)
		primal, dual := q.reach(1)
		ahead := 0.0
		for r := range q.s {
			ahead += (q.s[r] + primal*q.move.s[r]) * (q.z[r] + dual*q.move.z[r])
		}
		for i := range q.y {
			ahead += (q.y[i] + primal*q.move.y[i]) * (q.zy[i] + dual*q.move.zy[i])
		}
		ratio, mean := ahead/gap, gap/float64(len(q.s)+len(q.y))
		mu := ratio * ratio * ratio * mean
		for r := range target {
			target[r] = mu - q.move.s[r]*q.move.z[r]
		}
		for i := range targetY {
			targetY[i] = mu - q.move.y[i]*q.move.zy[i]
		}
		q.step(target, targetY)
		primal, dual = q.reach(1 / .995)
		primal, dual = min(1, .995*primal), min(1, .995*dual)
		primal, more := q.block(primal, max(leeway, leewayPart*mean))
		q.begin *= 1 - primal
		plus(q.y, primal, q.move.y)
		plus(q.v, primal, q.move.v)
		plus(q.s, primal, q.move.s)
		plus(q.z, dual, q.move.z)
		plus(q.zy, dual, q.move.zy)
		if len(more) > 0 {
			q.take(more, func(e pair) (s, z float64) {
				eye := make([]float64, q.k)
				s = q.p.reads(e, eye) + q.v[e.i] - dot(eye, row(q.y, q.k, int(e.l))) + startSlack*q.begin
				s = max(s, newSlack*math.Sqrt(mean))
				return s, mean / s
			})
		}
	}
	return false
}

// reach gives how far the step can go, at most, with slacks, parts and multipliers positive.
func (q *interior) reach(most float64) (primal, dual float64) {
	return reach(reach(most, q.s, q.move.s), q.y, q.move.y), reach(reach(most, q.z, q.move.z), q.zy, q.move.zy)
}

// block gives how far the step can go, at most primal, before it breaks rows that are not there by more than leeway, and of
// each part those that it would break most, in tidy's order.
func (q *interior) block(primal, leeway float64) (step float64, more []pair) {
	type broken struct {
		by float64
		i  int32
	}
	var worst []broken
	step = primal
	slack, moves := make([]float64, q.n), make([]float64, q.n)
	for l := range q.n {
		worst = worst[:0]
		q.slacks(l, slack, moves)
		for i, s := range slack {
			by := -s - primal*moves[i]
			if by <= leeway || i == l || q.there[i*q.n+l] {
				continue
			}
			worst = append(worst, broken{by, int32(i)})
			step = min(step, .9*max(s+leeway, 0)/-moves[i])
		}
		slices.SortFunc(worst, func(a, b broken) int { return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.i, b.i)) })
		worst = worst[:min(mostNew, len(worst))]
		slices.SortFunc(worst, func(a, b broken) int { return cmp.Compare(a.i, b.i) })
		for _, w := range worst {
			more = append(more, pair{w.i, int32(l)})
		}
	}
	return step, more
}

// slacks sets the slacks of all rows that see l's part, also of those that are not there, and how the step moves them.
func (q *interior) slacks(l int, slack, moves []float64) {
	y, dy := row(q.y, q.k, l), row(q.move.y, q.k, l)
	if q.floor {
		eye := make([]float64, q.k)
		for i := range slack {
			right := q.p.reads(pair{int32(i), int32(l)}, eye)
			slack[i], moves[i] = dot(eye, y)-right, dot(eye, dy)
		}
	} else {
		factor.Combine(slack, q.own, y)
		factor.Combine(moves, q.own, dy)
	}
	begin := startSlack * q.begin
	for i := range slack {
		slack[i] = q.v[i] - slack[i] + begin
		moves[i] = q.move.v[i] - moves[i] - begin
	}
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
	for a, x := range w {
		f, line := d*x, h[a*k:a*k+a+1]
		for b := range line {
			line[b] += f * w[b]
		}
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

// dot gives a·b, of equal lengths.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// plus adds f times b to a.
func plus(a []float64, f float64, b []float64) {
	b = b[:len(a)]
	for i := range a {
		a[i] += f * b[i]
	}
}
