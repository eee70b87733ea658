package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// In mode canary of one account, jobs of others are left entirely alone: those that run are not stopped for the account's, those that wait start by
// Slurm's own order, and a gate that the submit plugin has set for one is opened. The account's jobs share what the others leave, and take turns there.
func TestCanaryLeavesOthersAlone(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.Rules.Mode, w.Rules.Canary, w.Rules.Chosen = loop.Canary, []string{"gpu"}, loop.Chosen{Accounts: []string{"a"}}
	w.Run(10 * second)
	other := w.submit("b", 4, 100*hour, nil)
	w.Run(minute)
	w.state(other, cluster.Running)
	first := w.submit("a", 4, 100*hour, nil)
	late := w.submit("a", 4, 100*hour, nil)
	w.Run(6 * hour)
	w.state(other, cluster.Running)
	w.untouched(other)
	w.why(other, cluster.ReasonUntouched)
	if n := len(w.done(cluster.Reclaim, first, late)); n < 2 {
		t.Errorf("the account's jobs took turns %d times in six hours", n)
	}
	for _, st := range w.reports[len(w.reports)-1].Plan.Tenants {
		if st.Tenant == "a" && st.Entitlement != 4*cluster.WholeGPU {
			t.Errorf("the account is due %v, and the others leave 4 GPUs", st.Entitlement)
		}
	}
	gated := w.submit("b", 4, hour, nil)
	w.alter = func(s *cluster.Observation) {
		s.Unchanged = false
		for i := range s.Jobs {
			if j := &s.Jobs[i]; j.ID == gated && len(w.done(cluster.Open, gated)) == 0 {
				j.Marked, j.Eligible, j.MarkedGate = true, s.Now.Add(5*minute), s.Now.Add(5*minute)
			}
		}
	}
	w.Run(minute)
	if len(w.done(cluster.Open, gated)) == 0 {
		t.Error("the plugin's gate of another's job is not opened")
	}
}

// A job that leaves the canary by a reload keeps its GPUs and has its gate opened, as one that is excluded.
func TestAJobLeavesTheCanary(t *testing.T) {
	w := withLicense(t, true, []int{4}, "a", "b")
	w.Rules.Mode, w.Rules.Canary = loop.Canary, []string{"gpu"}
	w.Run(10 * second)
	runs := w.submit("a", 4, 100*hour, nil)
	w.Run(minute)
	waits := w.submit("b", 4, hour, func(j *sim.Work) { j.User = "ann" })
	w.Run(minute)
	w.state(runs, cluster.Running)
	if !w.Job(waits).Locked {
		t.Fatalf("it has no gate: %+v", w.Job(waits))
	}
	w.Rules.Chosen.Users = []string{"nobody"}
	w.Run(minute)
	if w.Job(waits).Locked {
		t.Error("a job that is outside of the canary keeps its gate")
	}
	if w.Run(2 * hour); len(w.done(cluster.Reclaim)) > 0 {
		t.Error("a job outside of the canary was stopped")
	}
	w.state(runs, cluster.Running)
}
