package policy

import (
	"slices"
	"testing"
)

func sameParts(t *testing.T, got, want [][]float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for l := range want {
		for j := range want[l] {
			if d := got[l][j] - want[l][j]; d > tolerance || d < -tolerance {
				t.Errorf("got %v, want %v", got, want)
				return
			}
		}
	}
}

var (
	ones2 = []float64{1, 1}
	three = [][]float64{{1, 2}, {1, 3}, {1, 4}} // W of equation 1
	two   = [][]float64{{1, 2}, {1, 5}}         // W of equation 6
)

// OEF §2.4, equations 1 and 3: "u3 prefers u2's allocation", in Gandiva_fair's division and
// in Gavel's, though both give everybody at least what its share would. Equation 3 is
// not Pareto-efficient: "u2 can trade with u1 to obtain higher efficiency without hurting
// anyone".
func TestOEFEquations1And3OthersAllowEnvy(t *testing.T) {
	needsCLP(t)
	m := market(three, ones2)
	for name, c := range map[string]struct {
		x         [][]float64
		efficient bool
	}{
		"Gandiva_fair": {[][]float64{{1, 4. / 45}, {0, 7. / 15}, {0, 4. / 9}}, true},
		"Gavel":        {[][]float64{{10. / 11, 1. / 11}, {1. / 11, 5. / 11}, {0, 5. / 11}}, false},
	} {
		f := audit(t, m, parts(c.x))
		if f.Envy[2][1] <= 1 || min(f.Incentive[0], f.Incentive[1], f.Incentive[2]) < 1 {
			t.Errorf("%s: u3 sees %v in u2's part; shares are worth %v", name, f.Envy[2][1], f.Incentive)
		}
		if (f.Slack < 1e-9) != c.efficient {
			t.Errorf("%s: the sum could rise by %v with nobody losing", name, f.Slack)
		}
	}
}

// OEF §2.4, equation 2: X* = (1, 0; 0, .5; 0, .5) and E* = (1, 1.5, 2).
func TestOEFEquation2MoreWithoutEnvy(t *testing.T) {
	needsCLP(t)
	p := must(t, OEFCooperative, market(three, ones2))
	sameParts(t, p.GPUs, [][]float64{{1, 0}, {0, .5}, {0, .5}}, 1e-9)
	if !near(p.Objective, 4.5, 1e-9) {
		t.Errorf("the sum is %v, not 4.5", p.Objective)
	}
}

// OEF §3.1.1, equation 6: X = (1, .25; 0, .75), a sum of 5.25. If u1 says 4, X^l = (1, .375; 0,
// .625): "1.75 for u1 and is 16.7% higher", "from 5.25 to 4.875". Both lying ends at the equal
// division: u1 has 1.5, u2 has 3.
func TestOEFEquation6EnvyFreenessRewardsLies(t *testing.T) {
	needsCLP(t)
	m := market(two, ones2)
	p := must(t, OEFCooperative, m)
	sameParts(t, p.GPUs, [][]float64{{1, .25}, {0, .75}}, 1e-9)
	if !near(p.Objective, 5.25, 1e-9) {
		t.Errorf("the sum is %v, not 5.25", p.Objective)
	}
	after := must(t, OEFCooperative, m.lie(0, 2))
	sameParts(t, after.GPUs, [][]float64{{1, .375}, {0, .625}}, 1e-9)
	if sum := m.total(&after); !near(sum, 4.875, 1e-9) {
		t.Errorf("the lie leaves a sum of %v, not 4.875", sum)
	}
	gain, err := Misreport(OEFCooperative, m, p, 0, 2)
	if err != nil || !near(gain, 1.75/1.5-1, 1e-9) {
		t.Errorf("u1 gains %v by the lie (%v), not 16.7%%", gain, err)
	}
	same := must(t, OEFCooperative, market([][]float64{{1, 5}, {1, 5}}, ones2))
	sameParts(t, same.GPUs, [][]float64{{.5, .5}, {.5, .5}}, 1e-9)
}

// OEF Figure 2 and footnotes 3 and 4: (1, .25; 0, .75); if the first says 3, (1, .33; 0, .67),
// so envy-freeness at the largest sum is not strategy-proof (Theorem 3.2). The
// non-cooperative program is: the same lie costs there.
func TestOEFFigure2Conflicts(t *testing.T) {
	needsCLP(t)
	m := market([][]float64{{1, 2}, {1, 4}}, ones2)
	p := must(t, OEFCooperative, m)
	sameParts(t, p.GPUs, [][]float64{{1, .25}, {0, .75}}, 1e-9)
	sameParts(t, must(t, OEFCooperative, m.lie(0, 1.5)).GPUs, [][]float64{{1, 1. / 3}, {0, 2. / 3}}, 1e-9)
	if gain, err := Misreport(OEFCooperative, m, p, 0, 1.5); err != nil || gain <= 0 {
		t.Errorf("the lie gains %v (%v)", gain, err)
	}
	q := must(t, OEFNonCooperative, m)
	if gain, err := Misreport(OEFNonCooperative, m, q, 0, 1.5); err != nil || gain >= 0 {
		t.Errorf("the lie gains %v (%v) where all have the same throughput", gain, err)
	}
}

// OEF §4.2.3: u2 of equation 6 at weight 2 has (0, 2/3), u1 (1, 1/3).
func TestOEF423Weights(t *testing.T) {
	m := market(two, ones2)
	m.Tenants[1].Weight = 2
	sameParts(t, must(t, OEFNonCooperative, m).GPUs, [][]float64{{1, 1. / 3}, {0, 2. / 3}}, 1e-9)
	replicas := must(t, OEFNonCooperative, market([][]float64{{1, 2}, {1, 5}, {1, 5}}, ones2))
	if !near(replicas.Objective, 5, 1e-9) {
		t.Errorf("the sum of replicas is %v, not 5", replicas.Objective)
	}
}

// OEF §4.2.4: u1 of equation 6 brings jobs of (1, 3) as well: its kinds are (1, .11) and (0,
// .41), half its weight each; u2 has twice (0, .24).
func TestOEF424KindsOfJobs(t *testing.T) {
	m := market(two, ones2)
	u1, u2 := &m.Tenants[0], m.Tenants[1]
	u1.Others = []Kind{{Speedup: []float64{1, 3}, Demand: inf}}
	p := must(t, OEFNonCooperative, m)
	sameParts(t, append(slices.Clone(p.Kinds[0]), p.Kinds[1]...), [][]float64{{1, 4. / 37}, {0, 15. / 37}, {0, 18. / 37}}, 1e-9)
	sameParts(t, p.GPUs, [][]float64{{1, 19. / 37}, {0, 18. / 37}}, 1e-9)
	// Both kinds have the same throughput, and together what u2 has (§6.2.3).
	if a, b := worth(u1.Speedup, p.Kinds[0][0]), worth(u2.Speedup, p.GPUs[1]); !near(2*a, b, 1e-9) {
		t.Errorf("a kind of u1 has %v, u2 has %v", a, b)
	}
}
