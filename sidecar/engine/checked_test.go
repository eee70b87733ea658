package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// A snapshot that says that a job is as it was, though it asks for more now, makes a plan that differs from that of Decide. The check finds it
// within 64 rounds: the plan of Decide holds, with one event. Rounds that tell the truth have none.
func TestAPlanFromWrongMemoryIsFound(t *testing.T) {
	set := simtest.Product()
	w := simtest.New(t, set, simtest.Nodes("n", "v100", 2, 8), "x", "y")
	w.Loop.Brief, w.Lend = true, true
	for n := range 12 {
		w.Virtual.Submit(sim.Work{User: "u", Account: string("xy"[n%2]), Partition: "gpu", Request: simtest.Gang(4), Runs: 100 * cluster.Hour})
	}
	var c engine.Checked
	decided, found, lying := 0, 0, false
	w.Loop.Decide = func(s cluster.Snapshot) cluster.Plan {
		decided++
		if lying {
			s.Cases = slices.Clone(s.Cases)
			for i := range s.Cases {
				if x := &s.Cases[i]; x.Was > 0 && x.Job.State == cluster.Waiting {
					x.Job.Request.Size = cluster.Whole(1000)
				}
			}
		}
		anew := engine.Decide(s)
		p := c.Decide(s)
		if len(p.Events) == 0 || p.Events[len(p.Events)-1].Kind != cluster.EventDecisionDiffers {
			if !lying && encode(p) != encode(anew) {
				t.Fatalf("round %d: the plan is\n%s\nand that of Decide\n%s", s.Round, encode(p), encode(anew))
			}
			return p
		}
		found++
		if !lying {
			t.Fatalf("a right plan is said to differ: %+v", p.Events)
		}
		if p.Events = p.Events[:len(p.Events)-1]; encode(p) != encode(anew) {
			t.Fatalf("round %d: the plan is\n%s\nand that of Decide\n%s", s.Round, encode(p), encode(anew))
		}
		lying = false
		return p
	}
	for decided < 100 {
		w.Submit("x", 1, 1, 100*cluster.Hour) // each round has news
		w.Run(10 * cluster.Second)
	}
	if found > 0 {
		t.Fatalf("%d of %d right plans were said to differ", found, decided)
	}
	lying = true
	for until := decided + 64; decided < until; {
		w.Submit("y", 1, 1, 100*cluster.Hour)
		w.Run(10 * cluster.Second)
	}
	if found != 1 {
		t.Errorf("a wrong plan was found %d times in 64 rounds", found)
	}
}
