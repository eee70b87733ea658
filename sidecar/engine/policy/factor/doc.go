// Package factor has the loops in which the interior point method of package envy spends its time: the Cholesky factor of a
// dense symmetric matrix A, the lower triangular L with L·Lᵀ = A; solutions by it; and the elimination of a few unknowns from a system.
//
// There are two implementations, and both give the same bits on every processor: kernels in C for
// the processor's vector registers (kernel.go, with cgo), and plain Go (plain.go), used for small
// matrices and where the program is built without cgo (portable.go).
package factor
