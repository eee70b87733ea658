package baseline_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/baseline"
)

func limited(limit cluster.Span) func(*sim.Work) {
	return func(w *sim.Work) { w.Limit = limit }
}

// The tenant with the least usage for its share goes first, and so does the user within it.
func TestMultifactorFairTree(t *testing.T) {
	w := newWorld(t, scheduler(t, "slurm-multifactor", baseline.Options{}), nodes(1, 4), "a", "b")
	as := func(name string) func(*sim.Work) { return func(w *sim.Work) { w.User = name } }
	w.submit("a", 4, hour, as("ann"))
	w.Run(minute)
	ann := w.submit("a", 4, hour, as("ann"))
	abe := w.submit("a", 4, hour, as("abe"))
	ben := w.submit("b", 4, hour, as("ben"))
	w.Run(5 * hour)
	// ben's tenant has used nothing; next is abe, who has used nothing of the tenant's share.
	if b, e, a := w.started(ben), w.started(abe), w.started(ann); b > e || e > a || b < 59*minute || a < 0 {
		t.Errorf("ben started after %s, abe after %s, ann after %s; want this order", b, e, a)
	}
}

// Usage decays by halves: old usage counts less than recent usage, even if it was more.
func TestMultifactorForgets(t *testing.T) {
	w := newWorld(t, scheduler(t, "slurm-multifactor", baseline.Options{}), nodes(1, 1), "old", "new")
	w.submit("old", 1, 10*cluster.Day, nil)
	w.Run(60 * cluster.Day)
	w.submit("new", 1, 5*cluster.Day, nil) // 10 days, halved more than thrice since, are less
	w.Run(5*cluster.Day - minute)
	fresh := w.submit("new", 1, hour, nil)
	former := w.submit("old", 1, hour, nil)
	w.Run(cluster.Day)
	if o, n := w.started(former), w.started(fresh); o < 0 || o > n {
		t.Errorf("the tenant of long ago started after %s, the other after %s; want it first", o, n)
	}
}

// EASY backfill: the first waiting job has a claim on nodes from the end of running jobs' limits;
// others overtake only without delaying it.
func TestMultifactorBackfill(t *testing.T) {
	w := newWorld(t, scheduler(t, "slurm-multifactor", baseline.Options{}), nodes(2, 4), "a")
	w.submit("a", 4, 2*hour, limited(2*hour)) // on one node
	w.submit("a", 2, 2*hour, limited(2*hour)) // on half of the other
	w.Run(minute)
	head := w.submit("a", 8, hour, func(w *sim.Work) {
		w.Request.Nodes, w.Request.PerNode, w.Limit = 2, 4, hour
	})
	long := w.submit("a", 1, 3*hour, limited(3*hour))
	short := w.submit("a", 1, hour, limited(hour))
	unlimited := w.submit("a", 1, minute, nil)
	w.Run(minute)
	w.runs("while the head waits", map[cluster.JobID]bool{head: false, long: false, short: true, unlimited: false})
	w.Run(2 * hour)
	w.runs("when the nodes are free", map[cluster.JobID]bool{head: true})
	if got := w.started(head); got > 2*hour+minute {
		t.Errorf("the head started after %s, want no delay beyond two hours", got)
	}
}
