package engine_test

import (
	"fmt"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// Two tenants, weighted three to one, have mixed gangs in two small pools. Claims for gangs, and jobs that
// take turns, must not distort the tenants' shares, and no job may starve.
func TestClaimsDoNotOutweighTheWeights(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	type gang struct {
		gpus  int
		model string
	}
	for name, mix := range map[string][]gang{
		"any":   {{1, ""}, {4, ""}, {2, ""}, {4, ""}, {1, ""}, {2, ""}},
		"some":  {{1, ""}, {1, ""}, {2, ""}, {4, ""}, {1, ""}, {2, ""}, {2, "v100"}, {2, "k80"}},
		"typed": {{1, "v100"}, {1, "v100"}, {2, "v100"}, {4, "v100"}, {1, "k80"}, {2, "k80"}, {4, "k80"}, {3, ""}},
	} {
		for _, completing := range []cluster.Span{second, 0, 2 * second} {
			t.Run(fmt.Sprintf("%s/%s", name, completing), func(t *testing.T) {
				set := simtest.Product()
				set.JobOrder = cluster.ByRho
				set.Interval, set.Term, set.MinLease, set.Notice = second, 20*second, 6*second, 3*second
				set.StopAllowance, set.StopOverheadMilli = 0, 0 // terms are shorter than a start
				set.Threshold, set.GrantTimeout, set.CreditCap = second, 15*second, 2*minute
				nodes := append(simtest.Nodes("v", "v100", 2, 4), simtest.Nodes("k", "k80", 2, 4)...)
				w := simtest.New(t, set, nodes, "nlp", "vision")
				w.SetShares("nlp", 3)
				w.Completing = completing
				for _, g := range mix {
					for _, tenant := range []string{"nlp", "vision"} {
						req := simtest.Gang(g.gpus)
						req.Model = g.model
						w.Virtual.Submit(sim.Work{User: tenant, Account: tenant, Partition: "gpu", Request: req, Runs: forever})
					}
				}
				w.Run(400 * set.Term)
				near(t, "a quarter", w.Used("vision"), (w.Used("vision")+w.Used("nlp"))/4, 5)
				for r := range w.Last.State.All() {
					if due, _ := cluster.DueBy(r, w.Last.At); r.Alloc < due/2 {
						t.Errorf("job %s has had %.0f %% of its due in 400 terms", r.ID, 100*float64(r.Alloc)/float64(due))
					}
				}
			})
		}
	}
}
