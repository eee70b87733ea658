package policy

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Two tenants, a GPU of each model, and what each column of the audit is by hand.
func TestAuditByHand(t *testing.T) {
	needsCLP(t)
	m := market([][]float64{{1, 2}, {1, 4}}, []float64{1, 1})
	m.Tenants[1].Weight = 3
	// The first has what is best for the second.
	f := audit(t, m, parts([][]float64{{0, 1}, {1, 0}}))
	// At a weight of 1 the second's GPU is a third of one to the first: 1/3 over 2; the second
	// would have three times the first's: 12 over 1.
	if got := [][]float64{{1, 1. / 6}, {12, 1}}; !near(f.Envy[0][1], got[0][1], 1e-12) || !near(f.Envy[1][0], got[1][0], 1e-12) || f.Envy[0][0] != 1 {
		t.Errorf("envy %v, not %v", f.Envy, got)
	}
	// A quarter of both models is .75 to the first; three quarters are 3.75 to the second.
	if !near(f.Incentive[0], 2/.75, 1e-12) || !near(f.Incentive[1], 1/3.75, 1e-12) {
		t.Errorf("incentive %v", f.Incentive)
	}
	// The second can take half of the fast GPU for the slow one: 1 + .5·2 = 2 for the first, 2 for
	// the second; 3 becomes 4.
	if !near(f.Slack, 1./3, 1e-9) {
		t.Errorf("slack %v", f.Slack)
	}
}

// A tenant that can use one GPU does not envy a second.
func TestAuditKnowsDemand(t *testing.T) {
	needsCLP(t)
	m := market([][]float64{{1, 2}, {1, 2}}, []float64{4, 4})
	m.Tenants[0].Demand = 1
	f := audit(t, m, parts([][]float64{{0, 1}, {4, 3}}))
	if f.Envy[0][1] != 1 || f.Incentive[0] != 1 {
		t.Errorf("envy %v, incentive %v", f.Envy, f.Incentive)
	}
	// Nothing, and something to be had.
	f = audit(t, m, parts([][]float64{{0, 0}, {4, 3}}))
	if !math.IsInf(f.Envy[0][1], 1) || f.Incentive[0] != 0 || !near(f.Slack, 2./10, 1e-9) {
		t.Errorf("envy %v, incentive %v, slack %v", f.Envy, f.Incentive, f.Slack)
	}
}

func TestAuditRefusesPartsOfAnotherMarket(t *testing.T) {
	m := market([][]float64{{1, 2}, {1, 4}}, []float64{1, 1})
	for name, c := range map[string]struct {
		x    [][]float64
		says string
	}{
		"a tenant too few": {[][]float64{{0, 1}}, "1 tenants, 2 in"},
		"a model too few":  {[][]float64{{0, 1}, {0}}, "1 models of 2"},
		"below nothing":    {[][]float64{{0, 1}, {1, -1}}, "-1 GPUs"},
		"no number":        {[][]float64{{0, 1}, {1, math.NaN()}}, "NaN GPUs"},
		"too many":         {[][]float64{{0, 1}, {1, 1}}, "2 of 1 GPUs of model model1"},
	} {
		if _, err := Audit(m, parts(c.x)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Misreport(OEFCooperative, m, parts(c.x), 0, 1.2); err == nil {
			t.Errorf("%s: a misreport of it", name)
		}
	}
	good := parts([][]float64{{0, 1}, {1, 0}})
	for _, l := range []int{-1, 2} {
		if _, err := Misreport(OEFCooperative, m, good, l, 1.2); err == nil {
			t.Errorf("tenant %d lies", l)
		}
	}
	if _, err := Misreport(OEFCooperative, m, good, 0, math.NaN()); err == nil {
		t.Error("a factor that is no number")
	}
}

// Claiming a fifth more never gains where all have the same throughput; saying the truth
// changes nothing in either program.
func TestMisreports(t *testing.T) {
	needsCLP(t)
	rapid.Check(t, func(t *rapid.T) {
		m := taste{weights: true}.market(t)
		p := must(t, OEFNonCooperative, m)
		for l := range m.Tenants {
			if gain, err := Misreport(OEFNonCooperative, m, p, l, 1.2); err != nil || gain > 1e-8 {
				t.Fatalf("%d gains %v (%v)", l, gain, err)
			}
		}
		for _, divide := range []Division{OEFCooperative, OEFNonCooperative} {
			if gain, err := Misreport(divide, m, must(t, divide, m), 0, 1); err != nil || gain != 0 {
				t.Fatalf("the truth gains %v (%v)", gain, err)
			}
		}
	})
}
