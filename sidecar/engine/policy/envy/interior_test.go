package envy

import (
	"errors"
	"math"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/tests/seeds"
)

// The interior point needs no CLP, and few of the n² rows: it gets to the certified optima, and its multipliers prove them.
func TestTheInteriorPointGetsToTheOptimum(t *testing.T) {
	for _, c := range optima[:seeds.Some(3, 7)] {
		if c.ordered {
			continue
		}
		w, m := seeded(c.n, false)
		p := scaled(w, m)
		q := newInterior(p, p.first())
		if !q.solve(exact / 4) {
			t.Fatalf("%d tenants: it does not get there", c.n)
		}
		if rows := len(q.pairs); rows > 20*c.n {
			t.Errorf("%d tenants: it takes %d rows", c.n, rows)
		}
		y, bound, err := p.central()
		if err != nil {
			t.Fatal(err)
		}
		if got := total(w, m, y); math.Abs(got-c.want) > 1e-9*c.want+5e-7 {
			t.Errorf("%d tenants: got %.10f, want %.10f", c.n, got, c.want)
		}
		if value := p.Value(y); bound < value || bound > value*(1+exact) {
			t.Errorf("%d tenants: the sum is %v, its bound %v", c.n, value, bound)
		}
	}
}

// A point before the optimum is no answer, and neither is one of another program.
func TestAPointThatIsNotTheBestIsRefused(t *testing.T) {
	w, m := seeded(100, false)
	p := scaled(w, m)
	q := newInterior(p, p.first())
	if !q.solve(1e-6) {
		t.Fatal("it does not get there")
	}
	if err := p.proves(q.y, q.bound()); err == nil {
		t.Error("1e-6 from the optimum is near enough")
	}
	if !q.solve(exact / 4) {
		t.Fatal("it does not get there")
	}
	if err := p.proves(q.y, q.bound()); err != nil {
		t.Error(err)
	}
	p.Gain[3] *= 1.001
	if err := p.proves(q.y, q.bound()); !errors.Is(err, errGap) {
		t.Errorf("with another gain: %v", err)
	}
}

// Where tastes are alike to 1e-5 the interior point may not get there, and the simplex does.
func TestTheSimplexSolvesWhatTheInteriorPointDoesNot(t *testing.T) {
	needsCLP(t)
	failed := 0
	for seed := range 2 {
		r := splitMix(seed)
		w, m := random(&r, 86, 10, false)
		for i := range w {
			for j := range w[i] {
				w[i][j] = 1 + 1e-5*r.float()
			}
		}
		p := scaled(w, m)
		if _, _, err := p.central(); err != nil {
			failed++
		}
		y, bound, err := Solve(p)
		if err == nil {
			err = p.proves(y, bound)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if failed == 0 {
		t.Error("the interior point gets to every optimum: nothing is shown")
	}
}

// Without CLP the interior point divides between many tenants all the same.
func TestManyTenantsNeedNoCLP(t *testing.T) {
	if lp.Available {
		t.Skip("this build has CLP: make check-nocgo tests one without")
	}
	w, m := seeded(100, false)
	if _, _, err := Solve(scaled(w, m)); err != nil {
		t.Error(err)
	}
}
