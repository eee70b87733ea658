package profile

import (
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// speedupsOf gives a kind's speedups on k80, p100 and v100.
func speedupsOf(b *Book, kind cluster.Kind) (out [3]float64) {
	for i, s := range b.Speedups(kind, 1, []string{"k80", "p100", "v100"}) {
		out[i] = s.Value
	}
	return out
}

// told is declare for the administrator.
func told(t *testing.T, b *Book, kind cluster.Kind, rates map[string]float64) {
	t.Helper()
	for model, rate := range rates {
		must(t, b.Declare(cluster.Profile{Kind: kind, Model: model, Gang: 1, Rate: rate, Basis: File}))
	}
}

// near reports whether numbers agree to the twelve digits that speedups have.
func near(a, b [3]float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-9*max(b[i], 1) {
			return false
		}
	}
	return true
}

// All kinds are compared with one model: the slowest that at least half of the tenants can use, or the administrator's. A
// kind that does not run there, or is unknown there, counts as the mean of the other tenants does.
func TestTheReferenceModel(t *testing.T) {
	open := func(reference string) *Book {
		s := Default()
		s.Estimate, s.Reference = false, reference
		b := New(s, nil, nil)
		told(t, b, "a/x", map[string]float64{"k80": 10, "p100": 20, "v100": 40})
		told(t, b, "b/x", map[string]float64{"k80": 2, "p100": 6, "v100": 32})
		declare(t, b, "c/x", "", 1, map[string]float64{"k80": 0, "p100": 50, "v100": 160})
		declare(t, b, "d/x", "", 1, map[string]float64{"v100": 7})
		told(t, b, "e/x", map[string]float64{"k80": 4, "p100": 1})
		return b
	}
	mean := func(xs ...float64) float64 { // geometric
		product := 1.0
		for _, x := range xs {
			product *= x
		}
		return math.Pow(product, 1/float64(len(xs)))
	}
	p100, v100 := mean(2, 3, 0.25), mean(4, 16) // of a, b and e over k80
	unit := mean(50/p100, 160/v100)             // of c, on k80
	for kind, want := range map[cluster.Kind][3]float64{
		"a/x": {1, 2, 4}, "b/x": {1, 3, 16}, "e/x": {1, 0.25, 1},
		"c/x": {0, 50 / unit, 160 / unit}, "d/x": {1, 1, v100}, "f/unknown": {1, 1, 1},
	} {
		if got := speedupsOf(open(""), kind); !near(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	if got := speedupsOf(open("v100"), "a/x"); !near(got, [3]float64{0.25, 0.5, 1}) {
		t.Errorf("with v100 as the reference: %v", got)
	}
	if got := speedupsOf(open("a100"), "a/x"); !near(got, [3]float64{1, 2, 4}) {
		t.Errorf("with a reference that the cluster lacks: %v", got)
	}
	b := open("")
	for _, tenant := range []string{"a", "b", "e"} {
		told(t, b, cluster.KindOf(tenant, "x"), map[string]float64{"k80": 0})
	}
	if got := speedupsOf(b, "a/x"); !near(got, [3]float64{0, 1, 2}) {
		t.Errorf("after most tenants cannot use k80: %v", got)
	}
	observe(b, "a/x", "k80", 5, 3, 0) // trials refute the declared 0
	observe(b, "b/x", "k80", 5, 3, 0)
	if got := speedupsOf(b, "a/x"); !near(got, [3]float64{1, 4, 8}) {
		t.Errorf("after trials: %v", got)
	}
}

// Declarations of jobs neither choose the reference nor compare models for another tenant's kind. A kind with a declared 0
// that nothing compares counts as ten times as fast elsewhere.
func TestDeclarationsCompareNothing(t *testing.T) {
	b := New(Default(), nil, nil)
	declare(t, b, "a/x", "", 1, map[string]float64{"k80": 0, "p100": 50, "v100": 160})
	declare(t, b, "b/x", "", 1, map[string]float64{"p100": 50, "v100": 160})
	check := func(when string) {
		t.Helper()
		if a, other := speedupsOf(b, "a/x"), speedupsOf(b, "b/x"); !near(a, [3]float64{0, 10, 32}) || !near(other, [3]float64{1, 1, 3.2}) {
			t.Errorf("%s: speedups %v and %v", when, a, other)
		}
	}
	check("alone")
	for _, tenant := range []string{"c", "d", "e"} {
		declare(t, b, cluster.KindOf(tenant, "x"), "", 1, map[string]float64{"k80": 9, "p100": 90, "v100": 2})
	}
	check("beside what others declare")
	observe(b, "c/x", "k80", 1, 2, 0)
	observe(b, "c/x", "v100", 90, 2, 0)
	check("beside too few samples")
	observe(b, "c/x", "v100", 90, 3, 0)
	check("beside one measured model")
	if got := speedupsOf(b, "d/x"); !near(got, [3]float64{4.5, 45, 1}) {
		t.Errorf("one measured model is the reference for others: speedups %v", got)
	}
	for model, rate := range map[string]float64{"k80": 1, "p100": 2, "v100": 4} {
		observe(b, "c/x", model, rate, 3, 0)
	}
	unit := math.Sqrt(50 / 2.0 * 160 / 4)
	if got := speedupsOf(b, "a/x"); !near(got, [3]float64{0, 50 / unit, 160 / unit}) {
		t.Errorf("beside what was measured: speedups %v", got)
	}
}

// Tenants with declarations of jobs only have no vote on the reference.
func TestDeclarationsAreNoVotes(t *testing.T) {
	b := New(Default(), nil, nil)
	told(t, b, "a/x", map[string]float64{"k80": 1, "p100": 2, "v100": 4})
	for _, tenant := range []string{"b", "c"} {
		told(t, b, cluster.KindOf(tenant, "x"), map[string]float64{"k80": 0, "p100": 2, "v100": 4})
	}
	for _, tenant := range []string{"d", "e", "f"} {
		declare(t, b, cluster.KindOf(tenant, "x"), "", 1, map[string]float64{"k80": 1, "p100": 2, "v100": 4})
	}
	if got := speedupsOf(b, "a/x"); !near(got, [3]float64{0.5, 1, 2}) {
		t.Errorf("speedups %v, want 0.5, 1 and 2", got)
	}
}

// A tenant with many kinds does not outvote others on the reference.
func TestEveryTenantCountsOnce(t *testing.T) {
	b := New(Default(), nil, nil)
	for _, tenant := range []string{"a", "b"} {
		told(t, b, cluster.KindOf(tenant, "x"), map[string]float64{"k80": 1, "p100": 2, "v100": 4})
	}
	for _, name := range []string{"p", "q", "r", "s", "t"} {
		told(t, b, cluster.KindOf("liar", name), map[string]float64{"k80": 0, "p100": 1, "v100": 1.5})
	}
	if got := speedupsOf(b, "a/x"); !near(got, [3]float64{1, 2, 4}) {
		t.Errorf("speedups %v, want 1, 2 and 4", got)
	}
}
