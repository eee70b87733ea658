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

// solve solves L·Lᵀ·x = b for m vectors, a line of b each, m at most TILE.
static inline __attribute__((always_inline)) void solve(const double *l, size_t n, double *b, size_t m)
{
	for (size_t i = 0; i < n; i++) {
		const double *row = l + i * n;
		four sum[TILE] = {{0}};
		size_t t = 0;
		for (; t + 4 <= i; t += 4)
			for (size_t r = 0; r < m; r++)
				sum[r] += *(four *)(row + t) * *(four *)(b + r * n + t);
		for (size_t r = 0; r < m; r++) {
			for (size_t u = t; u < i; u++)
				sum[r][0] += row[u] * b[r * n + u];
			b[r * n + i] = (b[r * n + i] - ((sum[r][0] + sum[r][1]) + (sum[r][2] + sum[r][3]))) / row[i];
		}
	}
	for (size_t i = n; i-- > 0;) {
		const double *row = l + i * n;
		double x[TILE];
		for (size_t r = 0; r < m; r++)
			x[r] = b[r * n + i] /= row[i];
		size_t t = 0;
		for (; t + 4 <= i; t += 4)
			for (size_t r = 0; r < m; r++)
				*(four *)(b + r * n + t) -= x[r] * *(four *)(row + t);
		for (; t < i; t++)
			for (size_t r = 0; r < m; r++)
				b[r * n + t] -= x[r] * row[t];
	}
}

static inline __attribute__((always_inline)) void solve_all(const double *l, size_t n, double *b, size_t m)
{
	for (; m >= TILE; m -= TILE, b += TILE * n)
		solve(l, n, b, TILE);
	for (; m > 0; m--, b += n)
		solve(l, n, b, 1);
}

// eliminate is that of plain.go. width is the columns of x, rounded up to a multiple of four.
static inline __attribute__((always_inline)) void eliminate(double *a, double *edge, double *corner, size_t n, const int *who, size_t rows,
	const double *l, size_t k, double *x, size_t width)
{
	for (size_t i = 0; i < k; i++)
		for (size_t c = 0; c < width; c += 4) {
			four *to = (four *)(x + i * width + c), sum = *to;
			for (size_t t = 0; t < i; t++)
				sum -= l[i * k + t] * *(four *)(x + t * width + c);
			*to = sum / l[i * k + i];
		}
	for (size_t p = 0; p < rows + k; p++)
		for (size_t c = 0; c <= p; c += 4) {
			four sum = {0};
			for (size_t t = 0; t < k; t++)
				sum += x[t * width + p] * *(four *)(x + t * width + c);
			for (size_t q = c; q < c + 4 && q <= p; q++)
				if (p < rows)
					a[(size_t)who[p] * n + who[q]] -= sum[q - c];
				else if (q < rows)
					edge[(p - rows) * n + who[q]] += sum[q - c];
				else
					corner[(p - rows) * k + q - rows] += sum[q - c];
		}
}

// combine sets out to the sum of k lines of a of n numbers, each times its x.
static inline __attribute__((always_inline)) void combine(double *out, const double *a, size_t n, const double *x, size_t k)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		four low = {0}, high = {0};
		for (size_t j = 0; j < k; j++) {
			low += x[j] * *(four *)(a + j * n + i);
			high += x[j] * *(four *)(a + j * n + i + 4);
		}
		*(four *)(out + i) = low;
		*(four *)(out + i + 4) = high;
	}
	for (; i < n; i++) {
		double sum = 0;
		for (size_t j = 0; j < k; j++)
			sum += x[j] * a[j * n + i];
		out[i] = sum;
	}
}

// KERNEL makes best_name, which runs the same sums in the same order, four at a time where the processor can.
#ifdef __x86_64__
#define KERNEL(type, give, name, parameters, ...) \
	__attribute__((target("avx2"))) static type name##_avx2 parameters { give name(__VA_ARGS__); } \
	static type name##_plain parameters { give name(__VA_ARGS__); } \
	static type best_##name parameters { give __builtin_cpu_supports("avx2") ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__); }
#else
#define KERNEL(type, give, name, parameters, ...) \
	static type best_##name parameters { give name(__VA_ARGS__); }
#endif

KERNEL(int, return, factor, (double *a, size_t n, strip *panel), a, n, panel)
KERNEL(void, , solve_all, (const double *l, size_t n, double *b, size_t m), l, n, b, m)
KERNEL(void, , eliminate, (double *a, double *edge, double *corner, size_t n, const int *who, size_t rows, const double *l, size_t k, double *x, size_t width),
	a, edge, corner, n, who, rows, l, k, x, width)
KERNEL(void, , combine, (double *out, const double *a, size_t n, const double *x, size_t k), out, a, n, x, k)
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
	return C.best_factor((*C.double)(&a[0]), C.size_t(n), (*C.strip)(unsafe.Pointer(&panel[0]))) != 0
}

// Solve replaces each line of n numbers of b by the solution x of L·Lᵀ·x = b.
func Solve(l []float64, n int, b []float64) {
	C.best_solve_all((*C.double)(&l[0]), C.size_t(n), (*C.double)(&b[0]), C.size_t(len(b)/n))
}

// Eliminate takes k unknowns out of a system: see plain.go.
func Eliminate(s *System, who []int32, l []float64, k int, x []float64) {
	C.best_eliminate((*C.double)(&s.A[0]), (*C.double)(&s.Edge[0]), (*C.double)(&s.Corner[0]), C.size_t(s.N), (*C.int)(&who[0]), C.size_t(len(who)),
		(*C.double)(&l[0]), C.size_t(k), (*C.double)(&x[0]), C.size_t(len(x)/k))
}

// Combine sets out to Σ_j x_j·a_j, with a line of a for each x.
func Combine(out, a, x []float64) {
	C.best_combine((*C.double)(&out[0]), (*C.double)(&a[0]), C.size_t(len(out)), (*C.double)(&x[0]), C.size_t(len(x)))
}
