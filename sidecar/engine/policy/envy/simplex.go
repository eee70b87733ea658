package envy

import (
	"errors"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

var errRounds = errors.New("envy: the rows that bind are not found")

const (
	within    = 2e-10 // how far a row may be broken; a value is about 1
	maxRounds = 500
	perRound  = 4 // rows that a tenant is given in a round

	// What the interior point, 1e-4 from the optimum, says of the basis: a part above
	// crashPart of the largest is basic, a row with a multiplier above crashRow binds, and
	// one with a slack below keepSlack may.
	crashPart = 3e-3
	crashRow  = 1e-2
	keepSlack = 1e-4
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
}

func newRows(p *Program, pairs []pair) *rows {
	n, k := p.size()
	r := &rows{p: p, n: n, k: k, lp: lp.New(), gone: map[pair]bool{}}
	r.lp.Maximise()
	r.lp.Set(lp.Options{PrimalTolerance: 1e-10, DualTolerance: 1e-9, DualBound: 1e3})
	var columns []lp.Column
	for range n * k {
		columns = append(columns, lp.Column{Upper: math.Inf(1)})
	}
	for i := range n {
		columns = append(columns, lp.Column{Lower: p.Floor[i], Upper: math.Inf(1), Cost: p.Gain[i]})
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
		if i == l {
			more = append(more, lp.Row{Lower: math.Inf(-1), Upper: r.p.Cap[i], Entries: r.entries(r.p.Unit, i)})
			continue
		}
		eye, base := slices.Clone(row(r.p.Own, r.k, i)), 0.0
		if r.p.marginal != nil && r.p.marginal[i*r.n+l] > 0 {
			mu := r.p.marginal[i*r.n+l]
			base = mu * r.p.Cap[i]
			for j := range eye {
				eye[j] = max(eye[j]-mu*r.p.Unit[j], 0)
			}
		}
		more = append(more, lp.Row{
			Lower: math.Inf(-1), Upper: -base,
			Entries: append(r.entries(eye, l), lp.Entry{At: r.n*r.k + i, Value: -1}),
		})
	}
	r.lp.AddRows(more...)
	r.pairs = append(r.pairs, pairs...)
	r.idle = append(r.idle, make([]int, len(pairs))...)
}

// drop deletes the rows that have not bound for some rounds.
func (r *rows) drop() {
	const patience = 2
	var drop []int
	kept := 0
	for at, e := range r.pairs {
		r.idle[at]++
		if r.lp.RowStatus(r.n+r.k+at) != lp.Basic {
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

// solve adds rows that the answer breaks until there is none.
func (r *rows) solve() (y []float64, err error) {
	for range maxRounds {
		// Dual takes what its box or its tolerance cuts off for infeasible; so does Primal from its
		// basis where there is but one point, as floors and caps may leave.
		for _, method := range []lp.Method{lp.Dual, lp.Primal, lp.Presolve} {
			if err = r.lp.Solve(method); err == nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		x := r.lp.Values(nil)
		y, v := x[:r.n*r.k], x[r.n*r.k:]
		more := broken(r.p, y, v, perRound, within)
		if len(more) == 0 {
			return y, nil
		}
		r.drop()
		r.add(more)
	}
	return nil, errRounds
}

// crash gives the simplex the basis that the interior point suggests.
func (r *rows) crash(q *interior, z []float64) {
	most := 0.0
	for _, x := range q.y {
		most = max(most, x)
	}
	for i, x := range q.y {
		if x > crashPart*most {
			r.lp.SetColumnStatus(i, lp.Basic)
		}
	}
	for i := range r.n {
		r.lp.SetColumnStatus(r.n*r.k+i, lp.Basic)
		r.lp.SetRowStatus(i, lp.AtLower)
	}
	for j := range r.k {
		r.lp.SetRowStatus(r.n+j, lp.AtUpper)
	}
	for at := range z {
		if z[at] > crashRow {
			r.lp.SetRowStatus(r.n+r.k+at, lp.AtUpper)
		}
	}
}

// likely gives the rows that seem to bind at the interior point, with their multipliers.
func likely(q *interior) (pairs []pair, z []float64) {
	for at, e := range q.pairs {
		if q.z[q.n+at] > crashRow || q.s[q.n+at] < keepSlack {
			pairs, z = append(pairs, e), append(z, q.z[q.n+at])
		}
	}
	return pairs, z
}
