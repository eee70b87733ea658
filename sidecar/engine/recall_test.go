package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// recalling returns the product's settings with another threshold.
func recalling() cluster.Settings {
	s := simtest.Product()
	s.Threshold = minute
	return s
}

// recalled returns the requeues in the middle of a term.
func (w *world) recalled() []deed {
	var out []deed
	for _, d := range w.done(cluster.Reclaim) {
		if d.Reason.Code == cluster.ReasonRecalled {
			out = append(out, d)
		}
	}
	return out
}

// Tenant a has both GPUs, and b is due one of them. It gets one as soon as a's jobs have had theirs for the
// minimum lease, and no second one. Without recalls it waits for the boundary.
func TestAFirstLeaseNeedNotWaitForABoundary(t *testing.T) {
	for _, on := range []bool{true, false} {
		w, runs, waits := contested(t)
		w.Settings.RecallFirst = on
		w.Run(w.Settings.MinLease - minute - 10*second)
		w.state(waits[0], cluster.Waiting) // a's jobs have not had the minimum lease yet
		w.Run(minute)
		if !on {
			w.state(waits[0], cluster.Waiting)
			continue
		}
		w.state(waits[0], cluster.Running)
		w.Run(minute)
		w.state(waits[1], cluster.Waiting)
		did := w.recalled()
		if len(did) != 1 || !slices.Contains(runs, did[0].ID) || did[0].Reason.For != w.Record(waits[0]).Key {
			t.Fatalf("recalled: %+v", did)
		}
		if at := did[0].at.Sub(simtest.Start); at < w.Settings.MinLease || at > w.Settings.MinLease+20*second {
			t.Errorf("recalled %s after the start", at)
		}
		w.state(did[0].ID, cluster.Waiting)
		w.Run(hour)
		w.books()
		ended := 0
		for _, r := range w.reports {
			for _, l := range r.Plan.Ended {
				if l.Why == "recalled" {
					ended++
				}
			}
		}
		if n := len(w.recalled()); ended != n {
			t.Errorf("%d leases ended because they were recalled, %d jobs were requeued for that", ended, n)
		}
	}
}

// With a notice, the job is notified first and keeps its GPUs for that time.
func TestARecallWithNotice(t *testing.T) {
	w, _, waits := contested(t)
	w.Settings.RecallFirst, w.Settings.RecallNotice = true, 20*second
	w.Run(w.Settings.MinLease)
	w.state(waits[0], cluster.Running)
	reclaims := w.done(cluster.Reclaim)
	if len(reclaims) != 1 {
		t.Fatalf("%d reclaims, want one", len(reclaims))
	}
	notices := w.done(cluster.Notify, reclaims[0].ID)
	if len(notices) != 1 || reclaims[0].at.Sub(notices[0].at) != 20*second || notices[0].Reason.For != w.Record(waits[0]).Key {
		t.Errorf("requeued at %s, notices: %+v", reclaims[0].at, notices)
	}
}

// Within a tenant, new jobs take at most their share of the GPUs in the middle of a term, and never from each
// other.
func TestRecallsWithinATenant(t *testing.T) {
	w := newWorld(t, recalling(), []int{8}, "a")
	w.Submit("a", 8, 1, forever)
	w.Run(20 * minute)
	w.did = nil
	young := w.Submit("a", 8, 1, forever)
	w.Run(9 * minute)
	if n := len(w.recalled()); n != 4 {
		t.Errorf("%d leases were recalled, want 4: new jobs' share is half", n)
	}
	for _, d := range w.recalled() {
		if slices.Contains(young, d.ID) {
			t.Errorf("new job %s was requeued for another", d.ID)
		}
	}
}

// A gang gets all its GPUs in one round.
func TestARecallForAGang(t *testing.T) {
	w := newWorld(t, recalling(), []int{8, 8}, "a", "b")
	w.Submit("a", 16, 1, forever)
	w.Run(6 * minute)
	gang := w.Submit("b", 1, 8, forever)[0]
	w.Run(30 * second)
	w.state(gang, cluster.Running)
	if n := len(w.recalled()); n != 8 {
		t.Errorf("%d leases were recalled, want 8", n)
	}
}

// Jobs that may not be reclaimed are not recalled, and a round recalls at most its limit.
func TestWhoIsNotRecalled(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*world)
		change  func(*sim.Work)
		want    int
	}{
		"exempt":           {func(w *world) { w.order(cluster.Exempt, "tenant", "a", 3) }, nil, 0},
		"not requeueable":  {nil, func(j *sim.Work) { j.NoRequeue = true }, 0},
		"three in a round": {func(w *world) { w.Settings.MaxReclaims = 3 }, nil, 0},
		"four in a round":  {func(w *world) { w.Settings.MaxReclaims = 4 }, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recalling(), []int{8}, "a", "b")
			if c.prepare != nil {
				c.prepare(w)
			}
			for range 8 {
				w.submit("a", 1, forever, c.change)
			}
			w.Run(6 * minute)
			w.Submit("b", 1, 4, forever)
			w.Run(minute)
			if n := len(w.recalled()); n != c.want {
				t.Errorf("%d leases were recalled, want %d", n, c.want)
			}
		})
	}
}

// Another tenant gives way only if it is further ahead by the threshold even without its lease. Both are due
// one GPU. Tenant a's lease of two has ten minutes left; b is charged fifteen for its own.
func TestARecallNeedsATenantThatIsAhead(t *testing.T) {
	for _, c := range []struct {
		owed cluster.Span
		want []cluster.JobKey
	}{{20*minute - 1, []cluster.JobKey{1}}, {20 * minute, []cluster.JobKey{2}}} {
		s := boundary(2)
		s.Settings.Threshold, s.Settings.RecallFirst = 5*minute, true
		s.Cases = []cluster.Case{runsOn(1, "a", 2, "n01"), waits(2, "b", 1)}
		s.Leases = []cluster.Lease{leaseOf(&s, 0)}
		s.Leases[0].End = s.Now.Add(10 * minute)
		owe(&s, "a", 0)
		owe(&s, "b", cluster.Times(1, c.owed))
		if got := holders(engine.Decide(s)); !slices.Equal(got, c.want) {
			t.Errorf("b is owed %s: leases for %v, want %v", c.owed, got, c.want)
		}
	}
}

// A job that asks for idle GPUs only gets no others. No lease ends for it, neither in the middle of a term
// nor at its end, although its tenant holds nothing. No GPUs are kept for it either.
func TestWhoAsksForIdleGPUsOnly(t *testing.T) {
	for _, gpus := range []int{1, 4} {
		w := newWorld(t, recalling(), []int{8}, "a", "b")
		idle := func(j *sim.Work) { j.Comment = "kind=bert,gpus=idle" }
		first := w.submit("b", gpus, 5*minute, idle)
		w.Submit("a", 8-gpus, 1, forever)
		w.Run(minute)
		w.state(first, cluster.Running)
		w.Run(10 * minute)
		w.Submit("a", gpus, 1, forever)
		w.Run(minute)
		second := w.submit("b", gpus, 5*minute, idle)
		w.Run(2 * hour)
		if did := w.done(cluster.Reclaim); len(did) > 0 {
			t.Errorf("%d GPUs: requeued %+v for a job that asks for idle GPUs only", gpus, did[0].Action)
		}
		if claims := w.Last.State.Claims; len(claims) > 0 {
			t.Errorf("%d GPUs: %+v are kept for it", gpus, claims)
		}
		w.why(second, cluster.ReasonIdleOnly)
		w.books()
	}
}
