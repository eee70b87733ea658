package factor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sizes lie around the borders of blocks, strips and tiles.
var sizes = []int{1, 2, 3, block - 1, block, block + 1, block + 3, block + 8, block + 9, 2 * block, 2*block + 31, 2*block + 33, 3*block + 2}

// random gives a symmetric matrix whose diagonal is d: positive definite for d = n.
func random(r *rand.Rand, n int, d float64) []float64 {
	a := make([]float64, n*n)
	for i := range n {
		for j := range i {
			a[i*n+j] = r.Float64() - .5
			a[j*n+i] = a[i*n+j]
		}
		a[i*n+i] = d
	}
	return a
}

// lower gives the lower triangle.
func lower(a []float64, n int) []float64 {
	var out []float64
	for i := range n {
		out = append(out, a[i*n:i*n+i+1]...)
	}
	return out
}

func TestTheFactorTimesItsTransposeIsTheMatrix(t *testing.T) {
	for _, n := range sizes {
		a := random(rand.New(rand.NewPCG(1, uint64(n))), n, float64(n))
		l := slices.Clone(a)
		if !Cholesky(l, n) {
			t.Fatalf("%d rows: not positive definite", n)
		}
		for i := range n {
			for j := range i + 1 {
				sum := 0.0
				for k := range j + 1 {
					sum += l[i*n+k] * l[j*n+k]
				}
				if math.Abs(sum-a[i*n+j]) > 1e-13*float64(n) {
					t.Fatalf("%d rows: (L·Lᵀ)[%d][%d] is %v, not %v", n, i, j, sum, a[i*n+j])
				}
			}
		}
	}
}

// The kernel in C and plain Go give the same bits, and refuse the same matrices: the diagonal goes
// from clearly positive definite to clearly not.
func TestTheKernelGivesTheBitsOfPlainGo(t *testing.T) {
	refused := 0
	for _, n := range sizes {
		for seed, part := range []float64{1, .1, .06, .03, .01} {
			a := random(rand.New(rand.NewPCG(uint64(seed), uint64(n))), n, part*float64(n))
			b := slices.Clone(a)
			is, want := Cholesky(a, n), plain(b, n)
			if is != want {
				t.Fatalf("%d rows, diagonal %v: %v by the kernel, %v in Go", n, part*float64(n), is, want)
			}
			if !want {
				refused++
				continue
			}
			if !slices.Equal(lower(a, n), lower(b, n)) {
				t.Fatalf("%d rows, diagonal %v: the kernel's bits differ", n, part*float64(n))
			}
		}
	}
	if refused < 10 || refused > 4*len(sizes) {
		t.Errorf("%d matrices are refused: too few of one sort are tried", refused)
	}
}

func TestAMatrixThatIsNotPositiveDefiniteIsRefused(t *testing.T) {
	for _, n := range []int{1, block + 5} {
		for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
			for name, factor := range map[string]func([]float64, int) bool{"kernel": Cholesky, "Go": plain} {
				a := make([]float64, n*n)
				for i := range n {
					a[i*n+i] = 1
				}
				a[n*n-1] = bad
				if factor(a, n) {
					t.Errorf("%s: %d rows, a pivot of %v", name, n, bad)
				}
			}
		}
	}
}

// numbers gives n random numbers.
func numbers(r *rand.Rand, n int) []float64 {
	a := make([]float64, n)
	for i := range a {
		a[i] = r.Float64() - .5
	}
	return a
}

// near checks that numbers are equal but for rounding.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-11*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s %d is %v, not %v", what, i, got[i], want[i])
		}
	}
}

// Each line of b becomes the solution, with the same bits by the kernel and in plain Go.
func TestEachLineBecomesTheSolution(t *testing.T) {
	for _, n := range sizes {
		for lines := range 6 {
			r := rand.New(rand.NewPCG(uint64(lines), uint64(n)))
			a, x := random(r, n, float64(n)), numbers(r, (1+lines)*n)
			b := make([]float64, len(x))
			for at := range b {
				for j := range n {
					b[at] += a[at%n*n+j] * x[at/n*n+j]
				}
			}
			if !Cholesky(a, n) {
				t.Fatal("not positive definite")
			}
			again := slices.Clone(b)
			Solve(a, n, b)
			near(t, "x", b, x)
			if plainSolve(a, n, again); !slices.Equal(b, again) {
				t.Fatalf("%d rows, %d lines: the kernel's bits differ", n, 1+lines)
			}
		}
	}
}

// With H = L·Lᵀ, elimination of the unknowns of H leaves A - Xᵀ·H⁻¹·X, the same bits by the kernel and in plain Go.
func TestEliminationLeavesTheSchurComplement(t *testing.T) {
	const n = 9
	for k := 1; k <= 10; k++ {
		for _, who := range [][]int32{{4}, {0, 8}, {1, 2, 5, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8}} {
			r := rand.New(rand.NewPCG(uint64(k), uint64(len(who))))
			width := (len(who) + k + 3) / 4 * 4
			x := make([]float64, k*width)
			for i := range k {
				copy(x[i*width:], numbers(r, len(who)+k))
			}
			l := random(r, k, float64(k))
			Cholesky(l, k)
			// A column at a time: H⁻¹·x.
			column := func(c int) []float64 {
				var of []float64
				for i := range k {
					of = append(of, x[i*width+c])
				}
				return of
			}
			product := func(a, b int) (sum float64) {
				solved := column(b)
				Solve(l, k, solved)
				for i, v := range column(a) {
					sum += v * solved[i]
				}
				return sum
			}
			first := System{N: n, A: numbers(r, n*n), Edge: numbers(r, k*n), Corner: numbers(r, k*k)}
			copied := func() System {
				return System{N: n, A: slices.Clone(first.A), Edge: slices.Clone(first.Edge), Corner: slices.Clone(first.Corner)}
			}
			want, got, dumb := copied(), copied(), copied()
			for a := range who {
				for b := range a + 1 {
					want.A[int(who[a])*n+int(who[b])] -= product(a, b)
				}
				for j := range k {
					want.Edge[j*n+int(who[a])] += product(a, len(who)+j)
				}
			}
			for j := range k {
				for j2 := range j + 1 {
					want.Corner[j*k+j2] += product(len(who)+j, len(who)+j2)
				}
			}
			other := slices.Clone(x)
			Eliminate(&got, who, l, k, x)
			near(t, "A", got.A, want.A)
			near(t, "the border", got.Edge, want.Edge)
			near(t, "the corner", got.Corner, want.Corner)
			plainEliminate(&dumb, who, l, k, other)
			if !slices.Equal(got.A, dumb.A) || !slices.Equal(got.Edge, dumb.Edge) || !slices.Equal(got.Corner, dumb.Corner) || !slices.Equal(x, other) {
				t.Fatalf("%d unknowns, %d rows: the kernel's bits differ", k, len(who))
			}
		}
	}
}

func TestLinesAreCombined(t *testing.T) {
	for _, n := range sizes {
		for k := range 11 {
			r := rand.New(rand.NewPCG(uint64(k), uint64(n)))
			a, x := numbers(r, (k+1)*n), numbers(r, k+1)
			out, again, want := make([]float64, n), make([]float64, n), make([]float64, n)
			for at, v := range a {
				want[at%n] += v * x[at/n]
			}
			Combine(out, a, x)
			near(t, "number", out, want)
			if plainCombine(again, a, x); !slices.Equal(out, again) {
				t.Fatalf("%d numbers of %d lines: the kernel's bits differ", n, k+1)
			}
		}
	}
}

func BenchmarkCholesky(b *testing.B) {
	const n = 500
	a := random(rand.New(rand.NewPCG(1, n)), n, n)
	for name, factor := range map[string]func([]float64, int) bool{"kernel": Cholesky, "go": plain} {
		b.Run(name, func(b *testing.B) {
			l := make([]float64, len(a))
			for b.Loop() {
				copy(l, a)
				factor(l, n)
			}
		})
	}
}
