package envy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// ErrLimit tells that a program is not solved within its iterations.
var ErrLimit = errors.New("envy: the limit of iterations is reached")

var errRounds = errors.New("envy: the rows that bind are not found")

const (
	within    = 2e-10 // how far a row may be broken; a value is about 1
	maxRounds = 500
	perRound  = 4 // rows that a tenant is given in a round

	usualPatience = 2 // for how many rounds a row that does not bind stays

	// Where tastes are all but alike the simplex does not get below 1e-9 for noise, and goes round
	// there; an answer that is not exact enough is taken on to strictTolerance.
	tolerance       = 1e-9
	strictTolerance = 1e-10

	// Floors, caps and what limited tenants see in any part may leave one point, which rounding
	// puts out of a program: where models are nearly alike, by 1e-16 over their difference. So
	// where GPUs are limited floors and bases are lower by room.
	room = 1e-10

	// Thresholds for a basis from the interior point, 1e-4 from the optimum: a part above
	// crashPart of the largest is basic, a row with a multiplier above crashRow binds, and one
	// with a slack below keepSlack may bind.
	crashPart  = 3e-3
	crashRow   = 1e-2
	keepSlack  = 1e-4
	mostLikely = 10 // rows of a tenant that may bind, and of a part
)

// rows is a linear program with some of the program's envy rows and caps. Its columns are the
// parts, tenant by tenant, and then the values; its rows begin with what each tenant's
// own part is worth and with the models.
type rows struct {
	p     *Program
	n, k  int
	lp    *lp.Program
	pairs []pair        // of the rows behind the first n+k
	idle  []int         // for how many rounds each did not bind
	gone  map[pair]bool // rows that were dropped once; they are dropped no more

	tolerance float64 // of the simplex
	patience  int     // for how many rounds a row of the first ones that does not bind stays
}

func newRows(p *Program, pairs []pair) *rows {
	n, k := p.size()
	r := &rows{p: p, n: n, k: k, lp: lp.New().Maximise(), gone: map[pair]bool{}, patience: usualPatience}
	r.lp.Set(lp.Options{DualBound: 1e3})
	r.tolerate(tolerance)
	var columns []lp.Column
	for range n * k {
		columns = append(columns, lp.Column{Upper: math.Inf(1)})
	}
	less := 0.0
	if p.limited() {
		less = room
	}
	for i := range n {
		columns = append(columns, lp.Column{Lower: p.Floor[i] * (1 - less), Upper: math.Inf(1), Cost: p.Gain[i]})
	}
	r.lp.AddColumns(columns...)
	var first []lp.Row
	for i := range n {
		first = append(first, lp.Row{Upper: math.Inf(1), Entries: append(r.entries(row(p.Own, k, i), i), lp.Entry{At: n*k + i, Value: -1})})
	}
	for j := range k {
		capacity := lp.Row{Lower: math.Inf(-1), Upper: sum(p.Mass)}
		for l, mass := range p.Mass {
			capacity.Entries = append(capacity.Entries, lp.Entry{At: l*k + j, Value: mass})
		}
		first = append(first, capacity)
	}
	r.lp.AddRows(first...)
	r.add(pairs)
	if p.limited() {
		r.tolerate(strictTolerance) // errors of caps, floors and models add up in the repair of the answer
	}
	return r
}

// entries gives f · y_l.
func (r *rows) entries(f []float64, l int) []lp.Entry {
	var e []lp.Entry
	for j, x := range f {
		e = append(e, lp.Entry{At: l*r.k + j, Value: x})
	}
	return e
}

func (r *rows) add(pairs []pair) {
	var more []lp.Row
	for _, e := range pairs {
		i, l := int(e.i), int(e.l)
		eye := make([]float64, r.k)
		more = append(more, lp.Row{Lower: math.Inf(-1), Upper: r.p.reads(e, eye), Entries: r.entries(eye, l)})
		if last := &more[len(more)-1]; i != l {
			last.Entries = append(last.Entries, lp.Entry{At: r.n*r.k + i, Value: -1})
		}
	}
	r.lp.AddRows(more...)
	r.pairs = append(r.pairs, pairs...)
	r.idle = append(r.idle, make([]int, len(pairs))...)
}

// drop deletes the rows that have not bound for as many rounds as patience says.
func (r *rows) drop(patience int) {
	var drop []int
	kept, basis := 0, r.lp.Basis()
	for at, e := range r.pairs {
		r.idle[at]++
		if basis.Row(r.n+r.k+at) != lp.Basic {
			r.idle[at] = 0
		}
		if r.idle[at] >= patience && !r.gone[e] {
			r.gone[e] = true
			drop = append(drop, r.n+r.k+at)
			continue
		}
		r.pairs[kept], r.idle[kept] = e, r.idle[at]
		kept++
	}
	r.lp.DeleteRows(drop...)
	r.pairs, r.idle = r.pairs[:kept], r.idle[:kept]
}

// tolerate sets how far the simplex may be off.
func (r *rows) tolerate(tolerance float64) {
	r.tolerance = tolerance
	r.lp.Set(lp.Options{PrimalTolerance: tolerance, DualTolerance: tolerance})
}

// without gives the pairs whose rows are not there.
func (r *rows) without(pairs []pair) []pair {
	there := make(map[pair]bool, len(r.pairs))
	for _, e := range r.pairs {
		there[e] = true
	}
	return slices.DeleteFunc(pairs, func(e pair) bool { return there[e] })
}

// solve adds rows that the answer breaks until there is none, and checks the answer. One that is not proven to be the best is as good
// as its bound says.
func (r *rows) solve() (y []float64, err error) {
	patience := r.patience
	for range maxRounds {
		// Dual takes what its box or its tolerance cuts off for infeasible; so may Primal from its
		// basis, and Presolve begins anew.
		for _, method := range []lp.Method{lp.Dual, lp.Primal, lp.Presolve} {
			if err = r.run(method); err == nil || r.p.left() <= 0 {
				break
			}
		}
		if err != nil && r.p.left() <= 0 {
			if err = ErrLimit; !r.p.limited() {
				err = fmt.Errorf("%w; everybody's share gives at least %.1f %% of the largest sum", err, 100*sum(r.p.Gain)/r.bound())
			}
		}
		if err != nil {
			return nil, err
		}
		x := r.lp.Values(nil)
		y, v := x[:r.n*r.k], x[r.n*r.k:]
		more := broken(r.p, y, v, perRound, within)
		if more = r.without(more); len(more) == 0 {
			err := r.check(y)
			if r.tolerance == strictTolerance && errors.Is(err, errGap) {
				err = nil
			}
			if err == nil || r.tolerance == strictTolerance {
				return y, err
			}
			r.tolerate(strictTolerance)
			continue
		}
		r.drop(patience)
		patience = usualPatience
		r.add(more)
	}
	return nil, errRounds
}

// run solves the rows within what is left of the program's iterations.
func (r *rows) run(method lp.Method) error {
	if r.p.left() <= 0 {
		return ErrLimit
	}
	r.lp.Set(lp.Options{MaxIterations: r.p.left()})
	before := r.lp.Iterations()
	err := r.lp.Solve(method)
	r.p.spent += r.lp.Iterations() - before
	return err
}

// crash gives the simplex the basis that the interior point suggests.
func (r *rows) crash(q *interior, z []float64) {
	r.tolerate(strictTolerance) // it stays near a basis that is nearly right
	r.patience = 1              // rows idle at its first optimum were only likely
	most, basis := 0.0, r.lp.Basis()
	for _, x := range q.y {
		most = max(most, x)
	}
	for i, x := range q.y {
		if x > crashPart*most {
			basis.SetColumn(i, lp.Basic)
		}
	}
	for i := range r.n {
		basis.SetColumn(r.n*r.k+i, lp.Basic)
		basis.SetRow(i, lp.AtLower)
	}
	for j := range r.k {
		basis.SetRow(r.n+j, lp.AtUpper)
	}
	for at := range z {
		if z[at] > crashRow {
			basis.SetRow(r.n+r.k+at, lp.AtUpper)
		}
	}
}

// likely gives the rows that seem to bind at the interior point, with their multipliers: of each
// tenant and of each part those with the largest. Where many parts are equal so are their rows,
// and the point spreads over all of them what a basis has on few.
func likely(q *interior) (pairs []pair, z []float64) {
	rowsOf := make([][]int, 2*q.n) // by tenant, then by part
	for at, e := range q.pairs {
		if q.z[q.n+at] > crashRow || q.s[q.n+at] < keepSlack {
			rowsOf[e.i] = append(rowsOf[e.i], at)
			rowsOf[q.n+int(e.l)] = append(rowsOf[q.n+int(e.l)], at)
		}
	}
	keep := make([]bool, len(q.pairs))
	for _, of := range rowsOf {
		slices.SortStableFunc(of, func(a, b int) int { return cmp.Compare(q.z[q.n+b], q.z[q.n+a]) })
		for _, at := range of[:min(mostLikely, len(of))] {
			keep[at] = true
		}
	}
	for at, e := range q.pairs {
		if keep[at] {
			pairs, z = append(pairs, e), append(z, q.z[q.n+at])
		}
	}
	return pairs, z
}
