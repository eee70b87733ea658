//go:build !cgo

package factor

// Cholesky replaces a symmetric matrix of n rows, stored row by row, by its Cholesky factor L. It
// reads the lower triangle only and leaves L there; the upper triangle is undefined afterwards.
// It returns false if a pivot is not positive and finite: the matrix is not positive definite.
func Cholesky(a []float64, n int) bool { return plain(a, n) }
