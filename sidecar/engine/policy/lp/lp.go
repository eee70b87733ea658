// Package lp solves linear programs with COIN-OR CLP's simplex:
//
//	min or max  cost · x   with   lower <= A x <= upper,  low <= x <= high
//
// A Program is kept between solutions: rows and columns are added, deleted and changed,
// and the next Solve starts from the last basis. It prints nothing, knows no clock, and
// the same calls on a new Program give the same bits. It is for one goroutine at a
// time, and its memory is C's: Close gives it back.
package lp

import "errors"

// Why there is no optimum.
var (
	ErrInfeasible = errors.New("lp: infeasible")
	ErrUnbounded  = errors.New("lp: unbounded")
	ErrLimit      = errors.New("lp: iteration limit reached")
	ErrNumerical  = errors.New("lp: given up for numerical trouble")
	ErrNone       = errors.New("lp: this program was built without COIN-OR CLP (with CGO_ENABLED=0)")
)

// Method is how Solve looks for the optimum.
type Method int

// Primal and Dual are the simplex methods, from the last basis. Presolve simplifies the
// program first and lets CLP choose: the best for a large program that is solved once.
const (
	Primal Method = iota
	Dual
	Presolve
)

// Status is where a column, or the activity of a row, stands in a basis. The values are
// CLP's.
type Status byte

// Basic, at one of its bounds, or neither.
const (
	Free       Status = 0
	Basic      Status = 1
	AtUpper    Status = 2
	AtLower    Status = 3
	Superbasic Status = 4
	Fixed      Status = 5
)

// Entry is a coefficient: in a Column At is the row, in a Row the column.
type Entry struct {
	At    int
	Value float64
}

// Column is a variable with its coefficients in rows that exist. Bounds may be infinite.
type Column struct {
	Lower, Upper, Cost float64
	Entries            []Entry
}

// Row is a constraint with its coefficients in columns that exist. Bounds may be
// infinite.
type Row struct {
	Lower, Upper float64
	Entries      []Entry
}

// Options steer the simplex; 0 keeps CLP's own value.
type Options struct {
	PrimalTolerance, DualTolerance float64 // absolute; CLP's own is 1e-7
	DualBound                      float64 // of the box that Dual puts around free columns; CLP's own is 1e10
	NoScaling                      bool
	NoPerturbation                 bool
	MaxIterations                  int // of one Solve; 0 = Limit of the program's size
}

// Limit gives how many iterations a program of so many rows and columns is worth if nobody says
// otherwise: the simplex needs two or three times the rows, and one that goes round needs a limit.
func Limit(rows, columns int) int { return 10_000 + 20*(rows+columns) }
