//go:build cgo

package lp

/*
#cgo LDFLAGS: -lClp
#include <coin/Clp_C_Interface.h>

// The type of the last argument differs between versions of CLP.
static void set_coefficient(Clp_Simplex *m, int row, int column, double value)
{
	Clp_modifyCoefficient(m, row, column, value, 1);
}
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// Available tells whether this build has COIN-OR CLP.
const Available = true

// Version gives the version of COIN-OR CLP that is loaded; "" = this build has none.
func Version() string { return C.GoString(C.Clp_Version()) }

// Program is a linear program and its last basis. A mistake in a call (an index that does
// not exist, a coefficient that is no number) is told by the next Solve.
type Program struct {
	clp        unsafe.Pointer // Clp_Simplex*
	seen       []int          // the entry's owner that named a row or column last, against duplicates
	owner      int
	limit      int // of iterations of one Solve; 0 = Limit of its size
	iterations int
	err        error
}

// New gives an empty program that minimises.
func New() *Program {
	p := &Program{clp: C.Clp_newModel()}
	C.Clp_setLogLevel(p.clp, 0)
	var start C.CoinBigIndex
	C.Clp_loadProblem(p.clp, 0, 0, &start, nil, nil, nil, nil, nil, nil, nil) // else there is no matrix, and Solve reads at null
	return p
}

// Close frees the program; it may be called again. Its error is always nil: it makes a Program an io.Closer.
func (p *Program) Close() error {
	if p.clp != nil {
		C.Clp_deleteModel(p.clp)
		p.clp = nil
	}
	return nil
}

// Maximise makes Solve look for the largest objective, not the smallest, and gives the program: lp.New().Maximise().
func (p *Program) Maximise() *Program {
	C.Clp_setOptimizationDirection(p.clp, -1)
	return p
}

// Set changes the options.
func (p *Program) Set(o Options) {
	if o.PrimalTolerance > 0 {
		C.Clp_setPrimalTolerance(p.clp, C.double(o.PrimalTolerance))
	}
	if o.DualTolerance > 0 {
		C.Clp_setDualTolerance(p.clp, C.double(o.DualTolerance))
	}
	if o.DualBound > 0 {
		C.Clp_setDualBound(p.clp, C.double(o.DualBound))
	}
	if o.NoScaling {
		C.Clp_scaling(p.clp, 0)
	}
	if o.NoPerturbation {
		C.Clp_setPerturbation(p.clp, 102)
	}
	if o.MaxIterations > 0 {
		p.limit = o.MaxIterations
	}
}

// Rows and Columns count.
func (p *Program) Rows() int { return int(C.Clp_numberRows(p.clp)) }

// Columns counts the variables.
func (p *Program) Columns() int { return int(C.Clp_numberColumns(p.clp)) }

// AddRows appends rows; a new row is basic.
func (p *Program) AddRows(rows ...Row) {
	n := len(rows)
	lower, upper, sets := make([]C.double, n), make([]C.double, n), make([][]Entry, n)
	for i, r := range rows {
		lower[i], upper[i], sets[i] = p.bound(r.Lower), p.bound(r.Upper), r.Entries
	}
	if starts, at, values := p.packed("column", p.Columns(), sets); p.err == nil && n > 0 {
		C.Clp_addRows(p.clp, C.int(n), &lower[0], &upper[0], &starts[0], &at[0], &values[0])
	}
}

// AddColumns appends columns; a new column is at its lower bound, or free.
func (p *Program) AddColumns(columns ...Column) {
	n := len(columns)
	lower, upper, cost, sets := make([]C.double, n), make([]C.double, n), make([]C.double, n), make([][]Entry, n)
	for j, c := range columns {
		lower[j], upper[j], cost[j], sets[j] = p.bound(c.Lower), p.bound(c.Upper), p.number(c.Cost), c.Entries
	}
	if starts, at, values := p.packed("row", p.Rows(), sets); p.err == nil && n > 0 {
		C.Clp_addColumns(p.clp, C.int(n), &lower[0], &upper[0], &cost[0], &starts[0], &at[0], &values[0])
	}
}

// packed lays the entries of rows or columns end to end. The last element of at and of
// values is there so that there is always one to point to.
func (p *Program) packed(what string, limit int, sets [][]Entry) (starts []C.CoinBigIndex, at []C.int, values []C.double) {
	total := 0
	for _, set := range sets {
		total += len(set)
	}
	if total >= math.MaxInt32 {
		p.fail("%d coefficients at once are too many", total)
		return nil, nil, nil
	}
	starts, at, values = make([]C.CoinBigIndex, 0, len(sets)+1), make([]C.int, 0, total+1), make([]C.double, 0, total+1)
	for len(p.seen) < limit {
		p.seen = append(p.seen, 0)
	}
	for _, set := range sets {
		p.owner++
		starts = append(starts, C.CoinBigIndex(len(at)))
		for _, e := range set {
			switch {
			case e.At < 0 || e.At >= limit:
				p.fail("%s %d of %d", what, e.At, limit)
				return nil, nil, nil
			case p.seen[e.At] == p.owner:
				p.fail("%s %d twice", what, e.At)
				return nil, nil, nil
			}
			p.seen[e.At] = p.owner
			if value := p.number(e.Value); value != 0 {
				at, values = append(at, C.int(e.At)), append(values, value)
			}
		}
	}
	return append(starts, C.CoinBigIndex(len(at))), append(at, 0), append(values, 0)
}

// DeleteRows removes rows; those behind them move up.
func (p *Program) DeleteRows(rows ...int) {
	which := make([]C.int, len(rows))
	for i, r := range rows {
		if !p.within("row", r, p.Rows()) {
			return
		}
		which[i] = C.int(r)
	}
	if len(which) > 0 {
		C.Clp_deleteRows(p.clp, C.int(len(which)), &which[0])
	}
}

// SetCost changes the objective's coefficient of a column.
func (p *Program) SetCost(column int, cost float64) {
	if p.within("column", column, p.Columns()) {
		view(C.Clp_objective(p.clp), p.Columns())[column] = float64(p.number(cost))
	}
}

// SetColumnBounds changes the bounds of a column.
func (p *Program) SetColumnBounds(column int, lower, upper float64) {
	if p.within("column", column, p.Columns()) {
		view(C.Clp_columnLower(p.clp), p.Columns())[column] = float64(p.bound(lower))
		view(C.Clp_columnUpper(p.clp), p.Columns())[column] = float64(p.bound(upper))
	}
}

// SetRowBounds changes the bounds of a row.
func (p *Program) SetRowBounds(row int, lower, upper float64) {
	if p.within("row", row, p.Rows()) {
		view(C.Clp_rowLower(p.clp), p.Rows())[row] = float64(p.bound(lower))
		view(C.Clp_rowUpper(p.clp), p.Rows())[row] = float64(p.bound(upper))
	}
}

// SetCoefficient changes a coefficient.
func (p *Program) SetCoefficient(row, column int, value float64) {
	if p.within("row", row, p.Rows()) && p.within("column", column, p.Columns()) {
		C.set_coefficient(p.clp, C.int(row), C.int(column), p.number(value))
	}
}

// Solve looks for the optimum, from the last basis where there is one.
func (p *Program) Solve(m Method) error {
	if p.err != nil {
		return p.err
	}
	p.run(m)
	if second := C.Clp_secondaryStatus(p.clp); C.Clp_status(p.clp) == 0 && second >= 2 && second <= 4 {
		// The scaled program is at its optimum, and this one is not.
		mode := C.Clp_scalingFlag(p.clp)
		C.Clp_scaling(p.clp, 0)
		p.run(Primal)
		C.Clp_scaling(p.clp, mode)
	}
	switch C.Clp_status(p.clp) {
	case 0:
		return nil
	case 1:
		return ErrInfeasible
	case 2:
		return ErrUnbounded
	case 3:
		return ErrLimit
	}
	return ErrNumerical
}

func (p *Program) run(m Method) {
	limit := p.limit
	if limit == 0 {
		limit = Limit(p.Rows(), p.Columns())
	}
	C.Clp_setMaximumIterations(p.clp, C.int(min(limit, math.MaxInt32)))
	C.Clp_setNumberIterations(p.clp, 0)
	switch m {
	case Primal:
		C.Clp_primal(p.clp, 0)
	case Dual:
		C.Clp_dual(p.clp, 0)
	case Presolve:
		C.Clp_initialSolve(p.clp)
	}
	p.iterations += int(C.Clp_numberIterations(p.clp))
}

// Iterations counts the pivots of all calls of Solve.
func (p *Program) Iterations() int { return p.iterations }

// Objective is cost · x.
func (p *Program) Objective() float64 { return float64(C.Clp_objectiveValue(p.clp)) }

// Values appends the value of every column to to.
func (p *Program) Values(to []float64) []float64 {
	return append(to, view(C.Clp_primalColumnSolution(p.clp), p.Columns())...)
}

// Duals appends the dual of every row to to: by how much the objective changes for each
// unit that the bound at which the row stands is raised.
func (p *Program) Duals(to []float64) []float64 {
	return append(to, view(C.Clp_dualRowSolution(p.clp), p.Rows())...)
}

// Basis says where each column, and the activity of each row, stands in the program's basis. It is of use until
// rows or columns are added or deleted.
type Basis struct{ p *Program }

// Basis gives the basis of the last solution. Where there is none it makes the first one, of all rows: CLP would read at null.
func (p *Program) Basis() Basis {
	if C.Clp_statusExists(p.clp) == 0 {
		all := make([]C.uchar, p.Columns()+p.Rows())
		for i := range all {
			all[i] = C.uchar(AtLower)
			if i >= p.Columns() {
				all[i] = C.uchar(Basic)
			}
		}
		C.Clp_copyinStatus(p.clp, &all[0])
	}
	return Basis{p}
}

// Row tells where the activity of a row stands.
func (b Basis) Row(row int) Status {
	if !b.p.within("row", row, b.p.Rows()) {
		return Free
	}
	return Status(C.Clp_getRowStatus(b.p.clp, C.int(row)))
}

// SetColumn puts a column at a place in the basis. A basis with too many or too few
// basic members, or a singular one, is repaired.
func (b Basis) SetColumn(column int, s Status) {
	if b.p.within("column", column, b.p.Columns()) {
		C.Clp_setColumnStatus(b.p.clp, C.int(column), C.int(s))
	}
}

// SetRow is SetColumn for the activity of a row.
func (b Basis) SetRow(row int, s Status) {
	if b.p.within("row", row, b.p.Rows()) {
		C.Clp_setRowStatus(b.p.clp, C.int(row), C.int(s))
	}
}

// view is CLP's own array: of use until the program changes.
func view(first *C.double, n int) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(first)), n)
}

// bound is a bound as CLP takes it: infinite is ±DBL_MAX.
func (p *Program) bound(x float64) C.double {
	if math.IsNaN(x) {
		p.fail("a bound is not a number")
	}
	return C.double(max(-math.MaxFloat64, min(math.MaxFloat64, x)))
}

func (p *Program) number(x float64) C.double {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		p.fail("a coefficient is %v", x)
		return 0
	}
	return C.double(x)
}

func (p *Program) within(what string, i, n int) bool {
	if i < 0 || i >= n {
		p.fail("%s %d of %d", what, i, n)
		return false
	}
	return true
}

// fail keeps the first mistake.
func (p *Program) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("lp: "+format, args...)
	}
}
