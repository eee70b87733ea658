package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// stops is a world with a stop budget and one tenant that waits beside another.
func stops(t *testing.T) *world {
	set := simtest.Product()
	set.StopAllowance, set.StopOverheadMilli, set.StopTotalMilli = 15*minute, 20, 20
	return newWorld(t, set, []int{4}, "a", "b")
}

// untilNotice runs until a job has got its notice.
func (w *world) untilNotice(id cluster.JobID) {
	for len(w.done(cluster.Notify, id)) == 0 {
		w.Run(10 * second)
	}
}

// A requeue by the owner is nobody's preemption: no stop of the job's, no work that a stop destroyed, no money of the pool's. Only the
// lease ends, and the time limit begins anew, as in Slurm.
func TestARequeueByItsOwnerIsNobodysPreemption(t *testing.T) {
	w := stops(t)
	id := w.submit("a", 4, 10*hour, func(j *sim.Work) { j.Limit, j.Saves, j.Every = 5*hour, sim.Periodic, hour })
	w.Run(4*hour + 50*minute)
	money := w.Last.State.Ledger.Pools[0].Stops
	for n := 1; n <= 2; n++ {
		w.Requeue(id)
		w.Run(3 * minute)
		r := w.Record(id)
		if r.Others == nil || r.Others.Count != n || r.Others.Cause != cluster.ByOwner || !r.RequeuedByOthers() || r.Stops != 0 || r.Spent != 0 || r.Lost != 0 || r.MostLost != 0 || r.Stopping != nil {
			t.Fatalf("requeue %d: %+v, others %+v", n, r, r.Others)
		}
		if at := w.Now().Sub(r.Others.At); at < 2*minute || at > 4*minute {
			t.Errorf("requeue %d: it was %s ago", n, at)
		}
		w.Run(10 * minute)
		w.state(id, cluster.Running)
		if j := w.Job(id); j.Limit != 5*hour {
			t.Errorf("attempt %d has a limit of %s", n+1, j.Limit)
		}
	}
	if got := w.Last.State.Ledger.Pools[0].Stops; got < money {
		t.Errorf("the pool paid %d GPU-ms for them", money-got)
	}
	if own := w.Record(id).Conduct; own == nil || own.Ours || own.Attempts != 2 {
		t.Errorf("conduct %+v", own)
	}
	w.books()
}

// A stop by fairlease is its own, also if the job requeues itself at the notice; the time limit goes on.
func TestAStopIsOurs(t *testing.T) {
	for _, itself := range []bool{false, true} {
		w := stops(t)
		id := w.submit("a", 4, 10*hour, func(j *sim.Work) { j.Limit, j.Saves = 5*hour, sim.AtNotice })
		w.Run(hour)
		w.submit("b", 4, hour, nil)
		w.untilNotice(id)
		if itself {
			w.Requeue(id)
		}
		w.Run(5 * minute)
		r := w.Record(id)
		if r.Restarts != 1 || r.Stops != 1 || r.Others != nil || r.RequeuedByOthers() || r.Conduct == nil || !r.Conduct.Ours {
			t.Errorf("itself %v: %+v, others %+v", itself, r, r.Others)
		}
		w.Run(3 * hour)
		if j := w.Job(id); j.State != cluster.Running || j.Limit > 4*hour {
			t.Errorf("itself %v: %s with a limit of %s", itself, j.State, j.Limit)
		}
	}
}

// A node that fails within the notice of a job does what nobody ordered. So does an owner whose job is only observed, or whose notice ended
// long before the requeue, while fairlease was away.
func TestOthersWithinANotice(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world, cluster.JobID)
		cause  cluster.RequeueCause
	}{
		"node fails": {func(w *world, _ cluster.JobID) { w.SetNode("n01", "down") }, cluster.ByNodeFailure},
		"observed":   {func(w *world, id cluster.JobID) { w.Rules.Mode = loop.Observe; w.Requeue(id) }, cluster.BySlurm},
	} {
		w := stops(t)
		id := w.submit("a", 4, 10*hour, func(j *sim.Work) { j.Saves = sim.AtNotice })
		w.Run(hour)
		w.submit("b", 4, hour, nil)
		w.untilNotice(id)
		c.change(w, id)
		w.Run(2 * minute)
		if r := w.Record(id); r.Restarts != 1 || r.Stops != 0 || r.Spent != 0 || r.Lost != 0 || r.Others == nil || r.Others.Cause != c.cause {
			t.Errorf("%s: %+v, others %+v", name, r, r.Others)
		}
	}
}
