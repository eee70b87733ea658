package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// GPUs may be kept for a job for a while before the jobs on them get their notice. From the notice on, that is a promise for the end of their
// leases, as it is where no GPUs were kept before. Else these jobs had notice again and again, and the job that was next never started.
func TestAClaimBecomesAPromiseWithTheNotice(t *testing.T) {
	set := simtest.Product()
	set.Term, set.Interval, set.MinLease, set.Notice, set.GrantTimeout, set.GateTTL = 20*second, second, 6*second, 3*second, 15*second, 2*minute
	set.Threshold, set.CreditCap, set.StartCost = second, minute, second
	w := newWorldOn(t, set, append(simtest.Nodes("v", "v100", 2, 4), simtest.Nodes("k", "k80", 2, 4)...), "nlp", "vision")
	w.Gate = 2 * minute
	on := func(model string) func(*sim.Work) {
		return func(j *sim.Work) { j.Limit, j.Request.Model = hour, model }
	}
	for i := range 10 {
		w.submit("nlp", 1+i%2, hour, on(""))
		w.Run(second)
	}
	w.Run(5 * second)
	for range 3 {
		w.submit("vision", 4, hour, on(""))
	}
	id := w.submit("vision", 2, hour, on("v100"))
	claimed, begun := cluster.Instant(0), 0
	for range 200 {
		w.Run(second)
		j := w.Job(id)
		switch r := w.Reason(id); {
		case j.State == cluster.Running:
			claimed, begun = 0, max(begun, 1+j.Restarts)
		case r.Code == cluster.ReasonClaim && claimed == 0:
			claimed = w.Now()
		case r.Code != cluster.ReasonClaim:
			claimed = 0
		}
		if claimed > 0 && w.Now().Sub(claimed) > 2*set.Term {
			t.Fatalf("at %s GPUs have been kept for it for two terms: %+v", w.Now().Sub(simtest.Start), w.Reason(id))
		}
	}
	if begun < 3 {
		t.Errorf("in ten terms it has begun to run %d times", begun)
	}
}
