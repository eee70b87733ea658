package envy

import "github.com/fairlease/fairlease/sidecar/engine/policy/factor"

// cholesky is a dense symmetric matrix of n rows, and its factor.
type cholesky struct {
	n int
	a []float64 // row by row; the lower triangle counts, and becomes L
}

func newCholesky(n int) *cholesky { return &cholesky{n: n, a: make([]float64, n*n)} }

// factor replaces the matrix by L with L·Lᵀ = the matrix + a diagonal of shift times its own. It
// gives false where a pivot is not positive.
func (c *cholesky) factor(shift float64) bool {
	for i := range c.n {
		c.a[i*c.n+i] *= 1 + shift
	}
	return factor.Cholesky(c.a, c.n)
}

// solve replaces b by the solution of L·Lᵀ·x = b.
func (c *cholesky) solve(b []float64) {
	n := c.n
	for i := range n {
		b[i] = (b[i] - dot(c.a[i*n:i*n+i], b[:i])) / c.a[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		b[i] /= c.a[i*n+i]
		plus(b[:i], -b[i], c.a[i*n:i*n+i])
	}
}

// dot gives a·b, of equal lengths.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		s0 += x * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// plus adds f times b to a.
func plus(a []float64, f float64, b []float64) {
	b = b[:len(a)]
	for i := range a {
		a[i] += f * b[i]
	}
}
