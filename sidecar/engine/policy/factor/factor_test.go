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
