package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func limited(limit cluster.Span) func(*sim.Work) {
	return func(w *sim.Work) { w.Limit = limit }
}

// The tenant with the least usage for its share goes first, and so does the user within it.
func TestMultifactorFairTree(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "slurm-multifactor", baseline.Options{}), simtest.V100s(1, 4), "a", "b")
	as := func(name string) func(*sim.Work) { return func(w *sim.Work) { w.User = name } }
	w.Queue("a", 4, hour, as("ann"))
	w.Run(minute)
	ann := w.Queue("a", 4, hour, as("ann"))
	abe := w.Queue("a", 4, hour, as("abe"))
	ben := w.Queue("b", 4, hour, as("ben"))
	w.Run(5 * hour)
	// ben's tenant has used nothing; next is abe, who has used nothing of the tenant's share.
	if b, e, a := w.Started(ben), w.Started(abe), w.Started(ann); b > e || e > a || b < 59*minute || a < 0 {
		t.Errorf("ben started after %s, abe after %s, ann after %s; want this order", b, e, a)
	}
}

// Usage decays by halves: old usage counts less than recent usage, even if it was more.
func TestMultifactorForgets(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "slurm-multifactor", baseline.Options{}), simtest.V100s(1, 1), "old", "new")
	w.Queue("old", 1, 10*cluster.Day, nil)
	w.Run(60 * cluster.Day)
	w.Queue("new", 1, 5*cluster.Day, nil) // 10 days, halved more than thrice since, are less
	w.Run(5*cluster.Day - minute)
	fresh := w.Queue("new", 1, hour, nil)
	former := w.Queue("old", 1, hour, nil)
	w.Run(cluster.Day)
	if o, n := w.Started(former), w.Started(fresh); o < 0 || o > n {
		t.Errorf("the tenant of long ago started after %s, the other after %s; want it first", o, n)
	}
}

// EASY backfill: the first waiting job has a claim on nodes from the end of running jobs' limits;
// others overtake only without delaying it.
func TestMultifactorBackfill(t *testing.T) {
	w := simtest.Compare(t, simtest.Baseline(t, "slurm-multifactor", baseline.Options{}), simtest.V100s(2, 4), "a")
	w.Queue("a", 4, 2*hour, limited(2*hour)) // on one node
	w.Queue("a", 2, 2*hour, limited(2*hour)) // on half of the other
	w.Run(minute)
	head := w.Queue("a", 8, hour, func(w *sim.Work) {
		w.Request.Nodes, w.Request.PerNode, w.Limit = 2, 4, hour
	})
	long := w.Queue("a", 1, 3*hour, limited(3*hour))
	short := w.Queue("a", 1, hour, limited(hour))
	unlimited := w.Queue("a", 1, minute, nil)
	w.Run(minute)
	w.WantRunning("while the head waits", map[cluster.JobID]bool{head: false, long: false, short: true, unlimited: false})
	w.Run(2 * hour)
	w.WantRunning("when the nodes are free", map[cluster.JobID]bool{head: true})
	if got := w.Started(head); got > 2*hour+minute {
		t.Errorf("the head started after %s, want no delay beyond two hours", got)
	}
}
