package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// Mixed gangs of a tenant with a quarter of two small pools: claims for its gangs
// must not give it more than its due, and every job must be served.
func TestClaimsDoNotOutweighTheWeights(t *testing.T) {
	set := simtest.Product()
	set.Interval, set.Term, set.MinLease, set.Notice = cluster.Second, 20*cluster.Second, 6*cluster.Second, 3*cluster.Second
	set.Threshold, set.GrantTimeout = cluster.Second, 15*cluster.Second
	set.CreditCap = 2 * cluster.Minute
	nodes := append(simtest.Nodes("v", "v100", 2, 4), simtest.Nodes("k", "k80", 2, 4)...)
	w := simtest.New(t, set, nodes, "nlp", "vision")
	w.SetShares("nlp", 3)
	for _, gang := range []struct {
		gpus  int
		model string
	}{{1, ""}, {1, ""}, {2, ""}, {4, ""}, {1, ""}, {2, ""}, {2, "v100"}, {2, "k80"}} {
		for _, tenant := range []string{"nlp", "vision"} {
			req := simtest.Gang(gang.gpus)
			req.Model = gang.model
			w.Virtual.Submit(sim.Work{User: tenant, Account: tenant, Partition: "gpu", Request: req, Runs: 1000 * cluster.Hour})
		}
	}
	w.Run(16 * set.Term)
	for _, r := range w.Last.Memory.Records {
		if r.Terms == 0 {
			t.Errorf("job %s was never served in 16 terms", r.ID)
		}
	}
	t.Logf("16 terms: %.1f %% of what was used", 100*float64(w.Used("vision"))/float64(w.Used("vision")+w.Used("nlp")))
	w.Run(200 * set.Term)
	near(t, "a quarter", w.Used("vision"), (w.Used("vision")+w.Used("nlp"))/4, 6)
}
