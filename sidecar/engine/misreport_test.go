package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Two tenants are alike, and their jobs do not report progress, so that nothing refutes a declaration. A tenant gains
// nothing from declaring that it cannot run on the reference model: it counts there as the other tenant does. It does gain
// from declaring the fast model slower than it is: oef:noncoop is proof against declarations above the truth only, and
// trials need reports.
func TestDeclarationsThatNothingRefutes(t *testing.T) {
	for _, c := range []struct {
		k80, v100   int // steps/s
		least, most float64
	}{{10, 40, 1, 1}, {0, 40, 0.5, 1.01}, {10, 80, 0.5, 1}, {20, 40, 1.1, 2}, {10, 20, 1.1, 2}} {
		w := newMarket(t, 1, 1, false, engine.Divide, "a", "b")
		w.Settings.Divide = "oef:noncoop"
		for range 8 {
			w.submit("a", 1, forever, func(k *sim.Work) { k.Comment = fmt.Sprintf("kind=x,steps/s.k80=%d,steps/s.v100=%d", c.k80, c.v100) })
			w.submit("b", 1, forever, func(k *sim.Work) { k.Comment = "kind=x,steps/s.k80=10,steps/s.v100=40" })
		}
		w.Run(term)
		truly := func(tenant string) float64 { return float64(w.due(tenant, "k80") + 4*w.due(tenant, "v100")) }
		if got := 2 * truly("a") / (truly("a") + truly("b")); got < c.least-1e-3 || got > c.most+1e-3 {
			t.Errorf("with %d and %d steps/s it gets %.3f of its fair throughput, want %g to %g", c.k80, c.v100, got, c.least, c.most)
		}
	}
}

// In random markets no declaration of a tenant, whether too high, too low, 0 or missing, raises its true throughput by
// more than 1 % once all kinds have been tried on all models. The log has the gains before that.
func TestMisreportsDoNotPay(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for _, by := range []string{"oef:noncoop", "oef:coop", "gandiva-fair", "drf", "gavel:las"} {
		worst := simtest.Gain{}
		for seed := range seeds.Of(t, 5) {
			gains, err := simtest.DrawMarket(seed, !preset.OfJobs(by)).Gains(by)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", by, seed, err)
			}
			for _, g := range gains {
				if g.Before > worst.Before {
					worst = g
				}
				if g.After > 1 {
					t.Errorf("%s, seed %d: %+v gains %.1f %%", by, seed, g.Misreport, g.After)
				}
			}
		}
		t.Logf("%s: before trials the best misreport gains %.1f %%: %+v", by, worst.Before, worst.Misreport)
	}
}
