package policy

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/tests/seeds"
)

// The largest smallest level with pairs is proven by the prices of its program. A level 1e-8 lower is refused, and no prices
// give a bound below a level that can be had.
func TestAWorseLevelIsRefused(t *testing.T) {
	needsCLP(t)
	tried := 0
	rapid.Check(t, func(t *rapid.T) {
		d := newDivision(drawn(t), Options{}, false)
		defer d.keep(nil)
		need := d.in.ones(true)
		if !slices.ContainsFunc(need, func(x float64) bool { return x > 0 }) {
			return
		}
		v := d.solve(d.in.space(nil), need)
		if _, err := v.rise(need); err != nil {
			t.Fatal(err)
		}
		x := v.p.Values(nil)
		if err := proven(v.value(x, need), v.bound(need)); err != nil {
			t.Fatal(err)
		}
		worse := slices.Clone(x)
		for c := range worse {
			worse[c] *= 1 - 1e-8
		}
		if err := proven(v.value(worse, need), v.bound(need)); !errors.Is(err, errGap) {
			t.Fatalf("a lower level: %v", err)
		}
		clear(v.duals)
		if err := proven(v.value(x, need), v.bound(need)); !errors.Is(err, errGap) {
			t.Fatalf("no prices: %v", err)
		}
		if err := v.prove(need); err != nil {
			t.Fatalf("not mended by another solution: %v", err)
		}
		for i := range v.duals {
			v.duals[i] *= rapid.Float64Range(0, 2).Draw(t, "dual")
		}
		if value, bound := v.value(x, need), v.bound(need); bound < value*(1-1e-12) {
			t.Fatalf("level %v above its bound %v", value, bound)
		}
		tried++
	})
	if tried < seeds.Some(1, 5) {
		t.Errorf("%d programs were tried", tried)
	}
}
