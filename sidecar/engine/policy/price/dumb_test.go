package price

import (
	"math"
	"testing"
)

// simplex maximises c·x subject to A·x <= b, x >= 0, with b >= 0, on a dense table by
// Bland's rule: slow, simple, and the judge of the clever solvers on small instances.
func simplex(t interface{ Fatalf(string, ...any) }, a [][]float64, b, c []float64) (best float64, x []float64) {
	rows, cols := len(a), len(c)
	tab := make([][]float64, rows+1)
	for i := range tab {
		tab[i] = make([]float64, cols+rows+1)
		if i == rows {
			copy(tab[i], c)
			break
		}
		copy(tab[i], a[i])
		tab[i][cols+i] = 1
		tab[i][cols+rows] = b[i]
	}
	basis := make([]int, rows)
	for i := range basis {
		basis[i] = cols + i
	}
	for range 100_000 {
		enter := -1
		for j := range cols + rows {
			if tab[rows][j] > 1e-11 {
				enter = j
				break
			}
		}
		if enter < 0 {
			x = make([]float64, cols)
			for i, v := range basis {
				if v < cols {
					x[v] = tab[i][cols+rows]
				}
			}
			return -tab[rows][cols+rows], x
		}
		leave, step := -1, math.Inf(1)
		for i := range rows {
			if tab[i][enter] > 1e-11 {
				if q := tab[i][cols+rows] / tab[i][enter]; q < step-1e-13 || q <= step+1e-13 && basis[i] < basis[leave] {
					leave, step = i, q
				}
			}
		}
		if leave < 0 {
			t.Fatalf("unbounded")
		}
		basis[leave] = enter
		p := tab[leave][enter]
		for j := range tab[leave] {
			tab[leave][j] /= p
		}
		for i := range tab {
			if f := tab[i][enter]; i != leave && f != 0 {
				for j := range tab[i] {
					tab[i][j] -= f * tab[leave][j]
				}
			}
		}
	}
	t.Fatalf("no end")
	return 0, nil
}

// rows gives the constraints of an instance over the variables x (n×k) and more others.
func (in Instance) rows(more int) (a [][]float64, b []float64) {
	k, n := len(in.GPUs), len(in.Gang)
	for m := range n {
		row := make([]float64, n*k+more)
		for j := range k {
			row[m*k+j] = 1
		}
		a, b = append(a, row), append(b, 1)
	}
	for j, have := range in.GPUs {
		row := make([]float64, n*k+more)
		for m, s := range in.Gang {
			row[m*k+j] = s / have
		}
		a, b = append(a, row), append(b, 1)
	}
	return a, b
}

// dumbMaxMin solves MaxMin as the linear program that it is.
func dumbMaxMin(t interface{ Fatalf(string, ...any) }, in Instance) float64 {
	k, n := len(in.GPUs), len(in.Gang)
	a, b := in.rows(1)
	unit := math.Inf(1)
	for m := range n {
		unit = min(unit, highest(in.Speed[m*k:(m+1)*k]))
	}
	for m := range n {
		row := make([]float64, n*k+1)
		row[n*k] = 1
		for j := range k {
			row[m*k+j] = -in.Speed[m*k+j] / unit
		}
		a, b = append(a, row), append(b, 0)
	}
	c := make([]float64, n*k+1)
	c[n*k] = 1
	best, _ := simplex(t, a, b, c)
	return best * unit
}

func TestTheDumbSolverKnowsAnAnswer(t *testing.T) {
	// Gavel §4.1's example has the optimum 8/11.
	if got := dumbMaxMin(t, gavel41()); math.Abs(got-8./11) > 1e-12 {
		t.Errorf("%v, want 8/11", got)
	}
}
