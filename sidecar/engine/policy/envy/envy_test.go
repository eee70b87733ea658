package envy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/tests/seeds"
)

// Certified optima of the seeded instances, with their digits.
var optima = []struct {
	n       int
	ordered bool
	want    float64
}{
	{50, false, 975.943380}, {100, false, 1112.179442}, {200, false, 926.5011304963},
	{50, true, 388.614990}, {100, true, 324.123008}, {200, true, 438.719702},
	{500, false, 772.7468532502},
	{1000, true, 353.5580650385}, // a thousand tastes that are nearly alike
}

func TestSeededInstancesReachTheirOptimum(t *testing.T) {
	needsCLP(t)
	for _, c := range optima[:seeds.Some(6, 8)] {
		t.Run(fmt.Sprint(c.n, c.ordered), func(t *testing.T) {
			w, m := seeded(c.n, c.ordered)
			y, _, err := Solve(scaled(w, m))
			if err != nil {
				t.Fatal(err)
			}
			if got := total(w, m, y); math.Abs(got-c.want) > 6e-7 {
				t.Errorf("got %.10f, want %.10f", got, c.want)
			}
		})
	}
}

// total gives the sum of throughputs of an answer to scaled.
func total(w [][]float64, m, y []float64) float64 {
	sum := 0.0
	for i := range w {
		for j := range m {
			sum += w[i][j] * y[i*len(m)+j] * m[j] / float64(len(w))
		}
	}
	return sum
}

// The answer breaks no row, and prices prove that there is no better one: weak duality, from
// the formulas alone.
func TestTheAnswerIsCertified(t *testing.T) {
	needsCLP(t)
	for _, c := range optima[1:3] {
		w, m := seeded(c.n, c.ordered)
		p := scaled(w, m)
		n, k := p.size()
		r := start(p)
		y, err := r.solve()
		if err != nil {
			t.Fatal(err)
		}
		value := 0.0
		for i := range n {
			own := dot(row(p.Own, k, i), row(y, k, i))
			value += p.Gain[i] * own
			for l := range n {
				if sees := dot(row(p.Own, k, i), row(y, k, l)); sees > own*(1+1e-9) {
					t.Fatalf("%d has %v and sees %v in %d's part", i, own, sees, l)
				}
			}
		}
		for j := range k {
			used := 0.0
			for l := range n {
				used += p.Mass[l] * y[l*k+j]
			}
			if used > float64(n)*(1+1e-9) {
				t.Fatalf("%v of %d of model %d are given", used, n, j)
			}
		}
		// max c·x with A·x <= b: for multipliers z >= 0, c·x <= b·z + Σ (c - Aᵀ·z)·x, whose last
		// terms are none where they are not above 0 and x >= 0.
		z := r.lp.Duals(nil)
		r.lp.Close()
		bound := 0.0
		over := make([]float64, n*k+n)
		copy(over[n*k:], p.Gain)
		for i := range n {
			plus(row(over, k, i), -z[i], row(p.Own, k, i)) // a row of >=: its multiplier is below 0
			over[n*k+i] += z[i]
			if z[i] > 1e-9 {
				t.Fatalf("a multiplier of %v", z[i])
			}
		}
		for j := range k {
			bound += float64(n) * z[n+j]
			for l := range n {
				over[l*k+j] -= p.Mass[l] * z[n+j]
			}
		}
		for at, e := range r.pairs {
			plus(row(over, k, int(e.l)), -z[n+k+at], row(p.Own, k, int(e.i)))
			over[n*k+int(e.i)] += z[n+k+at]
		}
		if least := slices.Min(z[n:]); least < -1e-9 {
			t.Fatalf("a multiplier of %v", least)
		}
		for i, f := range p.Floor {
			bound += min(over[n*k+i], 0) * f
		}
		if most := slices.Max(over); most > 1e-8 {
			t.Fatalf("a reduced cost of %v", most)
		}
		if math.Abs(bound/value-1) > 1e-9 {
			t.Errorf("%d tenants: the sum is %v, and may be %v", n, value, bound)
		}
	}
}

// Without the interior point the simplex finds the same.
func TestTheStartDecidesNothing(t *testing.T) {
	needsCLP(t)
	w, m := seeded(100, false)
	p := scaled(w, m)
	r := newRows(p, near(p, 6))
	defer r.lp.Close()
	y, err := r.solve()
	if err != nil {
		t.Fatal(err)
	}
	if got := total(w, m, y); math.Abs(got-1112.179442) > 6e-7 {
		t.Errorf("got %.9f", got)
	}
}

func TestEqualProgramsGiveEqualBytes(t *testing.T) {
	needsCLP(t)
	w, m := seeded(100, false)
	first, _, err := Solve(scaled(w, m))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, _, err := Solve(scaled(w, m))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(first, again) {
			t.Fatal("the same program, another answer")
		}
	}
}

// At the limit of iterations there is an answer that breaks no row, or an error that says so; with
// more iterations it is no worse, and none takes more than it may.
func TestTheLimitOfIterationsHolds(t *testing.T) {
	needsCLP(t)
	r := splitMix(7060)
	w, m := random(&r, 60, 10, false)
	last, answers, refusals := 0., 0, 0
	for left := 1; left < budget(60); left = 2*left + 1 {
		r = splitMix(60)
		p := limited(w, m, &r)
		p.spent = budget(60) - left
		y, _, err := p.solve()
		if p.left() < -1 {
			t.Fatalf("%d iterations beyond the limit of %d", -p.left(), left)
		}
		if err != nil {
			if refusals++; answers > 0 || !errors.Is(err, ErrLimit) {
				t.Fatalf("%d iterations: %v", left, err)
			}
			continue
		}
		answers++
		p.marginal = p.marginals(y)
		if err := p.fits(y); err != nil || p.Value(y) < last*(1-1e-9) {
			t.Fatalf("%d iterations: %v, a sum of %v after %v", left, err, p.Value(y), last)
		}
		last = p.Value(y)
	}
	if answers < 3 || refusals < 3 {
		t.Errorf("%d answers, %d refusals: too few to show anything", answers, refusals)
	}
	w, m = seeded(few, false)
	p := scaled(w, m)
	p.spent = budget(few) - 20
	if _, _, err := p.solve(); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "% of the largest sum") {
		t.Error(err)
	}
}

func TestALadderIsAnOrderOfTastes(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		w, m := seeded(50, ordered)
		if got := ladder(scaled(w, m)) != nil; got != ordered {
			t.Errorf("ordered %v: ladder %v", ordered, got)
		}
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, ordered := range []bool{false, true} {
		for _, n := range []int{200, 500, 1000} {
			w, m := seeded(n, ordered)
			p := scaled(w, m)
			b.Run(fmt.Sprintf("%d/ordered=%v", n, ordered), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := Solve(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkLimited(b *testing.B) {
	for _, k := range []int{3, 10} {
		for _, n := range []int{20, 60} {
			r := splitMix(7000 + n)
			w, m := random(&r, n, k, false)
			p := limited(w, m, &r)
			b.Run(fmt.Sprintf("%dx%d", n, k), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := Solve(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
