package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

func neverSaves(j *sim.Work) { j.Saves, j.Command = sim.Never, cluster.Untyped }

// Jobs that save nothing have twice as much work as GPUs. All end within their budgets, and the tenants
// share.
func TestJobsThatNeverSaveAllEnd(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
	var ids []cluster.JobID
	for range 48 {
		for _, tenant := range []string{"a", "b"} {
			ids = append(ids, w.submit(tenant, 2, hour, neverSaves))
		}
	}
	for range 12 {
		w.Run(hour)
		for r := range w.Last.State.All() {
			if most := w.Settings.StopAllowance + r.Ran*cluster.Span(w.Settings.StopOverheadMilli)/1000 + w.Settings.Interval; r.Spent > most {
				t.Errorf("job %s: its %d stops cost %s, at most %s are within its budget", r.ID, r.Stops, r.Spent, most)
			}
		}
	}
	near(t, "half of the GPU time", w.Used("a"), w.Used("b"), 5)
	w.Run(4 * hour)
	for _, id := range ids {
		if j := w.Job(id); j.State != cluster.Done && j.State != "" {
			t.Errorf("job %s is %s after 16 hours; 12 are all the work", id, j.State)
		}
	}
}

// A gang needs GPUs held by jobs that cannot be stopped. The GPUs are gathered as they become free. Young
// jobs run there meanwhile, but jobs that would stay do not.
func TestGPUsAreGatheredForAGang(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4, 4, 4}, "a", "b")
	for k := range 40 { // one ends every half hour
		w.submit("a", 4, 2*hour+cluster.Span(k%4)*30*minute, neverSaves)
	}
	w.Run(hour)
	gang := w.submit("b", 8, 3*hour, func(j *sim.Work) { neverSaves(j); j.Request.Nodes, j.Request.PerNode = 2, 4 })
	w.Run(40 * minute)
	if v := w.Reason(gang); v.Code != cluster.ReasonGather && w.Alloc(gang) == 0 {
		t.Errorf("nothing is gathered for the gang: %+v", v)
	}
	w.Run(30 * minute)
	young := w.submit("a", 1, 5*minute, neverSaves)
	w.Run(12 * minute)
	if w.Alloc(young) == 0 && w.Alloc(gang) == 0 {
		t.Errorf("a young job does not run where GPUs are gathered: %+v", w.Reason(young))
	}
	for hours := 0; w.Job(gang).Start == 0; hours++ {
		if hours == 6 {
			t.Fatalf("after 6 hours the gang has not started: %+v", w.Reason(gang))
		}
		w.Run(hour)
	}
}

// A tenant binds at most its share while another waits. Its jobs that outlive their budget are stopped once.
func TestALaneIsNotBound(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a", "b")
	first := w.Submit("a", 0, 1, 0)
	for range 8 {
		first = append(first, w.submit("a", 1, 10*hour, neverSaves))
	}
	w.Run(5 * minute)
	for range 8 {
		w.submit("b", 1, 10*hour, neverSaves)
	}
	w.Run(3 * hour)
	stopped := 0
	for _, id := range first {
		if r := w.Record(id); r.Stops > 1 {
			t.Errorf("job %s was stopped %d times", id, r.Stops)
		} else {
			stopped += r.Stops
		}
	}
	if stopped < 4 {
		t.Errorf("%d of a's eight jobs were stopped while they were young; b is due four GPUs", stopped)
	}
	near(t, "half of the GPUs in the long run", w.Used("b"), w.Used("a"), 15)
}

// GPUs idle for a gang at most a twentieth of its wait, or 30 minutes if that is longer. Jobs that have run
// for long are likely to go on for as long. A gang behind them gets gathered GPUs only after a long wait of
// its own.
func TestGatheringTakesNoLongerThanTheWaitIsWorth(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	long := []cluster.JobID{w.submit("a", 4, 60*hour, neverSaves), w.submit("a", 4, 60*hour, neverSaves)}
	w.Run(2 * hour)
	gang := w.submit("b", 8, hour, func(j *sim.Work) { neverSaves(j); j.Request.Nodes, j.Request.PerNode = 2, 4 })
	gathers := func() bool {
		return slices.ContainsFunc(w.Last.State.Claims, func(c cluster.Claim) bool { return c.Gathers && c.Job == w.Record(gang).Key })
	}
	for waited := cluster.Span(0); waited < 20*hour; waited += hour {
		w.Run(hour)
		if gathers() {
			t.Fatalf("GPUs are gathered after %s for jobs that have run for %s", waited, w.Now().Sub(w.Job(long[0]).Start))
		}
	}
	for hours := 0; w.Job(gang).Start == 0; hours++ {
		if hours == 80 {
			t.Fatalf("the gang has not started: %+v", w.Reason(gang))
		}
		w.Run(hour)
	}
}

// Gathering ends no lease in its term, and takes no GPUs that are kept for another gang until leases end.
func TestGatheringEndsNoTerm(t *testing.T) {
	for name, others := range map[string]bool{"the only claim": false, "beside another's claim": true} {
		t.Run(name, func(t *testing.T) {
			s := boundary(4)
			s.Settings = simtest.Product()
			s.Cases = []cluster.Case{runsOn(1, "a", 1, "n01"), runsOn(2, "a", 1, "n01"), runsOn(3, "a", 2, "n01"), waits(4, "b", 2), waits(5, "b", 2)}
			s.Cases[2].Control, s.Cases[2].Job.Requeueable = cluster.NoReclaim, false
			if !others {
				s.Cases = slices.Delete(s.Cases, 3, 4)
			}
			end := s.Now.Add(s.Settings.Term)
			for i := range 3 {
				l := leaseOf(&s, i)
				l.Granted, l.Start, l.End = s.Now.Add(-minute), s.Now.Add(-minute), end
				s.Leases = append(s.Leases, l)
				s.Cases[i].Job.Declares.Manner = cluster.SavesOnTerm
			}
			two := []cluster.Holding{{Node: "n01", Model: "v100", Size: cluster.Whole(2), CPUs: 2, MemoryMB: 2048}}
			s.Claims = []cluster.Claim{{Job: 5, Pool: "v100", Nodes: two, At: s.Now, Made: s.Now, Gathers: true}}
			if others {
				s.Claims = slices.Insert(s.Claims, 0, cluster.Claim{Job: 4, Pool: "v100", Nodes: two, At: end, Made: s.Now})
			}
			p := engine.Decide(s)
			for _, a := range p.Actions {
				if a.Verb == cluster.Notify || a.Verb == cluster.Reclaim {
					t.Errorf("%+v, want no lease to be ended before %s", a, end)
				}
			}
			if got := p.State.Claims; len(got) != len(s.Claims) || got[0].At != end || got[0].Gathers || others && !got[1].Gathers {
				t.Errorf("claims are %+v, want one at %s, and that of job 5 to be gathered for beside another", got, end)
			}
		})
	}
}

// GPUs that are kept for a gang until a job there may be stopped go to no job that would hold them longer.
func TestAClaimIsNotGivenToJobsThatStay(t *testing.T) {
	set := simtest.Product()
	set.StopAllowance, set.StartCost = minute, 10*cluster.Second // a job that saves nothing cannot be stopped at all
	w := newWorld(t, set, []int{8}, "a", "b", "c")
	w.submit("a", 4, 20*hour, func(j *sim.Work) { j.Saves, j.Every = sim.Periodic, 2*hour })
	w.Run(20 * minute)
	gang := w.submit("b", 8, hour, nil)
	w.Run(20 * minute)
	claim := slices.IndexFunc(w.Last.State.Claims, func(c cluster.Claim) bool {
		return c.Job == w.Record(gang).Key && c.At > w.Now().Add(30*minute)
	})
	if claim < 0 {
		t.Fatalf("the gang has no claim for when the other job may be stopped: %+v, %+v", w.Last.State.Claims, w.Reason(gang))
	}
	at := w.Last.State.Claims[claim].At
	soon := w.Now().Add(minute) // so that Slurm does not start them before the first round
	stays := w.submit("c", 4, 20*hour, func(j *sim.Work) { neverSaves(j); j.Begin = soon })
	short := w.submit("c", 2, 5*minute, func(j *sim.Work) { neverSaves(j); j.Begin, j.Limit = soon, 10*minute })
	for w.Now() < at.Add(5*minute) {
		w.Run(minute)
		if w.Job(stays).State == cluster.Running && w.Job(gang).Start == 0 {
			t.Fatalf("%s before the gang's time a job that cannot be stopped has its GPUs", at.Sub(w.Now()))
		}
	}
	if j := w.Job(short); j.State != cluster.Done && j.State != "" {
		t.Errorf("a short job did not run in front of the gang: %+v", w.Reason(short))
	}
	w.state(gang, cluster.Running)
}
