package envy

import (
	"math"
	"slices"
	"testing"
)

// block is how many columns are factored at a time.
const block = 64

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

// The bits are those of plain sums, one product after the other, whatever the processor's
// registers hold.
func TestCholeskyGivesTheBitsOfPlainSums(t *testing.T) {
	const n = 3*block + 2
	r := splitMix(1)
	c := newCholesky(n)
	for i := range n {
		for j := range i {
			c.a[i*n+j] = r.float() - .5
		}
		c.a[i*n+i] = n
	}
	want := slices.Clone(c.a)
	for i := range n {
		for j := range i + 1 {
			sum, taken := want[i*n+j], 0.0
			for t := range j { // whole blocks at once, those in its own block one by one
				if product := float64(want[i*n+t] * want[j*n+t]); t/block < j/block {
					taken += product
				} else {
					sum -= product
				}
				if t%block == block-1 {
					sum, taken = sum-taken, 0
				}
			}
			if want[i*n+j] = sum / want[j*n+j]; i == j {
				want[i*n+j] = math.Sqrt(sum)
			}
		}
	}
	if !c.factor(0) {
		t.Fatal("not positive")
	}
	for i := range n {
		for j := range i + 1 {
			if c.a[i*n+j] != want[i*n+j] {
				t.Fatalf("L[%d][%d] is %v, not %v", i, j, c.a[i*n+j], want[i*n+j])
			}
		}
	}
}
