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

// System is the normal equations of an interior point method with a border:
//
//	A     Edgeᵀ      N rows
//	Edge  Corner     as many rows as the border has
//
// The lower triangles of A and Corner count.
type System struct {
	N               int
	A, Edge, Corner []float64
}

// plainSolve is Solve in plain Go. Each line's sums are of every fourth product.
func plainSolve(l []float64, n int, b []float64) {
	for ; len(b) > 0; b = b[n:] {
		for i := range n {
			b[i] = (b[i] - dot(l[i*n:i*n+i], b)) / l[i*n+i]
		}
		for i := n - 1; i >= 0; i-- {
			b[i] /= l[i*n+i]
			for t, x := range l[i*n : i*n+i] {
				b[t] -= float64(b[i] * x)
			}
		}
	}
}

func dot(a, b []float64) float64 {
	var sum [4]float64
	at := 0
	for ; at+4 <= len(a); at += 4 {
		for lane := range sum {
			sum[lane] += float64(a[at+lane] * b[at+lane])
		}
	}
	for ; at < len(a); at++ {
		sum[0] += float64(a[at] * b[at])
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3])
}

// plainEliminate is Eliminate in plain Go. x has k rows: a column for each of who, which are ascending rows of A, then one for each of k rows of
// the border, and any number of zeros. It becomes X = L⁻¹·x, and the products of its columns are subtracted from A and added to the border:
//
//	A -= X_whoᵀ·X_who    Edge += X_borderᵀ·X_who    Corner += X_borderᵀ·X_border
func plainEliminate(s *System, who []int32, l []float64, k int, x []float64) {
	width, rows := len(x)/k, len(who)
	for i := range k {
		for c := range width {
			sum := x[i*width+c]
			for t := range i {
				sum -= float64(l[i*k+t] * x[t*width+c])
			}
			x[i*width+c] = sum / l[i*k+i]
		}
	}
	for p := range rows + k {
		for q := range p + 1 {
			sum := 0.0
			for t := range k {
				sum += float64(x[t*width+p] * x[t*width+q])
			}
			switch {
			case p < rows:
				s.A[int(who[p])*s.N+int(who[q])] -= sum
			case q < rows:
				s.Edge[(p-rows)*s.N+int(who[q])] += sum
			default:
				s.Corner[(p-rows)*k+q-rows] += sum
			}
		}
	}
}

// plainCombine is Combine in plain Go.
func plainCombine(out, a, x []float64) {
	for i := range out {
		sum := 0.0
		for j, f := range x {
			sum += float64(f * a[j*len(out)+i])
		}
		out[i] = sum
	}
}
