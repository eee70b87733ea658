package envy

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// For two tenants and two models, of all divisions on a grid that break no row none has a sum above the
// bound, and the answer is hardly below the best where it is proven to be the best.
func TestNoDivisionIsAboveTheBound(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		r := splitMix(int(rapid.Uint32().Draw(t, "seed")))
		w, m := random(&r, 2, 2, false)
		p := limited(w, m, &r)
		caps := append([]float64(nil), p.Cap...)
		y, bound, err := Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Value(y) > bound*(1+1e-9) {
			t.Fatalf("the sum is %v, its bound %v", p.Value(y), bound)
		}
		const steps = 16
		best, z := 0.0, make([]float64, 4)
		p.Cap = caps
		for at := range steps * steps * steps * steps {
			for i := range z {
				z[i] = 2 * float64(at%steps) / (steps - 1)
				at /= steps
			}
			if z[0]+z[2] > 2 || z[1]+z[3] > 2 || p.Value(z) <= best {
				continue
			}
			if p.marginal = p.marginals(z); p.fits(z) == nil {
				best = p.Value(z)
			}
		}
		if best > bound*(1+1e-9) {
			t.Fatalf("a division has a sum of %v, above the bound of %v", best, bound)
		}
		if p.Value(y) >= bound*(1-proven) && best > p.Value(y)*(1+2*proven) {
			t.Fatalf("the sum is %v, and %v can be had", p.Value(y), best)
		}
	})
}

// Caps above what any part can be never bind: the answer is that without them.
func TestCapsThatCannotBindAreNone(t *testing.T) {
	needsCLP(t)
	r := splitMix(7)
	w, m := random(&r, 60, 3, false)
	free, capped := scaled(w, m), scaled(w, m)
	for i := range capped.Cap {
		capped.Cap[i] = capped.most() * (1.01 + r.float())
	}
	want, _, err := Solve(free)
	if err != nil {
		t.Fatal(err)
	}
	got, bound, err := Solve(capped)
	if err != nil {
		t.Fatal(err)
	}
	if value := free.Value(want); math.Abs(capped.Value(got)/value-1) > 1e-9 || math.Abs(bound/value-1) > 1e-9 {
		t.Errorf("the sum is %v and its bound %v; without caps it is %v", capped.Value(got), bound, value)
	}
	for l := range free.Cap {
		if gpus := dot(free.Unit, row(want, 3, l)); gpus > free.most() {
			t.Errorf("a part has %v GPUs, and should have at most %v", gpus, free.most())
		}
	}
}

// Also where the interior point proves nothing there is a bound.
func TestThereIsAlwaysABound(t *testing.T) {
	r := splitMix(3)
	w, m := random(&r, 8, 3, false)
	p := limited(w, m, &r)
	n, k := p.size()
	p.Own[0] = math.NaN() // so it does not get there
	if q, _ := p.approach(); q != nil {
		t.Fatal("the interior point gets to an optimum of NaN")
	}
	p.Own[0] = 1
	if bound := p.bound(make([]float64, n), nil, nil, make([]float64, k)); !(bound >= p.Value(p.equal())) || math.IsInf(bound, 1) {
		t.Errorf("the bound without multipliers is %v", bound)
	}
}
