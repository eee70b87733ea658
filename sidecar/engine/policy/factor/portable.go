//go:build !cgo

package factor

// Cholesky replaces a symmetric matrix of n rows, stored row by row, by its Cholesky factor L. It
// reads the lower triangle only and leaves L there; the upper triangle is undefined afterwards.
// It returns false if a pivot is not positive and finite: the matrix is not positive definite.
func Cholesky(a []float64, n int) bool { return plain(a, n) }

// Solve replaces each line of n numbers of b by the solution x of L·Lᵀ·x = b.
func Solve(l []float64, n int, b []float64) { plainSolve(l, n, b) }

// Eliminate takes k unknowns out of a system: see plain.go.
func Eliminate(s *System, who []int32, l []float64, k int, x []float64) {
	plainEliminate(s, who, l, k, x)
}

// Combine sets out to Σ_j x_j·a_j, with a line of a for each x.
func Combine(out, a, x []float64) { plainCombine(out, a, x) }
