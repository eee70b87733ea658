package factor

import "math"

// block is the number of columns that are factored at a time; BLOCK in kernel.go.
const block = 64

// plain is Cholesky in plain Go: the definition of its bits.
//
//	L_ij = (A_ij - Σ_{t<j} L_it·L_jt) / L_jj,   L_ii = √(A_ii - Σ_{t<i} L_it²)
//
// The products of each earlier block are summed and then subtracted at once; those of the block
// that column j is in are subtracted one by one.
func plain(a []float64, n int) bool {
	for i := range n {
		row := a[i*n : i*n+i+1]
		for j := range i + 1 {
			other, at, sum := a[j*n:j*n+j+1], 0, row[j]
			for ; at+block <= j; at += block {
				taken := 0.0
				for t, x := range row[at : at+block] {
					taken += float64(x * other[at+t]) // the conversion forbids a fused product
				}
				sum -= taken
			}
			for t := at; t < j; t++ {
				sum -= float64(row[t] * other[t])
			}
			if j < i {
				row[j] = sum / other[j]
				continue
			}
			if !(sum > 0) || math.IsInf(sum, 1) {
				return false
			}
			row[i] = math.Sqrt(sum)
		}
	}
	return true
}
