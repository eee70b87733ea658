// Package factor computes the Cholesky factor of a dense symmetric matrix A: the lower triangular L
// with L·Lᵀ = A. The interior point method of package envy solves its Newton steps with it.
//
// There are two implementations, and both give the same bits on every processor: a kernel in C for
// the processor's vector registers (kernel.go, with cgo), and plain Go (plain.go), used for small
// matrices and where the program is built without cgo (portable.go).
package factor
