package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// These tests check the orders of administrators: the mode, and overrides.

// Observe mode: "decide, record, change nothing". Leases follow the real state.
func TestObserveModeChangesNothing(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	w.Rules.Mode = loop.Observe
	runs := w.Submit("a", 2, 1, forever)
	w.Run(minute)
	waits := w.submit("b", 2, forever, nil)
	pinned := w.submit("b", 1, forever, func(j *sim.Work) { j.NodeList = []string{"n01"} })
	w.Run(5 * hour)
	for _, d := range w.did {
		if !d.Suppressed || !d.outcome.Skipped {
			t.Fatalf("in observe mode: %+v", d)
		}
	}
	if len(w.done(cluster.Grant, waits)) == 0 || len(w.done(cluster.Reclaim, runs...)) == 0 {
		t.Error("what it would do is not recorded")
	}
	for _, id := range runs {
		w.state(id, cluster.Running)
		terms := map[cluster.Instant]int{} // by the end of the lease
		for _, d := range w.done(cluster.Notify, id) {
			terms[d.Reason.Until]++
		}
		if len(terms) == 0 {
			t.Errorf("no notice of job %s is recorded", id)
		}
		for end, n := range terms {
			if n > 1 {
				t.Errorf("%d notices of job %s are recorded for the term that ends at %s", n, id, end.Sub(simtest.Start))
			}
		}
		if l := w.lease(id); l == nil || l.State != cluster.Active {
			t.Errorf("job %s runs and has the lease %+v", id, l)
		}
	}
	w.state(waits, cluster.Waiting)
	if l := w.lease(waits); l != nil {
		t.Errorf("a waiting job has the lease %+v", l)
	}
	// Actions that were not carried out leave no trace in the record.
	if r := w.Record(waits); r.Terms != 0 || r.Pinned || r.Gate != 0 || r.Failed != 0 {
		t.Errorf("remembered of a job that never had a lease: %+v", r)
	}
	if r := w.Record(runs[0]); r.Gate != 0 || r.Lost != 0 {
		t.Errorf("remembered of a job that was never reclaimed: %+v", r)
	}
	if got := w.Record(pinned).UserNodes; !slices.Equal(got, []string{"n01"}) {
		t.Errorf("the user's nodes are %v", got)
	}
	if w.Used("a") == 0 || w.Alloc(runs[0]) != w.Received(runs[0]) {
		t.Error("the books are not kept")
	}
	w.books()
}

// In canary mode, actions apply only to jobs of the named partitions. Decisions on other jobs are
// hypothetical, on the remaining GPUs.
func TestCanaryActsOnItsPartitionsOnly(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1, 1}, "a", "b")
	w.alter = func(s *cluster.Observation) { s.Nodes[1].Partitions = []string{"test"} }
	w.Rules.Mode, w.Rules.Partitions, w.Rules.Canary = loop.Canary, []string{"gpu", "test"}, []string{"test"}
	inTest := func(j *sim.Work) { j.Partition, j.NodeList = "test", []string{"n02"} }
	nodes := simtest.Nodes("n", "v100", 2, 1)
	nodes[1].Partitions = []string{"test"}
	w.Virtual = sim.NewVirtual(simtest.Start, nodes, []cluster.Account{{Name: "root"}, {Name: "a", Parent: "root", Shares: 1}, {Name: "b", Parent: "root", Shares: 1}})
	gpu := []cluster.JobID{w.submit("a", 1, forever, nil), w.submit("b", 1, forever, nil)}
	test := []cluster.JobID{w.submit("a", 1, forever, inTest), w.submit("b", 1, forever, inTest)}
	w.Run(3 * hour)
	for _, d := range w.did {
		if d.ID.ID != 0 && slices.Contains(gpu, d.ID) != d.Suppressed {
			t.Fatalf("in canary mode: %+v", d)
		}
	}
	// Tenant a has the GPU that is never taken from it, so b gets the managed one.
	if n := len(w.done(cluster.Reclaim, test[0])); n != 1 {
		t.Errorf("%d reclaims in the canary's partition, want one", n)
	}
	w.state(test[1], cluster.Running)
	w.state(gpu[0], cluster.Running)
	if w.Received(gpu[1]) != 0 {
		t.Error("outside the canary's partition somebody was moved")
	}
}

// "One switch stops all actions within one round": the only further actions undo leftovers of a grant that
// would not expire by themselves.
func TestSwitchingToObserveStopsAllWithinARound(t *testing.T) {
	for _, at := range []cluster.Span{14*minute + 30*second, 15 * minute, 15*minute + 5*second} { // noticed, handing over, handed over
		w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
		w.Settings.JobOrder = cluster.ByRho
		w.Submit("a", 4, 1, forever)
		w.Run(minute)
		w.Submit("b", 4, 1, forever)
		w.Run(at - minute)
		if w.Run(10 * second); len(w.done(cluster.Notify)) == 0 {
			t.Fatal("nothing was about to happen")
		}
		w.Rules.Mode, w.did = loop.Observe, nil
		w.Run(10 * second)
		w.givenBack()
		w.did = nil
		w.Run(2 * hour)
		for _, d := range w.did {
			if !d.outcome.Skipped {
				t.Errorf("switched at %s: still done: %+v", at, d.Action)
			}
		}
		w.Rules.Mode = loop.Act // on again
		w.Run(hour)
		if a, b := w.Used("a"), w.Used("b"); a == 0 || b == 0 {
			t.Errorf("switched on again: a has %d GPU-ms, b %d", a, b)
		}
		w.books()
	}
}

// givenBack fails unless no waiting job is pinned, no job or node is reserved by us, and no other action was
// carried out.
func (w *world) givenBack() {
	w.t.Helper()
	for _, d := range w.did {
		if !d.outcome.Skipped && (d.Reason.Code != cluster.ReasonTidy || !slices.Contains([]cluster.Verb{cluster.Open, cluster.Release, cluster.Unreserve}, d.Verb)) {
			w.t.Errorf("still done: %+v", d.Action)
		}
	}
	seen, err := w.Virtual.Observe(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, j := range seen.Jobs {
		if j.Reservation != "" || j.State == cluster.Waiting && !slices.Equal(j.NodeList, w.Record(j.ID).UserNodes) {
			w.t.Errorf("job %s, %s, is left with nodes %v and reservation %q", j.ID, j.State, j.NodeList, j.Reservation)
		}
	}
	for _, r := range seen.Reservations {
		if r.Ours {
			w.t.Errorf("reservation %s is left", r.Name)
		}
	}
}

// A job with a grant may not have started when we stop managing it, by the mode or by a rule. It then belongs
// to Slurm again. It has no pin and no gate, and asks for its user's own nodes again. Gates of other jobs are
// left to expire.
func TestWhoStopsActingGivesBackWhatItPinned(t *testing.T) {
	for what, stop := range map[string]func(*loop.Rules){
		"observe":  func(r *loop.Rules) { r.Mode = loop.Observe },
		"excluded": func(r *loop.Rules) { r.ExcludeUsers = []string{"b_user"} },
	} {
		w, _, _ := contested(t)
		third := w.submit("b", 1, forever, nil)
		own := w.submit("b", 1, forever, func(j *sim.Work) { j.NodeList = []string{"n01", "n02"} })
		w.Run(10 * second)
		w.order(cluster.Boost, "job", own.String(), 9)
		w.Run(13*minute + 40*second)
		hidden(w) // later grants on n01 do not start
		w.Run(30 * second)
		pinned := w.done(cluster.Grant)
		if len(pinned) == 0 || pinned[len(pinned)-1].Reservation == "" || w.Job(own).State != cluster.Waiting {
			t.Fatalf("%s: nothing is in the middle of a hand-over: %+v", what, pinned)
		}
		gate := w.Job(third).Eligible
		w.did = nil
		stop(&w.Rules)
		w.Run(20 * second)
		if what == "observe" {
			w.givenBack()
		}
		if j := w.Job(own); !slices.Equal(j.NodeList, []string{"n01", "n02"}) || j.Reservation != "" || j.Eligible > w.Now() {
			t.Errorf("%s: it is left with nodes %v, reservation %q, begin in %s", what, j.NodeList, j.Reservation, j.Eligible.Sub(w.Now()))
		}
		if n := len(w.done(cluster.Open, own)); n != 1 {
			t.Errorf("%s: given back %d times", what, n)
		}
		if got := w.Job(third).Eligible; got != gate {
			t.Errorf("%s: the gate of another waiting job was moved by %s", what, got.Sub(gate))
		}
	}
}

// A real hand-over is not mixed with an observed one on the same node. Its reservation must be made, and only
// for its own accounts.
func TestHandOversThatAreOnlyWatchedAreKeptApart(t *testing.T) {
	s := boundary(8)
	s.Cases = []cluster.Case{waits(1, "a", 1), waits(2, "b", 6), runsOn(3, "a", 4, "n01")}
	s.Cases[0].Control = cluster.ObserveOnly
	s.Leases = []cluster.Lease{leaseOf(&s, 2)}
	owe(&s, "a", 0)
	owe(&s, "b", cluster.Times(8, hour))
	var reserved []cluster.Action
	for _, a := range engine.Decide(s).Actions {
		if a.Verb == cluster.Reserve {
			reserved = append(reserved, a)
		}
		if a.Verb == cluster.Grant && a.Job == 1 && (a.Reservation != "" || !a.Suppressed) {
			t.Errorf("the watched job is granted with %+v", a)
		}
	}
	if len(reserved) != 1 || reserved[0].Suppressed || !slices.Equal(reserved[0].Accounts, []string{"b"}) {
		t.Errorf("reservations %+v, want one, made for tenant b", reserved)
	}
}

// An unused reservation of ours is deleted, but not in observe mode, because it may belong to another
// instance.
func TestOnlyWhoActsDeletesReservations(t *testing.T) {
	for _, touch := range []cluster.Control{cluster.FullControl, cluster.ObserveOnly} {
		s := boundary(4)
		s.Cases = []cluster.Case{waits(1, "a", 8)}
		s.Cases[0].Control = touch
		s.Reservations = []cluster.Reservation{{Name: cluster.ReservationPrefix + "7_1", Nodes: []string{"n01"}, Start: s.Now - 1, End: s.Now.Add(minute), Ours: true}}
		n := 0
		for _, a := range engine.Decide(s).Actions {
			if a.Verb == cluster.Unreserve && !a.Suppressed {
				n++
			}
		}
		if want := map[cluster.Control]int{cluster.FullControl: 1}[touch]; n != want {
			t.Errorf("%s: %d reservations deleted, want %d", touch, n, want)
		}
	}
}

// contested is a full cluster of two GPUs: tenant a runs two jobs, and b has two waiting jobs.
func contested(t *testing.T, change ...func(*world)) (w *world, runs, waits []cluster.JobID) {
	set := simtest.Product()
	set.RecallFirst, set.Threshold = false, minute
	w = newWorld(t, set, []int{2}, "a", "b")
	for _, c := range change {
		c(w)
	}
	runs = w.Submit("a", 2, 1, forever)
	w.Run(minute)
	return w, runs, w.Submit("b", 2, 1, forever)
}

func TestExemptJobsAreNeverReclaimed(t *testing.T) {
	for _, scope := range []struct{ scope, name string }{{"job", "1"}, {"user", "a_user"}, {"tenant", "a"}} {
		w, runs, waits := contested(t)
		w.order(cluster.Exempt, scope.scope, scope.name, 3)
		w.Run(2 * hour)
		w.state(runs[0], cluster.Running)
		if r := w.why(runs[0], cluster.ReasonExempt); r.Note != "because" {
			t.Errorf("the reason is %+v, want the administrator's words", r)
		}
		if scope.scope != "job" && w.Received(waits[0])+w.Received(waits[1]) != 0 {
			t.Errorf("%s exempt, and still somebody took its GPUs", scope.scope)
		}
		w.Run(2 * hour) // the order has ended
		if w.Job(runs[0]).Restarts == 0 || w.Received(waits[0]) == 0 {
			t.Errorf("%s: an hour after the order's end nothing has changed", scope.scope)
		}
	}
}

// An exempt waiting job is left to Slurm: its gate is opened.
func TestExemptJobsAreNeverGated(t *testing.T) {
	w, runs, waits := contested(t)
	w.Run(minute)
	if len(w.done(cluster.Gate, waits...)) != 2 {
		t.Fatal("the waiting jobs are not gated")
	}
	w.order(cluster.Exempt, "job", waits[0].String(), 3)
	w.did = nil
	w.Run(10 * second)
	if n := len(w.done(cluster.Open, waits[0])); n != 1 {
		t.Errorf("opened %d times, want once", n)
	}
	w.Cancel(runs[0])
	w.Run(10 * second)
	w.state(waits[0], cluster.Running) // by Slurm
	if n := len(w.done(cluster.Grant, waits[0])) + len(w.done(cluster.Gate, waits[0])); n != 0 {
		t.Errorf("%d grants and gates for an exempt job", n)
	}
}

// An exempt job keeps its turn although Slurm may start it, because on a full cluster no GPU would ever
// become free for it. It has its tenant's turn like any other job and keeps the GPUs that it gets. A failed
// grant does not gate it either.
func TestExemptJobsHaveTheirTurn(t *testing.T) {
	w, _, waits := contested(t)
	w.Run(10 * second)
	w.order(cluster.Exempt, "job", waits[1].String(), 9)
	w.did = nil
	w.Run(5 * minute)
	if r := w.why(waits[1], cluster.ReasonBehind); r.Until == 0 || w.Standing("b", "v100").Demand != cluster.WholeGPU*2 {
		t.Errorf("the reason is %+v, its tenant wants %d", r, w.Standing("b", "v100").Demand)
	}
	w.Hold(waits[1], true) // Slurm will not start it, and does not say so
	w.alter = func(s *cluster.Observation) {
		for i := range s.Jobs {
			if s.Jobs[i].ID == waits[1] {
				s.Jobs[i].Inactive = ""
			}
		}
	}
	w.Run(15 * minute)
	if got := w.Record(waits[1]); got.Failed == 0 || len(w.done(cluster.RevokeGrant, waits[1]))+len(w.done(cluster.Gate, waits[1])) > 0 || w.Job(waits[1]).Eligible > w.Now() {
		t.Errorf("after a grant that failed it is gated until %s: %+v", w.Job(waits[1]).Eligible.Sub(simtest.Start), got)
	}
	w.Hold(waits[1], false)
	w.Run(hour)
	w.state(waits[1], cluster.Running)
	w.why(waits[1], cluster.ReasonExempt)
	w.Run(2 * hour)
	if n := w.Job(waits[1]).Restarts; n != 0 {
		t.Errorf("it was requeued %d times", n)
	}
}

func TestFreezeGivesNoLeaseAndNoRenewal(t *testing.T) {
	for _, scope := range []struct{ scope, name string }{{"job", "1"}, {"user", "a_user"}, {"tenant", "a"}} {
		w, runs, _ := contested(t)
		w.order(cluster.Freeze, scope.scope, scope.name, 2)
		w.Run(10 * minute)
		w.state(runs[0], cluster.Running) // to the end of its lease
		w.Run(10 * minute)
		w.state(runs[0], cluster.Waiting)
		w.why(runs[0], cluster.ReasonFrozen)
		before := w.Received(runs[0])
		w.Run(hour + 30*minute)
		if got := w.Received(runs[0]); got != before {
			t.Errorf("%s: while frozen it received %d GPU-ms", scope.scope, got-before)
		}
		w.Run(hour)
		if got := w.Received(runs[0]); got == before {
			t.Errorf("%s: an hour after the order's end it has had nothing", scope.scope)
		}
	}
}

// The same holds if no other job wants its GPUs.
func TestAFrozenJobLeavesAnIdleCluster(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a")
	id := w.submit("a", 1, forever, nil)
	w.Run(minute)
	w.order(cluster.Freeze, "job", id.String(), 2)
	w.Run(hour)
	w.state(id, cluster.Waiting)
	if got := w.Received(id); got > cluster.Times(1, term+second) {
		t.Errorf("it received %d GPU-ms, want the rest of its term at most", got)
	}
}

func TestBoost(t *testing.T) {
	t.Run("a job: first of its tenant", func(t *testing.T) {
		w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
		w.submit("b", 1, forever, nil)
		w.Run(minute)
		ids := w.Submit("a", 3, 1, forever)
		w.Run(10 * second)
		w.order(cluster.Boost, "job", ids[2].String(), 2)
		w.Run(20 * minute)
		w.state(ids[2], cluster.Running)
		w.Run(hour)
		if w.Received(ids[0])+w.Received(ids[1]) != 0 {
			t.Error("another job of its tenant was served before it")
		}
	})
	t.Run("a tenant: first of all", func(t *testing.T) {
		w, runs, waits := contested(t)
		w.order(cluster.Boost, "tenant", "b", 4)
		w.Run(20 * minute)
		for _, id := range waits {
			w.state(id, cluster.Running)
		}
		before := w.Received(runs[0]) + w.Received(runs[1])
		w.Run(3 * hour)
		if got := w.Received(runs[0]) + w.Received(runs[1]); got != before {
			t.Errorf("the other tenant received %d GPU-ms meanwhile", got-before)
		}
		w.Run(2 * hour)
		if got := w.Received(runs[0]) + w.Received(runs[1]); got == before {
			t.Error("after the order's end the other tenant has had nothing")
		}
	})
}

// Freeze overrides exempt, and exempt overrides boost. A job's own order overrides its user's, and that
// overrides its tenant's.
func TestWhichOrderCounts(t *testing.T) {
	w, runs, _ := contested(t)
	w.order(cluster.Freeze, "tenant", "a", 2)
	w.order(cluster.Exempt, "job", runs[0].String(), 2)
	w.order(cluster.Exempt, "job", runs[1].String(), 2)
	w.order(cluster.Freeze, "job", runs[1].String(), 2)
	w.Run(hour)
	w.state(runs[0], cluster.Running)
	w.why(runs[0], cluster.ReasonExempt)
	w.why(runs[1], cluster.ReasonFrozen)
}

// An order for an array applies to all its tasks. An order for a single task overrides it.
func TestAnOrderForAnArray(t *testing.T) {
	set := simtest.Product()
	set.RecallFirst, set.Threshold = false, minute
	w := newWorld(t, set, []int{3}, "a", "b")
	tasks := w.SubmitArray(sim.Work{Name: "sweep", User: "a_user", Account: "a", Partition: "gpu", Request: simtest.Gang(1), Runs: forever}, 3)
	w.Run(minute)
	waits := w.Submit("b", 3, 1, forever)
	w.order(cluster.Exempt, "job", tasks[0].Array().String(), 3)
	w.order(cluster.Freeze, "job", tasks[1].String(), 3)
	w.Run(2 * hour)
	for i, want := range []cluster.Code{cluster.ReasonExempt, cluster.ReasonFrozen, cluster.ReasonExempt} {
		w.why(tasks[i], want)
		if got := w.Job(tasks[i]).Restarts == 0; got != (want == cluster.ReasonExempt) {
			t.Errorf("task %s was requeued %d times", tasks[i], w.Job(tasks[i]).Restarts)
		}
	}
	w.state(waits[0], cluster.Running)
}

// The gate of a waiting array is opened for all its tasks at once, unless one of them has an order of its
// own. That task must not be opened with the others.
func TestAnExemptArrayIsOpened(t *testing.T) {
	for _, alone := range []bool{false, true} {
		s := boundary(4)
		s.Cases = []cluster.Case{waits(1, "a", 1), waits(2, "a", 1), waits(3, "a", 1), runsOn(4, "b", 4, "n01")}
		s.Cases[3].Control = cluster.Unmanaged // no GPU is free
		for i := range 3 {
			c := &s.Cases[i]
			c.Job.ID, c.Job.Record, c.Job.UnsplitArray, c.Job.Eligible = cluster.TaskID(9, int32(i)), 9, true, s.Now.Add(10*minute)
			c.Record.ID, c.Record.Gate = c.Job.ID, c.Job.Eligible
		}
		s.Overrides = []cluster.Override{{Kind: cluster.Exempt, Scope: "job", Name: "9", Until: s.Now.Add(hour)}}
		want := []string{"open 9_0 whole"}
		if alone {
			s.Overrides = append(s.Overrides, cluster.Override{Kind: cluster.Freeze, Scope: "job", Name: "9_1", Until: s.Now.Add(hour)})
			want = []string{"open 9_0", "open 9_2"}
		}
		var got []string
		for _, a := range engine.Decide(s).Actions {
			what := string(a.Verb) + " " + a.ID.String()
			if a.Array {
				what += " whole"
			}
			got = append(got, what)
		}
		if !slices.Equal(got, want) {
			t.Errorf("one task alone frozen: %v: %q, want %q", alone, got, want)
		}
	}
}
