package envy

import (
	"math"
	"testing"
)

// The interior point needs no CLP: with the rows of the nearest tenants alone it comes close to the
// certified optimum.
func TestTheInteriorPointComesCloseToTheOptimum(t *testing.T) {
	w, m := seeded(100, false)
	p := scaled(w, m)
	q := newInterior(p, near(p, 15))
	if !q.solve(1e-4) {
		t.Fatal("it does not get there")
	}
	if got := total(w, m, q.y); math.Abs(got/1112.179442-1) > 1e-2 {
		t.Errorf("got %.6f", got)
	}
}
