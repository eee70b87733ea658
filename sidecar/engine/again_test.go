package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A decision is repeated at the same instant where nothing has happened in between: no action was carried out, and no new
// allocation has come. Then all leases stay as they are. (A claim may come a round after the leases that it waits for were
// renewed.)
func TestDecidingAgainChangesNothing(t *testing.T) {
	presets := []string{preset.Astraea, "gavel:las", "oef:coop", "gandiva-fair", "oef:noncoop", "gavel:las-fifo", "drf"}
	for _, by := range presets[:seeds.Some(3, len(presets))] {
		if row, _ := preset.Of(by); row.Solver && !lp.Available {
			continue
		}
		rounds := 0
		for seed := range seeds.Of(t, 20) {
			rng := rand.New(rand.NewPCG(seed, 7))
			w := newMarket(t, 2, 2, preset.OfJobs(by), engine.Divide, "a", "b", "c")
			if w.Settings.Divide = by; by == preset.Astraea {
				w.Settings.Divide = ""
			}
			w.Settings.Mechanism = cluster.Mechanisms[seed%uint64(len(cluster.Mechanisms))]
			check, last := w.Check, ""
			w.Check = func(r loop.Report) {
				check(r)
				came := false
				if d := r.Plan.State.Allocation; d != nil { // accounts are settled by the entitlements before it
					came, last = d.Digest != last, d.Digest
				}
				if came || r.Quiet || len(r.Plan.Actions) > 0 || r.Plan.AllocationRequest != nil {
					return
				}
				_, again, err := w.Loop.Preview(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				rounds++
				if d := cmp.Diff(r.Plan.State.Leases, again.State.Leases); d != "" {
					t.Errorf("%s, seed %d, at %s (-first +again):\n%s", by, seed, r.Plan.At, d)
				}
			}
			for range 40 {
				w.submit([]string{"a", "b", "c"}[rng.IntN(3)], []int{1, 1, 2, 4}[rng.IntN(4)], cluster.Span(1+rng.IntN(90))*minute, func(k *sim.Work) {
					k.Comment = fmt.Sprintf("kind=%s,steps/s.k80=1,steps/s.v100=%d", []string{"x", "y", "z"}[rng.IntN(3)], 1+rng.IntN(4))
				})
				w.Run(cluster.Span(rng.IntN(1200)) * second)
			}
		}
		if rounds == 0 {
			t.Errorf("%s: no round was repeated", by)
		}
	}
}
