//go:build cgo

package factor

/*
// No product is fused with its sum, as in plain.go: gcc obeys -std, clang the pragma.
#cgo CFLAGS: -O3 -std=c11
#cgo LDFLAGS: -lm
#pragma STDC FP_CONTRACT OFF
#include <math.h>
#include <stddef.h>

// BLOCK columns, block in plain.go, are factored at a time; the rows below them lie in strips of
// eight, column by column.
enum { BLOCK = 64, STRIP = 8, TILE = 4 };
typedef double four __attribute__((vector_size(32), aligned(8)));
typedef double strip[BLOCK][STRIP];

// corner factors the block of w columns on the diagonal. 0 = a pivot is not positive.
static int corner(double *a, size_t n, size_t w)
{
	for (size_t j = 0; j < w; j++) {
		for (size_t i = j; i < w; i++) {
			double sum = a[i * n + j];
			for (size_t t = 0; t < j; t++)
				sum -= a[i * n + t] * a[j * n + t];
			if (i > j) {
				a[i * n + j] = sum / a[j * n + j];
				continue;
			}
			if (!(sum > 0) || isinf(sum))
				return 0;
			a[j * n + j] = sqrt(sum);
		}
	}
	return 1;
}

// below solves a strip for the block on the diagonal.
static inline __attribute__((always_inline)) void below(const double *corner, size_t n, strip s)
{
	for (size_t j = 0; j < BLOCK; j++) {
		four low = *(four *)s[j], high = *(four *)(s[j] + 4);
		for (size_t t = 0; t < j; t++) {
			double l = corner[j * n + t];
			low -= l * *(four *)s[t];
			high -= l * *(four *)(s[t] + 4);
		}
		*(four *)s[j] = low / corner[j * n + j];
		*(four *)(s[j] + 4) = high / corner[j * n + j];
	}
}

// times sets sum to the products of four rows of p, from the one at first, with the eight of q.
static inline __attribute__((always_inline)) void times(strip p, size_t first, strip q, double sum[4][STRIP])
{
	four low[4] = {{0}}, high[4] = {{0}};
	for (size_t t = 0; t < BLOCK; t++) {
		four l = *(four *)q[t], h = *(four *)(q[t] + 4);
		for (size_t r = 0; r < 4; r++) {
			double x = p[t][first + r];
			low[r] += x * l;
			high[r] += x * h;
		}
	}
	for (size_t r = 0; r < 4; r++) {
		*(four *)sum[r] = low[r];
		*(four *)(sum[r] + 4) = high[r];
	}
}

static inline __attribute__((always_inline)) int factor(double *a, size_t n, strip *panel)
{
	for (size_t from = 0; from < n; from += BLOCK) {
		size_t to = from + BLOCK < n ? from + BLOCK : n, strips = (n - to + STRIP - 1) / STRIP;
		if (!corner(a + from * n + from, n, to - from))
			return 0;
		for (size_t at = 0; at < strips; at++) {
			for (size_t r = 0; r < STRIP; r++) {
				size_t i = to + at * STRIP + r;
				for (size_t t = 0; t < BLOCK; t++)
					panel[at][t][r] = i < n ? a[i * n + from + t] : 0;
			}
			below(a + from * n + from, n, panel[at]);
			for (size_t r = 0; r < STRIP && to + at * STRIP + r < n; r++)
				for (size_t t = 0; t < BLOCK; t++)
					a[(to + at * STRIP + r) * n + from + t] = panel[at][t][r];
		}
		// TILE strips stay in the first cache.
		for (size_t left = 0; left < strips; left += TILE)
			for (size_t at = left; at < strips; at++)
				for (size_t col = left; col < left + TILE && col <= at; col++)
					for (size_t first = 0; first < STRIP; first += 4) {
						double sum[4][STRIP];
						times(panel[at], first, panel[col], sum);
						for (size_t r = 0; r < 4; r++) {
							size_t i = to + at * STRIP + first + r;
							for (size_t c = 0, j = to + col * STRIP; i < n && c < STRIP && j + c < n; c++)
								a[i * n + j + c] -= sum[r][c];
						}
					}
	}
	return 1;
}

static int factor_plain(double *a, size_t n, strip *panel) { return factor(a, n, panel); }

#ifdef __x86_64__
// The same sums in the same order, four at a time.
__attribute__((target("avx2"))) static int factor_avx2(double *a, size_t n, strip *panel) { return factor(a, n, panel); }

static int factor_best(double *a, size_t n, strip *panel)
{
	return __builtin_cpu_supports("avx2") ? factor_avx2(a, n, panel) : factor_plain(a, n, panel);
}
#else
static int factor_best(double *a, size_t n, strip *panel) { return factor_plain(a, n, panel); }
#endif
*/
import "C"

import "unsafe"

// Cholesky replaces a symmetric matrix of n rows, stored row by row, by its Cholesky factor L. It
// reads the lower triangle only and leaves L there; the upper triangle is undefined afterwards.
// It returns false if a pivot is not positive and finite: the matrix is not positive definite.
func Cholesky(a []float64, n int) bool {
	if n <= block {
		return plain(a, n) // too small to be worth a call of C
	}
	panel := make([]float64, (n+C.STRIP-1)/C.STRIP*C.STRIP*C.BLOCK)
	return C.factor_best((*C.double)(&a[0]), C.size_t(n), (*C.strip)(unsafe.Pointer(&panel[0]))) != 0
}
