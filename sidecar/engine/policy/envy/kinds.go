package envy

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/policy/value"
)

// Tenant is a tenant with several kinds of jobs.
type Tenant struct {
	Weight float64
	Kinds  []value.Kind
	Floor  []float64 // the least throughput of each kind; the tenant's share of every model gives all of them at once
}

// SolveKinds divides GPUs between tenants with several kinds of jobs:
//
//	max Σ speed·x   with, for all tenants i and l,   V_i(X_i) >= V_i(X_l · π_i/π_l)   and   Σ_k speed_k·x_k >= Σ_k floor_k
//
// and speed_k·x_k >= floor_k for every kind, or an equal part of that, where the tenant has to put up with it to
// make the best of its share (floors).
// X_l is what l's kinds have together, and V_i what that is worth to i at best (package value). V is no linear function, but at most
// price·X + rest for any prices of models, and as much where prices are those of X (value.Rest). So a row reads a part by the
// prices that are right for it in the equal division, in which each row holds, then at the answer, and so on: each
// answer is free of envy, and not worse than the one before it, since that breaks no row of its own. The worth of a
// tenant's own part is cut off from above by the same means, at the parts themselves.
//
// x is by tenant, kind and model. more is an upper bound of the sum over the sum of x: of a program with less envy. As in Solve,
// divisions free of envy are no convex set, and the last answer need not be the best. The error is ErrLimit or the simplex's.
func SolveKinds(gpus []float64, tenants []Tenant) (x [][][]float64, more float64, err error) {
	n := newNested(gpus, tenants)
	bound := n.bound()
	answer, sum, seen, err := n.divide(nil, nil)
	if err != nil {
		return nil, 0, err
	}
	for range readings {
		if sum >= bound*(1-proven) {
			break
		}
		again, higher, more, lost := n.divide(n.bundles(answer), seen)
		if lost != nil || higher <= sum { // then the last answer is the best
			break
		}
		done := higher <= sum*(1+hardly)
		if answer, sum, seen = again, higher, more; done {
			break
		}
	}
	return n.parts(answer), bound / sum, nil //nolint:nilerr // a reading that finds nothing leaves the last answer
}

const (
	readings = 20
	exactly  = 1e-10 // by how much of its worth a tenant may envy, and what its part is worth may be off
	mostCuts = 8     // rows that a tenant is given in a round
	hardly   = 1e-3  // a reading that raises the sum by less is the last
	less     = 10 * room
)

// view is what a tenant sees in GPUs of the equal division's parts: eye·Y + rest, in units of its share's worth.
type view struct {
	eye  []float64
	rest float64
}

// of gives what is seen in a part.
func (v *view) of(y []float64) float64 { return dot(v.eye, y) + v.rest }

// nested is the program. Its columns are the parts of kinds, in units of the tenant's share of each model, and then what each tenant's
// part is worth to it, in units of what its share is.
type nested struct {
	tenants []Tenant
	weights float64     // of all
	share   [][]float64 // of each tenant, by model
	unit    []float64   // the worth of each tenant's share
	first   []view      // of each tenant, at its share
	floor   [][]float64 // of each tenant and kind
	column  [][]int     // of each tenant and kind: its column of the first model, of len(gpus)
	bundle  int         // the column of what the first tenant's kinds have together of the first model
	worth   int         // the column of the first tenant's worth

	spent int // iterations of the simplex
}

func newNested(gpus []float64, tenants []Tenant) *nested {
	n := &nested{tenants: tenants}
	for i := range tenants {
		n.weights += tenants[i].Weight
	}
	for i := range tenants {
		t := &tenants[i]
		share := make([]float64, len(gpus))
		for j, g := range gpus {
			share[j] = g * t.Weight / n.weights
		}
		use := value.Of(t.Kinds, share)
		n.share, n.unit = append(n.share, share), append(n.unit, use.Worth)
		n.first = append(n.first, n.view(i, use.Price))
		n.floor = append(n.floor, t.floors(use))
		n.column = append(n.column, nil)
		for range t.Kinds {
			n.column[i] = append(n.column[i], n.bundle)
			n.bundle += len(gpus)
		}
	}
	n.worth = n.bundle + len(tenants)*len(gpus)
	return n
}

// floors gives the largest equal part of the floors of kinds that a tenant can keep while it uses all that the best use of its share
// has, with the sum of its floors. Without that the parts of the equal division would be worth less to it than what others have of
// theirs, where a fair division inside leaves GPUs idle that it could use otherwise.
func (t *Tenant) floors(use value.Plan) []float64 {
	out := slices.Clone(t.Floor)
	if len(t.Kinds) == 1 {
		return out
	}
	k, part := len(use.Price), 0.0
	program := lp.New().Maximise()
	defer program.Close()
	program.Set(lp.Options{PrimalTolerance: tolerance, DualTolerance: tolerance})
	scale := use.Worth
	used := make([]float64, k)
	columns := []lp.Column{{Upper: 1, Cost: 1}}
	models, rows := make([]lp.Row, k), []lp.Row(nil)
	all := lp.Row{Lower: sum(t.Floor) / scale * (1 - room), Upper: math.Inf(1)}
	for c, kind := range t.Kinds {
		floor := lp.Row{Upper: math.Inf(1), Entries: []lp.Entry{{At: 0, Value: -t.Floor[c] / scale}}}
		limit := lp.Row{Lower: math.Inf(-1), Upper: kind.Most}
		plus(used, 1, use.GPUs[c])
		for j, v := range kind.Speed {
			if v == 0 {
				continue
			}
			at := len(columns)
			columns = append(columns, lp.Column{Upper: math.Inf(1)})
			floor.Entries = append(floor.Entries, lp.Entry{At: at, Value: v / scale})
			all.Entries = append(all.Entries, lp.Entry{At: at, Value: v / scale})
			limit.Entries = append(limit.Entries, lp.Entry{At: at, Value: 1})
			models[j].Entries = append(models[j].Entries, lp.Entry{At: at, Value: 1})
		}
		if rows = append(rows, floor); !math.IsInf(kind.Most, 1) {
			rows = append(rows, limit)
		}
	}
	for j := range models {
		models[j].Lower, models[j].Upper = used[j]*(1-room), used[j]
	}
	program.AddColumns(columns...)
	program.AddRows(append(append(rows, models...), all)...)
	if program.Solve(lp.Primal) == nil {
		part = program.Values(nil)[0]
	}
	for c := range out {
		out[c] *= part
	}
	return out
}

// view gives what tenant i sees at prices.
func (n *nested) view(i int, price []float64) view {
	v := view{eye: make([]float64, len(price)), rest: value.Rest(n.tenants[i].Kinds, price) / n.unit[i]}
	for j, p := range price {
		v.eye[j] = p * n.share[i][j] / n.unit[i]
	}
	return v
}

// asking is the program with the rows that are there.
type asking struct {
	*nested
	program *lp.Program
	rows    map[pair]bool // in which a tenant sees another's part
	order   []pair        // of those
}

// ask sets up the program without what tenants see in others' parts.
func (n *nested) ask() *asking {
	a := &asking{nested: n, program: lp.New().Maximise(), rows: map[pair]bool{}}
	a.program.Set(lp.Options{PrimalTolerance: strictTolerance, DualTolerance: tolerance})
	mean := sum(n.unit) / float64(len(n.unit))
	k := len(n.share[0])
	models, bundles := slices.Repeat([]lp.Row{{Lower: math.Inf(-1), Upper: n.weights}}, k), make([]lp.Row, k*len(n.tenants))
	var rows []lp.Row
	var columns []lp.Column
	for i := range n.tenants {
		t := &n.tenants[i]
		together := lp.Row{Lower: sum(t.Floor) / n.unit[i] * (1 - less), Upper: math.Inf(1)}
		for c, kind := range t.Kinds {
			floor := lp.Row{Lower: n.floor[i][c] / n.unit[i] * (1 - less), Upper: math.Inf(1)}
			limit := lp.Row{Lower: math.Inf(-1), Upper: 1}
			for j, v := range kind.Speed {
				high, at, gpus := math.Inf(1), n.column[i][c]+j, n.share[i][j]
				if v == 0 || kind.Most == 0 {
					high = 0
				}
				columns = append(columns, lp.Column{Upper: high, Cost: v * gpus / mean})
				floor.Entries = append(floor.Entries, lp.Entry{At: at, Value: v * gpus / n.unit[i]})
				limit.Entries = append(limit.Entries, lp.Entry{At: at, Value: gpus / kind.Most})
				bundles[i*k+j].Entries = append(bundles[i*k+j].Entries, lp.Entry{At: at, Value: 1})
			}
			together.Entries = append(together.Entries, floor.Entries...)
			if floor.Lower > 0 {
				rows = append(rows, floor)
			}
			if kind.Most > 0 && !math.IsInf(kind.Most, 1) {
				rows = append(rows, limit)
			}
		}
		rows = append(rows, together)
	}
	for at := range bundles {
		columns = append(columns, lp.Column{Upper: math.Inf(1)})
		bundles[at].Entries = append(bundles[at].Entries, lp.Entry{At: n.bundle + at, Value: -1})
		models[at%k].Entries = append(models[at%k].Entries, lp.Entry{At: n.bundle + at, Value: n.tenants[at/k].Weight})
	}
	for range n.tenants {
		columns = append(columns, lp.Column{Lower: 1 - less, Upper: math.Inf(1)})
	}
	a.program.AddColumns(columns...)
	a.program.AddRows(append(append(rows, models...), bundles...)...)
	for i := range n.tenants { // a bound of its part's worth, exact in the equal division
		a.add(pair{int32(i), int32(i)}, &n.first[i])
	}
	return a
}

// add makes a row of what a tenant sees in a part: not more than what its own is worth; in its own part it sees at least that.
func (a *asking) add(e pair, v *view) {
	i, l := int(e.i), int(e.l)
	sign := 1.0
	if i == l {
		sign = -1
	}
	row := lp.Row{Lower: math.Inf(-1), Upper: -sign * v.rest, Entries: []lp.Entry{{At: a.worth + i, Value: -sign}}}
	for j, x := range v.eye {
		if x != 0 {
			row.Entries = append(row.Entries, lp.Entry{At: a.bundle + l*len(v.eye) + j, Value: sign * x})
		}
	}
	a.program.AddRows(row)
}

// sees adds the row in which a tenant sees another's part.
func (a *asking) sees(e pair, v *view) {
	a.rows[e], a.order = true, append(a.order, e)
	a.add(e, v)
}

// bundles gives what each tenant's kinds have together, in parts of its share.
func (n *nested) bundles(values []float64) [][]float64 {
	out := make([][]float64, len(n.tenants))
	for l := range out {
		out[l] = make([]float64, len(n.share[l]))
		for _, at := range n.column[l] {
			for j := range out[l] {
				out[l][j] += max(values[at+j], 0)
			}
		}
	}
	return out
}

// value gives the worth of a part to tenant i, and what it sees there.
func (n *nested) value(i int, y []float64) (float64, value.Plan) {
	gpus := make([]float64, len(y))
	for j, x := range y {
		gpus[j] = x * n.share[i][j]
	}
	p := value.Of(n.tenants[i].Kinds, gpus)
	return p.Worth / n.unit[i], p
}

// solve finds the optimum of the rows so far.
func (a *asking) solve(method lp.Method) error {
	left := budget(a.bundle) - a.spent
	if left <= 0 {
		return ErrLimit
	}
	a.program.Set(lp.Options{MaxIterations: left})
	before := a.program.Iterations()
	err := a.program.Solve(method)
	a.spent += a.program.Iterations() - before
	if errors.Is(err, lp.ErrLimit) {
		return ErrLimit
	}
	return err
}

// rounds solves until no row is broken. sees gives the view that makes the row in which i envies l's part, nil = it does not;
// own is what i's own part is worth to it. sum is the last optimum, also with an error: of fewer rows, so an upper bound.
func (a *asking) rounds(sees func(i, l int, own float64, parts [][]float64) *view) (values []float64, sum float64, err error) {
	n := a.nested
	sum = math.Inf(1)
	method := lp.Presolve
	for range maxRounds {
		if err := a.solve(method); err != nil {
			return nil, sum, err
		}
		method = lp.Dual
		again := false
		values, sum = a.program.Values(nil), a.program.Objective()
		parts := n.bundles(values)
		for i := range n.tenants {
			own, use := n.value(i, parts[i])
			if says := values[n.worth+i]; says > own*(1+exactly) {
				if v := n.view(i, use.Price); v.of(parts[i]) < says*(1-exactly/10) {
					a.add(pair{int32(i), int32(i)}, &v)
					again = true
				}
			}
			again = a.envy(i, func(l int) *view { return sees(i, l, own, parts) }, parts) > 0 || again
		}
		if !again {
			return values, sum, nil
		}
	}
	return nil, sum, errRounds
}

// envy adds the rows in which a tenant envies others the most, and gives their number.
func (a *asking) envy(i int, sees func(l int) *view, parts [][]float64) int {
	type seen struct {
		by float64
		e  pair
		v  *view
	}
	var worst []seen
	for l := range a.tenants {
		e := pair{int32(i), int32(l)}
		if l == i || a.rows[e] {
			continue
		}
		if v := sees(l); v != nil {
			worst = append(worst, seen{v.of(parts[l]), e, v})
		}
	}
	slices.SortStableFunc(worst, func(a, b seen) int { return cmp.Compare(b.by, a.by) })
	worst = worst[:min(mostCuts, len(worst))]
	for _, s := range worst {
		a.sees(s.e, s.v)
	}
	return len(worst)
}

// divide finds the best parts if rows read the parts read, nil = those of the equal division, and their sum. seen is the rows to begin
// with; more is those at the end.
func (n *nested) divide(read [][]float64, seen []pair) (values []float64, sum float64, more []pair, err error) {
	a := n.ask()
	defer a.program.Close()
	reads := func(i, l int) *view {
		if read == nil {
			return &n.first[i]
		}
		_, use := n.value(i, read[l])
		v := n.view(i, use.Price)
		return &v
	}
	for _, e := range seen {
		a.sees(e, reads(int(e.i), int(e.l)))
	}
	values, sum, err = a.rounds(func(i, l int, own float64, parts [][]float64) *view {
		if n.first[i].of(parts[l]) <= own*(1+exactly) { // it is worth that at most
			return nil
		}
		if worth, _ := n.value(i, parts[l]); worth <= own*(1+exactly) {
			return nil
		}
		return reads(i, l)
	})
	return values, sum, a.order, err
}

// bound gives an upper bound of the sum: that of a program with less envy. A tenant that divides u GPUs
// between its kinds by their demands, or by as much as these can use of them, has not more than their best use. This
// is linear in the part, where u is the most GPUs that the part can have.
func (n *nested) bound() float64 {
	total := make([]float64, len(n.tenants)) // GPUs that each can use at most
	for l := range n.tenants {
		for _, k := range n.tenants[l].Kinds {
			total[l] += k.Most
		}
		total[l] = min(total[l], sum(n.share[l])*n.weights/n.tenants[l].Weight)
	}
	a := n.ask()
	defer a.program.Close()
	_, sum, _ := a.rounds(func(i, l int, own float64, parts [][]float64) *view {
		t := &n.tenants[i]
		u := total[l] * t.Weight / n.tenants[l].Weight
		demand := 0.0
		for _, k := range t.Kinds {
			demand += min(k.Most, u)
		}
		v := view{eye: make([]float64, len(n.share[i]))}
		for _, k := range t.Kinds {
			plus(v.eye, min(k.Most, u)/max(u, demand)/n.unit[i], k.Speed)
		}
		for j := range v.eye {
			v.eye[j] *= n.share[i][j]
		}
		if v.of(parts[l]) <= own*(1+exactly) {
			return nil
		}
		return &v
	})
	return sum
}

// parts gives an answer in GPUs.
func (n *nested) parts(values []float64) [][][]float64 {
	out := make([][][]float64, len(n.tenants))
	for l := range n.tenants {
		for c := range n.tenants[l].Kinds {
			part := make([]float64, len(n.share[l]))
			for j := range part {
				part[j] = max(values[n.column[l][c]+j], 0) * n.share[l][j]
			}
			out[l] = append(out[l], part)
		}
	}
	return out
}
