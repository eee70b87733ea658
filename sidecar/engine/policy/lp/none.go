//go:build !cgo

package lp

// Available tells whether this build has COIN-OR CLP.
const Available = false

// Version gives "": there is no COIN-OR CLP in this build.
func Version() string { return "" }

// Program is, where there is no C, a linear program that nobody solves: its Solve gives ErrNone. The rest
// is as with C.
type Program struct{ rows, columns int }

// New gives an empty program.
func New() *Program { return &Program{} }

// Solve gives ErrNone.
func (p *Program) Solve(Method) error { return ErrNone }

// Rows and Columns count what was added.
func (p *Program) Rows() int    { return p.rows }
func (p *Program) Columns() int { return p.columns }

// AddRows and AddColumns only count.
func (p *Program) AddRows(rows ...Row)          { p.rows += len(rows) }
func (p *Program) AddColumns(columns ...Column) { p.columns += len(columns) }
func (p *Program) DeleteRows(rows ...int)       { p.rows -= len(rows) }

// The rest does nothing, and there is nothing to read.
func (p *Program) Close() error                          { return nil }
func (p *Program) Maximise() *Program                    { return p }
func (p *Program) Set(Options)                           {}
func (p *Program) SetCost(int, float64)                  {}
func (p *Program) SetColumnBounds(int, float64, float64) {}
func (p *Program) SetRowBounds(int, float64, float64)    {}
func (p *Program) SetCoefficient(int, int, float64)      {}
func (p *Program) Iterations() int                       { return 0 }
func (p *Program) Objective() float64                    { return 0 }
func (p *Program) Values(to []float64) []float64         { return to }
func (p *Program) Duals(to []float64) []float64          { return to }
func (p *Program) Basis() Basis                          { return Basis{} }

// Basis is that of a program that nobody solves.
type Basis struct{}

// Row gives Free, and nothing can be set.
func (Basis) Row(int) Status        { return Free }
func (Basis) SetColumn(int, Status) {}
func (Basis) SetRow(int, Status)    {}
