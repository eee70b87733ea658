package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// A tenant has jobs of 1 GPU and one of 8, another has jobs of 1 GPU: thirteen jobs want the 8 GPUs of a node. By every mechanism both tenants get
// what they are due, every job runs, and none keeps the others out. A tenant with one job cannot be paid back for the terms of the large one.
func TestNoGangStarvesAmongOthers(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"oef:noncoop", "gavel:las", "gandiva-fair", "drf"}[:seeds.Some(2, 4)] {
		for _, mine := range []int{1, 11, 6, 12, 2, 4}[:seeds.Some(2, 6)] {
			for _, mechanism := range cluster.Mechanisms {
				t.Run(fmt.Sprint(by, mine, mechanism), func(t *testing.T) {
					t.Parallel()
					set := simtest.Product()
					set.Divide, set.DivideJobs, set.Mechanism, set.Interval = by, preset.OfJobs(by), mechanism, cluster.Minute
					set.StopAllowance, set.StopOverheadMilli = 0, 0
					w := simtest.New(t, set, simtest.Nodes("v", "v100", 1, 8), "a", "b")
					w.Gate, w.Loop.Divide = set.GateTTL, engine.Divide
					if mine < 12 {
						w.Submit("b", 12-mine, 1, forever)
					}
					small := w.Submit("a", mine, 1, forever)
					large := w.Submit("a", 1, 8, forever)[0]
					w.Run(24 * hour)
					part := func(id cluster.JobID, gpus int) float64 {
						return float64(w.Alloc(id)) / float64(cluster.Times(gpus, 24*hour))
					}
					if got := part(large, 8); got < 0.03 || mine > 2 && got > 0.2 {
						t.Errorf("the job of 8 GPUs ran %.3f of the time", got)
					}
					for i, id := range small {
						if got := part(id, 1); got < 0.2 {
							t.Errorf("job %d of 1 GPU ran %.3f of the time", i, got)
						}
					}
					for _, row := range w.Last.State.Ledger.Tenants {
						if got := float64(row.Alloc) / float64(max(row.Due, 1)); row.Due > 0 && (got < 0.85 || got > 1.1) {
							t.Errorf("%s got %.3f of what it was due", row.Tenant, got)
						}
					}
				})
			}
		}
	}
}
