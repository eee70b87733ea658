package envy

import "math"

// block is how many columns of a matrix are factored at a time.
const block = 64

// strip is two rows of a block, one column after the other.
type strip = [block][2]float64

// cholesky is a dense symmetric matrix of n rows, and its factor.
type cholesky struct {
	n     int
	a     []float64 // row by row; the lower triangle counts, and becomes L
	panel []strip   // rows below the block that is being factored
}

func newCholesky(n int) *cholesky {
	return &cholesky{n: n, a: make([]float64, n*n), panel: make([]strip, (n+3)/4*2)}
}

// factor replaces the matrix by L with L·Lᵀ = the matrix + a diagonal of shift times its own. It
// gives false where a pivot is not positive.
//
// Block by block from the left, each taken out of all that is to its right at once, so
// that what the inner loop reads stays in the caches nearest to the processor.
func (c *cholesky) factor(shift float64) bool {
	n := c.n
	for i := range n {
		c.a[i*n+i] *= 1 + shift
	}
	for from := 0; from < n; from += block {
		to := min(from+block, n)
		if !c.corner(from, to) {
			return false
		}
		for i := to; i < n; i++ {
			c.below(i, from, to)
		}
		if to < n {
			c.pack(from, to)
			c.update(to)
		}
	}
	return true
}

// corner factors the block on the diagonal.
func (c *cholesky) corner(from, to int) bool {
	n := c.n
	for j := from; j < to; j++ {
		row := c.a[j*n+from : j*n+j]
		pivot := c.a[j*n+j] - dot(row, row)
		if !(pivot > 0) || math.IsInf(pivot, 1) {
			return false
		}
		pivot = math.Sqrt(pivot)
		c.a[j*n+j] = pivot
		for i := j + 1; i < to; i++ {
			c.a[i*n+j] = (c.a[i*n+j] - dot(c.a[i*n+from:i*n+j], row)) / pivot
		}
	}
	return true
}

// below solves for row i of the block.
func (c *cholesky) below(i, from, to int) {
	n := c.n
	row := c.a[i*n+from : i*n+to]
	for j := from; j < to; j++ {
		at := j - from
		row[at] = (row[at] - dot(row[:at], c.a[j*n+from:j*n+j])) / c.a[j*n+j]
	}
}

// pack copies the rows below the block into strips, with zeros where there is nothing.
func (c *cholesky) pack(from, to int) {
	n := c.n
	c.panel = c.panel[:(n-to+3)/4*2]
	clear(c.panel)
	for i := to; i < n; i++ {
		s := &c.panel[(i-to)/2]
		for t, x := range c.a[i*n+from : i*n+to] {
			s[t][(i-to)%2] = x
		}
	}
}

// update takes the panel times itself out of all rows and columns from first.
func (c *cholesky) update(first int) {
	const tile = 16 // strips of columns that stay in the first cache
	n, strips := c.n, len(c.panel)
	var sum [8]float64
	for left := 0; left < strips; left += tile {
		for at := left; at < strips; at += 2 {
			for col := left; col < min(left+tile, at+2); col++ {
				times(&c.panel[at], &c.panel[at+1], &c.panel[col], &sum)
				j := first + 2*col
				for r := range min(4, n-first-2*at) {
					row := c.a[(first+2*at+r)*n:][:n]
					row[j] -= sum[2*r]
					if j+1 < n {
						row[j+1] -= sum[2*r+1]
					}
				}
			}
		}
	}
}

// times gives the products of four rows, p and q, with two others: eight sums, which fit in
// the registers.
func times(p, q, b *strip, sum *[8]float64) {
	var s00, s01, s10, s11, s20, s21, s30, s31 float64
	for t := range block {
		b0, b1 := b[t][0], b[t][1]
		a0 := p[t][0]
		s00 += a0 * b0
		s01 += a0 * b1
		a1 := p[t][1]
		s10 += a1 * b0
		s11 += a1 * b1
		a2 := q[t][0]
		s20 += a2 * b0
		s21 += a2 * b1
		a3 := q[t][1]
		s30 += a3 * b0
		s31 += a3 * b1
	}
	*sum = [8]float64{s00, s01, s10, s11, s20, s21, s30, s31}
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
