package envy

import (
	"math"
	"testing"
)

// L·Lᵀ is the matrix again, for sizes around that of a block.
func TestCholesky(t *testing.T) {
	for _, n := range []int{1, 2, 3, block - 1, block, block + 1, block + 2, block + 3, 3*block + 2} {
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

func TestCholeskyRefusesWhatIsNotPositive(t *testing.T) {
	for _, n := range []int{1, block + 5} {
		for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
			c := newCholesky(n)
			for i := range n {
				c.a[i*n+i] = 1
			}
			c.a[n*n-1] = bad
			if c.factor(0) {
				t.Errorf("%d rows: a pivot of %v", n, bad)
			}
		}
	}
}
