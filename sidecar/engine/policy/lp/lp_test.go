//go:build cgo

package lp_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

var inf = math.Inf(1)

// shop is max 3x + 2y with x + y <= 4, x + 3y <= 7, x <= 3: 11 at (3, 1).
func shop() *lp.Program {
	p := lp.New()
	p.Maximise()
	p.AddRows(lp.Row{-inf, 4, nil}, lp.Row{-inf, 7, nil})
	p.AddColumns(lp.Column{0, 3, 3, []lp.Entry{{0, 1}, {1, 1}}}, lp.Column{0, inf, 2, []lp.Entry{{0, 1}, {1, 3}}})
	return p
}

func near(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
}

func TestOptimumDualsAndBasis(t *testing.T) {
	for _, m := range []lp.Method{lp.Primal, lp.Dual, lp.Presolve} {
		p := shop()
		if err := p.Solve(m); err != nil {
			t.Fatal(err)
		}
		near(t, "objective", []float64{p.Objective()}, 11)
		near(t, "values", p.Values(nil), 3, 1)
		near(t, "duals", p.Duals(nil), 2, 0)
		p.Close()
		p.Close()
	}
}

func TestAMinimum(t *testing.T) {
	p := lp.New()
	defer p.Close()
	p.AddColumns(lp.Column{0, inf, 2, nil}, lp.Column{-inf, inf, 1, nil})
	p.AddRows(lp.Row{3, inf, []lp.Entry{{0, 1}, {1, 1}}}, lp.Row{-inf, 2, []lp.Entry{{1, 1}}})
	if err := p.Solve(lp.Dual); err != nil {
		t.Fatal(err)
	}
	near(t, "values", p.Values(nil), 1, 2)
	near(t, "duals", p.Duals(nil), 2, -1)
}

// A kept program is changed and solved again: rows and columns come, rows go, bounds,
// costs and coefficients change.
func TestWarmStarts(t *testing.T) {
	p := shop()
	defer p.Close()
	step := func(what string, m lp.Method, objective float64) {
		t.Helper()
		if err := p.Solve(m); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		near(t, what, []float64{p.Objective()}, objective)
	}
	step("at first", lp.Primal, 11)
	p.AddRows(lp.Row{-inf, 2, []lp.Entry{{0, 1}}})
	step("x <= 2", lp.Dual, 2*3+5.0/3*2)
	p.AddColumns(lp.Column{0, inf, 10, []lp.Entry{{0, 1}, {2, 1}}})
	step("a better column", lp.Primal, 20+2*2)
	p.SetCost(2, 0)
	step("which is of no use after all", lp.Primal, 2*3+5.0/3*2)
	p.SetColumnBounds(1, 1, 1)
	step("y = 1", lp.Dual, 2*3+2)
	p.SetRowBounds(2, -inf, 1)
	step("x <= 1", lp.Dual, 5)
	p.SetCoefficient(2, 0, 0.5)
	step("x/2 <= 1", lp.Primal, 8)
	p.DeleteRows(2)
	if p.Rows() != 2 || p.Columns() != 3 {
		t.Errorf("%d rows and %d columns", p.Rows(), p.Columns())
	}
	step("no such row", lp.Primal, 11)
	if p.Iterations() == 0 {
		t.Error("no iterations counted")
	}
}

// The optimal basis of one program is where another one starts: no pivot is left to do.
func TestABasisIsCarriedOver(t *testing.T) {
	a, b := random(rand.New(rand.NewPCG(1, 2)), 40, 60), random(rand.New(rand.NewPCG(1, 2)), 40, 60)
	defer a.Close()
	defer b.Close()
	if err := a.Solve(lp.Dual); err != nil {
		t.Fatal(err)
	}
	for j, x := range a.Values(nil) {
		switch { // columns are between 0 and 1
		case x < 1e-9:
			b.Basis().SetColumn(j, lp.AtLower)
		case x > 1-1e-9:
			b.Basis().SetColumn(j, lp.AtUpper)
		default:
			b.Basis().SetColumn(j, lp.Basic)
		}
	}
	for i := range a.Rows() {
		b.Basis().SetRow(i, a.Basis().Row(i))
	}
	if err := b.Solve(lp.Dual); err != nil {
		t.Fatal(err)
	}
	near(t, "objective", []float64{b.Objective()}, a.Objective())
	if a.Iterations() == 0 || b.Iterations() > 0 {
		t.Errorf("%d iterations, then %d from the optimal basis", a.Iterations(), b.Iterations())
	}
}

func TestNoOptimum(t *testing.T) {
	for _, m := range []lp.Method{lp.Primal, lp.Dual, lp.Presolve} {
		p := shop()
		p.AddRows(lp.Row{5, inf, []lp.Entry{{0, 1}, {1, 1}}})
		if err := p.Solve(m); !errors.Is(err, lp.ErrInfeasible) {
			t.Errorf("method %d: infeasible, got %v", m, err)
		}
		p.Close()
		p = shop()
		p.AddColumns(lp.Column{0, inf, 1, []lp.Entry{{0, -1}}})
		if err := p.Solve(m); !errors.Is(err, lp.ErrUnbounded) {
			t.Errorf("method %d: unbounded, got %v", m, err)
		}
		p.Close()
		p = random(rand.New(rand.NewPCG(1, 2)), 40, 60)
		p.Set(lp.Options{MaxIterations: 3})
		if m != lp.Presolve { // which may need no iteration
			if err := p.Solve(m); !errors.Is(err, lp.ErrLimit) {
				t.Errorf("method %d: iteration limit, got %v", m, err)
			}
		}
		p.Close()
	}
}

func TestEmptyPrograms(t *testing.T) {
	for _, m := range []lp.Method{lp.Primal, lp.Dual, lp.Presolve} {
		p := lp.New()
		if err := p.Solve(m); err != nil {
			t.Errorf("nothing: %v", err)
		}
		p.AddRows()
		p.AddColumns()
		p.DeleteRows()
		p.AddColumns(lp.Column{0, 2, -3, nil})
		if err := p.Solve(m); err != nil || p.Objective() != -6 {
			t.Errorf("no rows: %v, %v", p.Objective(), err)
		}
		p.Close()
		p = lp.New()
		p.AddRows(lp.Row{-1, 1, nil})
		if err := p.Solve(m); err != nil {
			t.Errorf("no columns: %v", err)
		}
		p.Close()
	}
}

func TestMistakesAreTold(t *testing.T) {
	for what, do := range map[string]func(p *lp.Program){
		"row 2 of 2":              func(p *lp.Program) { p.AddColumns(lp.Column{0, 1, 1, []lp.Entry{{2, 1}}}) },
		"row -1 of 2":             func(p *lp.Program) { p.AddColumns(lp.Column{0, 1, 1, []lp.Entry{{-1, 1}}}) },
		"column 9 of 2":           func(p *lp.Program) { p.AddRows(lp.Row{0, 1, []lp.Entry{{9, 1}}}) },
		"row 1 twice":             func(p *lp.Program) { p.AddColumns(lp.Column{0, 1, 1, []lp.Entry{{1, 1}, {1, 2}}}) },
		"a coefficient is NaN":    func(p *lp.Program) { p.AddRows(lp.Row{0, 1, []lp.Entry{{0, math.NaN()}}}) },
		"a coefficient is +Inf":   func(p *lp.Program) { p.AddColumns(lp.Column{0, 1, inf, nil}) },
		"a bound is not a number": func(p *lp.Program) { p.AddRows(lp.Row{math.NaN(), 1, nil}) },
		"column 2 of 2":           func(p *lp.Program) { p.SetCost(2, 1) },
		"column -2 of 2":          func(p *lp.Program) { p.SetColumnBounds(-2, 1, 2) },
		"row 3 of 2":              func(p *lp.Program) { p.SetRowBounds(3, 1, 2) },
		"row 4 of 2":              func(p *lp.Program) { p.SetCoefficient(4, 0, 2) },
		"row 5 of 2":              func(p *lp.Program) { p.DeleteRows(0, 5) },
		"row 6 of 2":              func(p *lp.Program) { p.Basis().SetRow(6, lp.Basic) },
		"column 7 of 2":           func(p *lp.Program) { p.Basis().SetColumn(7, lp.Basic) },
	} {
		p := shop()
		do(p)
		if err := p.Solve(lp.Primal); err == nil || !strings.HasSuffix(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
		p.Close()
	}
}

// random is max c·x with A x <= b, all of it positive: feasible and bounded.
func random(r *rand.Rand, rows, columns int) *lp.Program {
	p := lp.New()
	p.Maximise()
	for range rows {
		p.AddRows(lp.Row{-inf, 1 + r.Float64(), nil})
	}
	var all []lp.Column
	for range columns {
		c := lp.Column{0, 1, 1 + r.Float64(), nil}
		for i := range rows {
			if r.IntN(4) == 0 {
				c.Entries = append(c.Entries, lp.Entry{i, r.Float64()})
			}
		}
		all = append(all, c)
	}
	p.AddColumns(all...)
	return p
}

// Whatever the program: what comes out is feasible, and the duals prove that nothing is better.
func TestTheDualsProveTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 12).Draw(t, "rows"), rapid.IntRange(1, 12).Draw(t, "columns")
		number := rapid.Map(rapid.IntRange(0, 900), func(n int) float64 { return float64(n) / 100 })
		p := lp.New()
		defer p.Close()
		p.Maximise()
		p.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
		b := make([]float64, rows)
		for i := range b {
			b[i] = number.Draw(t, "b")
			p.AddRows(lp.Row{-inf, b[i], nil})
		}
		all := make([]lp.Column, columns)
		for j := range all {
			c := lp.Column{0, number.Draw(t, "high"), number.Draw(t, "cost"), nil}
			for i := range rows {
				c.Entries = append(c.Entries, lp.Entry{i, number.Draw(t, "a")})
			}
			all[j] = c
		}
		p.AddColumns(all...)
		if err := p.Solve(lp.Method(rapid.IntRange(0, 2).Draw(t, "method"))); err != nil {
			t.Fatal(err)
		}
		used, x, duals := make([]float64, rows), p.Values(nil), p.Duals(nil)
		for j, c := range all {
			for _, e := range c.Entries {
				used[e.At] += e.Value * x[j]
			}
		}
		for i, a := range used {
			if a > b[i]+1e-6 {
				t.Fatalf("row %d: %v of %v", i, a, b[i])
			}
		}
		bound := 0.0
		for i, y := range duals {
			if y < -1e-6 {
				t.Fatalf("dual %d is %v", i, y)
			}
			bound += y * b[i]
		}
		for _, c := range all {
			reduced := c.Cost
			for _, e := range c.Entries {
				reduced -= duals[e.At] * e.Value
			}
			bound += max(reduced, 0) * c.Upper
		}
		if math.Abs(bound-p.Objective()) > 1e-6*max(1, bound) {
			t.Fatalf("objective %v, bound %v", p.Objective(), bound)
		}
	})
}

func TestTheSameBitsEveryTime(t *testing.T) {
	for _, m := range []lp.Method{lp.Primal, lp.Dual, lp.Presolve} {
		var first []float64
		for range 5 {
			p := random(rand.New(rand.NewPCG(3, 4)), 100, 300)
			if err := p.Solve(m); err != nil {
				t.Fatal(err)
			}
			got := p.Duals(p.Values(nil))
			p.Close()
			if first == nil {
				first = got
			}
			if !slices.Equal(first, got) {
				t.Fatalf("method %d: a second solution differs", m)
			}
		}
	}
}

func TestCloseFreesEverything(t *testing.T) {
	solve := func(n int) {
		for range n {
			p := random(rand.New(rand.NewPCG(3, 4)), 50, 150)
			if err := p.Solve(lp.Dual); err != nil {
				t.Fatal(err)
			}
			p.Close()
		}
	}
	solve(20)
	before := residentMiB(t)
	solve(200)
	if grown := residentMiB(t) - before; grown > 5 {
		t.Errorf("%.0f MiB more after 200 programs", grown)
	}
}

func residentMiB(t *testing.T) float64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		t.Fatal(err)
	}
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20)
}
