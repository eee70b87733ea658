package envy

import (
	"math"
	"testing"
)

// solve gives the solution, for sizes around that of the factor's blocks.
func TestCholesky(t *testing.T) {
	for _, n := range []int{1, 3, 64, 65, 200} {
		r := splitMix(n)
		c := newCholesky(n)
		for i := range n {
			for j := range i {
				c.a[i*n+j] = r.float() - .5
			}
			c.a[i*n+i] = float64(n)
		}
		at := func(i, j int) float64 { return c.a[max(i, j)*n+min(i, j)] }
		x, b := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = r.float()
		}
		for i := range n {
			for j := range n {
				b[i] += at(i, j) * x[j]
			}
		}
		if !c.factor(0) {
			t.Fatalf("%d: not positive", n)
		}
		c.solve(b)
		for i := range x {
			if math.Abs(b[i]-x[i]) > 1e-12 {
				t.Errorf("%d rows: x[%d] is %v, not %v", n, i, b[i], x[i])
			}
		}
	}
}
