package engine_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// starts runs until a job runs, or for so long at most, and gives how long that took; !ok = it does not run.
func (w *world) starts(id cluster.JobID, most cluster.Span) (took cluster.Span, ok bool) {
	for begin := w.Now(); w.Now().Sub(begin) < most; w.Run(2 * second) {
		if w.Job(id).State == cluster.Running {
			return w.Now().Sub(begin), true
		}
	}
	return most, false
}

// A job that is requeued in the first minute of its start, not by fairlease, has failed to start. It waits twice as long after each such
// requeue, for at most an hour, and explain tells why. A start that lasts ends that.
func TestARequeueAtTheStartIsAFailedStart(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a")
	id := w.submit("a", 4, 10*hour, nil)
	for n, least := range []cluster.Span{0, minute, 2 * minute, 4 * minute, 8 * minute, 16 * minute, 32 * minute, hour, hour} {
		took, ok := w.starts(id, 2*hour)
		if r := w.Record(id); !ok || took < least-30*second || took > least+5*minute || r.Failed != n || r.RequeuedByOthers() != (n > 0) {
			t.Fatalf("start %d: it took %s, want about %s; %+v", n+1, took, least, r)
		}
		w.Run(5 * second)
		w.Requeue(id)
		w.Run(20 * second)
		if got := w.why(id, cluster.ReasonFailed); got.Note != cluster.RequeuedAtStart || got.Until <= w.Now() {
			t.Errorf("requeue %d: %+v", n+1, got)
		}
	}
	w.starts(id, 2*hour)
	w.Run(2 * minute)
	w.state(id, cluster.Running)
	if r := w.Record(id); r.Failed != 0 || r.SlurmSaid != "" {
		t.Errorf("after a start that lasted: %+v", r)
	}
	w.Requeue(id)
	if took, ok := w.starts(id, hour); !ok || took > 4*minute || w.Record(id).Failed != 0 {
		t.Errorf("a requeue after two minutes: %s, %+v", took, w.Record(id))
	}
	w.books()
}

// A requeue at the start counts once: neither the end of the next attempt nor a grant that Slurm does not start is another one.
func TestARequeueAtTheStartCountsOnce(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	again := func(runs cluster.Span) cluster.JobID {
		id := w.submit("a", 4, runs, nil)
		w.starts(id, hour)
		w.Run(5 * second)
		w.Requeue(id)
		w.Run(20 * second)
		if r := w.Record(id); r.Failed != 1 {
			t.Fatalf("after the requeue: %+v", r)
		}
		return id
	}
	ends := again(20 * minute)
	w.starts(ends, hour)
	w.Run(22 * minute)
	if r := w.Record(ends); r.State != cluster.Done || r.Failed != 0 {
		t.Errorf("after the end: %+v", r)
	}

	stuck := again(10 * hour)
	w.alter = func(s *cluster.Observation) {
		for i := range s.Jobs {
			if j := &s.Jobs[i]; j.ID == stuck {
				j.State, j.Holds, j.Start, j.PendingReason = cluster.Waiting, nil, 0, "Resources"
			}
		}
	}
	w.Run(4 * minute)
	if r := w.Record(stuck); r.Failed < 2 || r.SlurmSaid != "Resources" {
		t.Errorf("after a grant that Slurm did not start: %+v", r)
	}
}

// A renewal is no start: what counts is when the attempt began. A requeue just after a renewal is no failed start, and one at the start is, also
// where the lease was renewed meanwhile.
func TestARenewalIsNoStart(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a")
	id := w.submit("a", 4, 10*hour, nil)
	w.starts(id, hour)
	for begin := w.Now(); w.Record(id).Terms < 2; w.Run(second) {
		if w.Now().Sub(begin) > 2*hour {
			t.Fatal("the lease is not renewed")
		}
	}
	w.Run(w.lease(id).Start.Sub(w.Now()) + 10*second)
	w.Requeue(id)
	if took, ok := w.starts(id, hour); !ok || took > 4*minute || w.Record(id).Failed != 0 {
		t.Errorf("a requeue ten seconds after a renewal: %s, %+v", took, w.Record(id))
	}

	set := simtest.Product()
	set.Term, set.MinLease, set.MinLeaseTerms, set.Notice, set.Interval = minute, 20*second, 0, 15*second, second
	w = newWorld(t, set, []int{4}, "a")
	w.Run(2 * second)
	id = w.submit("a", 4, 10*hour, nil)
	w.starts(id, hour)
	w.Run(w.lease(id).End.Sub(w.Now()) - 35*second)
	w.Requeue(id)
	w.starts(id, hour)
	for begin := w.Now(); w.lease(id).Start <= w.Now(); w.Run(second) {
		if w.Now().Sub(begin) > 18*second {
			t.Fatal("the lease is not renewed soon after the start")
		}
	}
	w.Run(second)
	failed := w.Record(id).Failed
	w.Requeue(id)
	w.Run(2 * second)
	if r := w.Record(id); r.Failed != failed+1 {
		t.Errorf("a requeue at the start, after the lease was renewed: %+v", r)
	}
}

// A failed node, an order of fairlease's, and Slurm where it preempts or could not launch the job do not make a start a failed one, however soon
// they come.
func TestOtherEndsOfYoungStarts(t *testing.T) {
	for name, end := range map[string]func(*world, cluster.JobID){
		"node fails": func(w *world, _ cluster.JobID) { w.SetNode("n01", "down") },
		"observed":   func(w *world, id cluster.JobID) { w.Rules.Mode = loop.Observe; w.Requeue(id) },
		"cannot be launched": func(w *world, id cluster.JobID) {
			w.alter = func(s *cluster.Observation) {
				for i := range s.Jobs {
					if j := &s.Jobs[i]; j.State == cluster.Waiting {
						j.PendingReason = "JobHeldUser: launch failed requeued held"
					}
				}
			}
			w.Requeue(id)
		},
	} {
		w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
		id := w.submit("a", 4, 10*hour, nil)
		w.starts(id, hour)
		w.Run(5 * second)
		end(w, id)
		w.Run(minute)
		if r := w.Record(id); r.Restarts != 1 || r.Others == nil || r.Failed != 0 || len(w.Last.State.Causes) > 0 {
			t.Errorf("%s: %+v, others %+v, causes %+v", name, r, r.Others, w.Last.State.Causes)
		}
	}
}

// restless lets time pass in which jobs of a user are requeued a few seconds after each start, not by fairlease. It returns the count of
// their starts, and of the notices to others for them.
func (w *world) restless(user string, length cluster.Span) (starts, notices int) {
	check := w.Check
	defer func() { w.Check = check }()
	w.Check = func(r loop.Report) {
		check(r)
		for _, a := range r.Plan.Actions {
			if a.Verb == cluster.Notify && w.owner(r, a.Reason.For) == "b" {
				notices++
			}
		}
	}
	for end := w.Now().Add(length); w.Now() < end; w.Run(10 * second) {
		for x := range w.Last.State.All() {
			if x.User == user && w.Job(x.ID).State == cluster.Running {
				w.Requeue(x.ID)
				starts++
			}
		}
	}
	return starts, notices
}

// Jobs that requeue themselves as soon as they start, again and again, cost the others little: the honest tenant keeps nearly all GPUs,
// few idle, and few of its jobs get a notice for them.
func TestAFloodOfRequeuesAtTheStart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
		w.Submit("a", 20, 1, 40*hour)
		w.Run(20 * minute)
		began, used := w.Now(), w.Used("a")
		sizes := rapid.SampledFrom([][]int{{1}, {4}, {8}, {1, 2, 4, 8}}).Draw(rt, "GPUs")
		flood := rapid.IntRange(1, 12).Draw(rt, "jobs")
		for i := range flood {
			w.submit("b", sizes[i%len(sizes)], hour, func(j *sim.Work) { j.User = "flood" })
		}
		starts, notices := w.restless("flood", 2*hour)
		all := cluster.Times(16, w.Now().Sub(began))
		rt.Logf("%d starts, %d notices, honest %.1f %%, idle %.1f %%", starts, notices, 100*float64(w.Used("a")-used)/float64(all), 100*float64(w.Last.State.Ledger.Pools[0].Idle)/float64(all))
		if got := w.Used("a") - used; got < all*95/100 {
			rt.Errorf("the honest tenant used %d %% of the GPUs, want nearly all", 100*got/all)
		}
		if idle := w.Last.State.Ledger.Pools[0].Idle; idle > all*5/100 {
			rt.Errorf("%d %% of the GPUs idled", 100*idle/all)
		}
		if starts > 24 || notices > 40 {
			rt.Errorf("%d starts of %d jobs in two hours, and %d notices to others for them", starts, flood, notices)
		}
	})
}

// Where two jobs of a user's were requeued at their start, one of their kind is tried at a time, and another user's are not held back. Once
// one stays, others follow step by step, and soon all run.
func TestAClassThatStaysOpens(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8, 8}, "b")
	var jobs []cluster.JobID
	for range 12 {
		jobs = append(jobs, w.submit("b", 1, 10*hour, nil))
	}
	other := w.submit("b", 1, 10*hour, func(j *sim.Work) { j.User = "other" })
	starts, _ := w.restless("b_user", 30*minute)
	w.state(other, cluster.Running)
	if starts > 24 {
		t.Errorf("%d starts of 12 jobs in half an hour", starts)
	}
	if x := w.Last.State.Causes; len(x) != 1 || x[0].Reason != cluster.RequeuedAtStart || x[0].User != "b_user" || x[0].Admits != 1 {
		t.Fatalf("causes %+v, want one of the user's jobs, with one probe", x)
	}
	if got := w.Reason(jobs[11]); got.Code != cluster.ReasonRefused && got.Code != cluster.ReasonFailed || got.Note != cluster.RequeuedAtStart {
		t.Errorf("job %s: %+v", jobs[11], got)
	}
	w.Run(hour)
	for _, id := range jobs {
		w.state(id, cluster.Running)
	}
	w.books()
}
