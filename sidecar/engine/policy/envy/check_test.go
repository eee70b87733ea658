package envy

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// An answer that breaks a row, and one that is not the best, are refused.
func TestASpoiledAnswerIsRefused(t *testing.T) {
	needsCLP(t)
	w, m := seeded(60, false)
	p := scaled(w, m)
	n, k := p.size()
	r := start(p)
	defer r.lp.Close()
	good, err := r.solve()
	if err != nil {
		t.Fatal(err)
	}
	most := slices.Index(good, slices.Max(good))
	for says, spoil := range map[string]func(y []float64){
		"a part of -1":                 func(y []float64) { y[7] = -1 },
		"a part of NaN":                func(y []float64) { y[7] = math.NaN() },
		"less than its floor":          func(y []float64) { clear(row(y, k, 3)) },
		"another":                      func(y []float64) { y[most] += 30 },
		"are given":                    func(y []float64) { plus(y, 1e-6, slices.Clone(y)) },
		"above what its tenant can us": func([]float64) { p.Cap[2] = 1e-3 },
	} {
		bad := slices.Clone(good)
		spoil(bad)
		if err := r.check(bad); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		p.Cap[2] = math.Inf(1)
	}
	if err := r.check(good); err != nil {
		t.Error(err)
	}
	// The equal division breaks no row.
	equal := slices.Repeat([]float64{1}, n*k)
	if err := p.fits(equal); err != nil {
		t.Error(err)
	}
	if err := r.check(equal); err == nil || !strings.Contains(err.Error(), "might be") {
		t.Errorf("the equal division: %v", err)
	}
	// The bound of another program is not this one's.
	r.lp.SetCost(n*k, 2*p.Gain[0])
	if err := r.lp.Solve(lp.Primal); err != nil {
		t.Fatal(err)
	}
	if err := r.check(good); err == nil {
		t.Error("multipliers of another program prove the answer")
	}
}
