package preset_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
)

// A build without CLP divides by every preset that the registry does not say so, whatever the engine
// asks: jobs alone, with deadlines and equal speeds. By those that it names it fails.
func TestPresetsWithoutTheSolver(t *testing.T) {
	if lp.Available {
		t.Skip("only a build without COIN-OR CLP shows which presets need it")
	}
	failed := map[string]bool{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		k := 1 + r.IntN(3)
		p := policy.Problem{Entities: []policy.Entity{{Weight: 1}, {Weight: 2}}}
		for range k {
			p.Models = append(p.Models, policy.Model{Name: "m", GPUs: float64(1 + r.IntN(4)), Price: float64(1 + r.IntN(3))})
		}
		m := policy.Market{Models: p.Models}
		for id := range 1 + r.IntN(5) {
			speed := make([]float64, k)
			for j := range speed {
				speed[j] = float64(r.IntN(3))
			}
			p.Jobs = append(p.Jobs, policy.Job{ID: int64(id), Gang: 1 + r.IntN(2), Weight: 1, Speed: speed, Steps: float64(1 + r.IntN(100)),
				Within: float64(r.IntN(2) * 50), Elapsed: 1, ElapsedAlone: 1, Entity: id % 2})
			m.Tenants = append(m.Tenants, policy.Tenant{Name: "t", Weight: 1, Kind: policy.Kind{Speedup: speed, Demand: float64(1 + r.IntN(8))}})
		}
		for _, name := range policy.Names() {
			s, err := policy.Gavel(name, p, policy.Options{Eligible: true})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			failed["gavel:"+name] = failed["gavel:"+name] || strings.Contains(s.Why, lp.ErrNone.Error())
		}
		for name, divide := range map[string]func(policy.Market) (policy.Parts, error){"coop": policy.OEFCooperative, "noncoop": policy.OEFNonCooperative} {
			s, err := divide(m)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			failed["oef:"+name] = failed["oef:"+name] || strings.Contains(s.Why, lp.ErrNone.Error())
		}
	}
	for name, is := range failed {
		if row, ok := preset.Of(name); is != (ok && row.Solver) { // a policy of the papers that is no preset needs none
			t.Errorf("%s: it fails without CLP: %v; the registry says %v", name, is, row.Solver)
		}
	}
}
