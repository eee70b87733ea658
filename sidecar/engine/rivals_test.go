package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// These are bugs of other schedulers, each by its name.

// A late requeue runs a finished job again.
func TestAFinishedJobIsNeverRunAgain(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	var ids []cluster.JobID
	for i := range 40 { // they finish before, at, and after their boundaries
		ids = append(ids, w.submit("a", 1, 5*minute+cluster.Span(i)*17*second, nil), w.submit("b", 1, term, nil))
	}
	w.Run(12 * hour)
	for _, id := range ids {
		w.state(id, cluster.Done)
		j := w.Job(id)
		if got, want := w.Received(id), cluster.Times(1, w.Progress(id)); got != want || j.Outcome != "COMPLETED" {
			t.Errorf("job %s: %s after %d GPU-ms for %d of work", id, j.Outcome, got, want)
		}
	}
	for _, d := range w.did {
		if !d.outcome.OK {
			t.Errorf("%s: %+v failed: %s", d.at, d.Action, d.outcome.Error)
		}
	}
}

// The same applies if the lease was ending when the job finished: in whatever state the job is found, no
// action applies to it.
func TestNothingIsAskedOfAJobThatIsOver(t *testing.T) {
	for _, state := range []cluster.JobState{cluster.Done, cluster.Completing} {
		for _, l := range []cluster.LeaseState{cluster.Granted, cluster.Active, cluster.Noticed, cluster.Ending} {
			s := boundary(8)
			s.Cases = []cluster.Case{waits(1, "a", 1), runsOn(2, "b", 8, "n01")}
			s.Cases[1].Job.State, s.Cases[1].Job.End = state, s.Now
			s.Leases = []cluster.Lease{leaseOf(&s, 1)}
			s.Leases[0].State = l
			for _, a := range engine.Decide(s).Actions {
				if a.Job == 2 {
					t.Errorf("a job that is %s with a lease that is %s: %+v", state, l, a)
				}
			}
		}
	}
}

// A lent GPU counts against the lender, so that it can never be recalled.
func TestALentGPUIsNotCountedAgainstTheLender(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "borrower", "lender")
	w.Submit("borrower", 16, 1, forever)
	w.Run(6 * hour)
	lent := w.Standing("lender", "v100")
	if lent.Holds != 0 || w.Used("lender") != 0 || lent.Deficit <= 0 {
		t.Fatalf("while it lends: %+v", lent)
	}
	if got := w.Standing("borrower", "v100"); got.Borrowed != 4*cluster.WholeGPU || got.Deficit >= 0 {
		t.Errorf("the borrower stands %+v, want four GPUs borrowed and a debt", got)
	}
	ids := w.Submit("lender", 4, 1, forever)
	w.Run(term + minute)
	for _, id := range ids {
		w.state(id, cluster.Running)
	}
}

// Borrowed time is charged twice: when it is used, and when it is given back.
func TestBorrowedTimeIsChargedOnce(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "borrower", "lender")
	ids := w.Submit("borrower", 8, 1, forever)
	w.Run(2 * hour)
	ids = append(ids, w.Submit("lender", 8, 1, forever)...)
	w.Run(6 * hour)
	used := w.Used("borrower") + w.Used("lender")
	var received cluster.GPUTime
	for _, id := range ids {
		received += w.Received(id)
		if got, want := w.Alloc(id), w.Received(id); got != want {
			t.Errorf("job %s was charged %d GPU-ms and received %d", id, got, want)
		}
	}
	if used != received {
		t.Errorf("tenants were charged %d GPU-ms, their jobs received %d", used, received)
	}
	w.books()
}

// Two tenants reclaim from each other for ever.
func TestNoPingPong(t *testing.T) {
	reclaims := func(w *world, span cluster.Span) int {
		w.did = nil
		w.Run(span)
		return len(w.done(cluster.Reclaim))
	}
	t.Run("both have what they are due", func(t *testing.T) {
		w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
		w.Submit("a", 4, 1, forever)
		w.Submit("b", 2, 2, forever)
		w.Run(hour)
		if n := reclaims(w, cluster.Day); n != 0 {
			t.Errorf("%d reclaims in a day though nobody waits", n)
		}
	})
	t.Run("each wants more than its half", func(t *testing.T) {
		w := newWorld(t, simtest.Product(), []int{8}, "a", "b")
		w.Submit("a", 6, 1, forever)
		w.Submit("b", 6, 1, forever)
		w.Run(hour)
		// Their jobs take turns: two of six wait at a time, so two change a term.
		if n := reclaims(w, cluster.Day); n > 2*2*96 {
			t.Errorf("%d reclaims in a day, want no more than four a term", n)
		}
	})
	t.Run("one GPU for two", func(t *testing.T) {
		w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
		w.Submit("a", 1, 1, forever)
		w.Submit("b", 1, 1, forever)
		w.Run(hour)
		if n := reclaims(w, cluster.Day); n > 96 {
			t.Errorf("%d reclaims in a day, want no more than one a term", n)
		}
	})
}

// A gang starves because the jobs that would have to go overlap: every node is held by gangs that extend into
// the next one.
func TestAGangIsNotStarvedByOverlappingVictims(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4, 4}, "chain", "wide")
	for range 6 {
		w.submit("chain", 4, forever, func(j *sim.Work) { j.Request.Nodes, j.Request.PerNode = 2, 2 })
	}
	w.Run(20 * minute)
	wide := w.submit("wide", 12, forever, func(j *sim.Work) { j.Request.Nodes, j.Request.PerNode = 3, 4 })
	w.Run(2*term + minute)
	if w.Alloc(wide) == 0 {
		t.Errorf("two boundaries after it came the gang has had nothing: %+v", w.Reason(wide))
	}
	w.Run(cluster.Day)
	// Some GPUs cannot be used, because two fully held nodes leave the third alone. The used GPUs are shared
	// equally.
	near(t, "the gang beside the others", w.Alloc(wide), w.Used("chain"), 8)
}

// Weight 0 counts as first, because of 0/0.
func TestWeightZeroIsNotFirst(t *testing.T) {
	s := boundary(4)
	s.Tenants = []cluster.Tenant{{Name: "one", Weight: 1}, {Name: "zero", Weight: 0}}
	for key := range cluster.JobKey(4) {
		s.Cases = append(s.Cases, waits(key+1, "zero", 1)) // first come, and new
	}
	for key := range cluster.JobKey(3) {
		s.Cases = append(s.Cases, waits(key+5, "one", 1))
	}
	if got := holders(engine.Decide(s)); !slices.Equal(got, []cluster.JobKey{1, 5, 6, 7}) {
		t.Errorf("leases for %v, want all three jobs with weight, and one of weight 0 on what is left", got)
	}
	// It has to go as soon as a tenant with weight wants its GPU.
	s = boundary(1)
	s.Tenants = []cluster.Tenant{{Name: "one", Weight: 1}, {Name: "zero", Weight: 0}}
	s.Cases = []cluster.Case{runsOn(1, "zero", 1, "n01"), waits(2, "one", 1)}
	s.Leases = []cluster.Lease{leaseOf(&s, 0)}
	if got := holders(engine.Decide(s)); !slices.Equal(got, []cluster.JobKey{2}) {
		t.Errorf("leases for %v, want only the job with weight", got)
	}
}

// All weights are 0: no tenant is due GPUs, and still no GPU stays idle.
func TestAllWeightsZero(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	w.SetShares("a", 0)
	w.SetShares("b", 0)
	ids := append(w.Submit("a", 2, 1, forever), w.Submit("b", 2, 1, forever)...)
	w.Run(2 * hour)
	for _, id := range ids {
		w.state(id, cluster.Running)
	}
	w.books()
}

// A long half-life rounds usage to zero. Here rho must be the same with a half-life of a century and with
// none.
func TestALongHalfLifeForgetsNothing(t *testing.T) {
	rho := func(half cluster.Span) cluster.Rho {
		set := simtest.Product()
		set.HalfLife = half
		w := newWorld(t, set, []int{1}, "a", "b")
		w.Submit("a", 1, 1, forever)
		w.Submit("b", 1, 1, forever)
		w.Run(5 * hour)
		return w.Standing("a", "v100").Rho
	}
	none, century := rho(0), rho(36500*cluster.Day)
	if none == 0 || century < none-2000 || century > none+2000 {
		t.Errorf("rho is %s without a half-life, %s with one of a century", none, century)
	}
}

// Chance decides between equal scores. Here the same snapshot must give the same bytes every time.
func TestDecideIsDeterministic(t *testing.T) {
	s := simtest.Crowd(600, 12)
	for i := range s.Cases { // no score differs
		r := &s.Cases[i].Record
		r.Alloc, r.Due, r.DueRate, r.First = 0, 0, 0, s.Now
	}
	before, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	first := encode(engine.Decide(s))
	for n := range 20 {
		if got := encode(engine.Decide(s)); got != first {
			t.Fatalf("the %d. time it decides otherwise", n+2)
		}
	}
	if after, _ := json.Marshal(s); string(after) != string(before) {
		t.Error("deciding changed the snapshot")
	}
}

// 32-bit counters overflow: one step charges a year of 80,000 GPUs.
func TestAYearOf80000GPUs(t *testing.T) {
	const gpus = 80_000
	s := boundary(gpus)
	s.Cases = []cluster.Case{runsOn(1, "a", gpus, "n01"), waits(2, "b", gpus)}
	s.Leases = []cluster.Lease{leaseOf(&s, 0)}
	s = after(&s, engine.Decide(s), 365*cluster.Day)
	s.Settings.CreditCap = 1000 * 365 * cluster.Day
	p := engine.Decide(s)
	year := cluster.Times(gpus, 365*cluster.Day)
	for _, st := range p.Tenants {
		want := map[string]cluster.GPUTime{"a": -cluster.Times(gpus, term), "b": year / 2}[st.Tenant]
		if st.Deficit != want {
			t.Errorf("tenant %s is owed %d GPU-ms, want %d", st.Tenant, st.Deficit, want)
		}
	}
	pool := p.State.Ledger.Pools[0]
	if pool.Capacity != year || pool.Tenants != year || pool.Idle != 0 {
		t.Errorf("the pool's books: %+v, want a year of %d GPUs: %d", pool, gpus, year)
	}
}

// A claim for a job's first lease is passed over because another tenant is further behind. Its tenant may be
// a little ahead for ever, so the claim must be served. A claim for a job that has run may be passed over.
func TestTheClaimForAFirstLeaseIsServed(t *testing.T) {
	for terms, want := range []cluster.JobKey{2, 1} {
		s := boundary(2)
		s.Cases = []cluster.Case{runsOn(1, "a", 2, "n01"), waits(2, "b", 2), waits(3, "a", 2)}
		s.Cases[0].Record.Due, s.Cases[1].Record.Terms = cluster.Times(2, term), terms
		s.Leases = []cluster.Lease{leaseOf(&s, 0)}
		owe(&s, "a", cluster.Times(2, 10*term))
		owe(&s, "b", -cluster.Times(2, term))
		s.Claims = []cluster.Claim{{Job: 2, Pool: "v100", Nodes: s.Leases[0].Nodes, At: s.Now, Made: s.Now.Add(-10 * minute)}}
		if got := holders(engine.Decide(s)); !slices.Equal(got, []cluster.JobKey{want}) {
			t.Errorf("after %d terms of job 2: leases for %v, want job %d", terms, got, want)
		}
	}
}
