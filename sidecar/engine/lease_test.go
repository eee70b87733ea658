package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// These tests check how leases begin and end, seen from outside.

// "Notice → signal → requeue at the end."
func TestNoticeComesBeforeTheRequeue(t *testing.T) {
	w, runs, waits := contested(t)
	w.Settings.JobOrder = cluster.ByRho // jobs of a tenant take turns
	w.Settings.Signals = []cluster.SignalRule{{Signal: "USR1", To: "steps"}}
	w.Run(3 * hour)
	notices, reclaims := w.done(cluster.Notify), w.done(cluster.Reclaim)
	if len(reclaims) < 10 || len(notices) < len(reclaims) {
		t.Fatalf("%d reclaims, %d notices", len(reclaims), len(notices))
	}
	for _, r := range reclaims {
		warned := slices.ContainsFunc(notices, func(n deed) bool {
			return n.ID == r.ID && r.at.Sub(n.at) >= w.Settings.Notice-second && r.at.Sub(n.at) <= w.Settings.Notice+20*second
		})
		if !warned {
			t.Errorf("job %s was requeued at %s without notice", r.ID, r.at.Sub(simtest.Start))
		}
		if r.at%cluster.Instant(term) != 0 {
			t.Errorf("requeued at %s, not on a boundary", r.at.Sub(simtest.Start))
		}
	}
	for _, n := range notices {
		if n.Signal != "USR1" || n.SignalTo != "steps" {
			t.Errorf("notice with %s to %s", n.Signal, n.SignalTo)
		}
	}
	if r := w.Record(runs[0]); r.Stops == 0 || r.Lost != 0 {
		t.Errorf("%d stops, %d GPU-ms lost: it saves when it hears SIGTERM", r.Stops, r.Lost)
	}
	_ = waits
}

// The signal of a notice is that of the first rule that matches: by partition, QOS, account, or several of these. The job's
// own word comes first.
func TestTheSignalIsOfTheFirstRuleThatMatches(t *testing.T) {
	other := []cluster.SignalRule{{Partition: "other", Signal: "HUP", To: "all"}, {QOS: "other", Signal: "HUP", To: "all"},
		{Account: "other", Signal: "HUP", To: "all"}, {Partition: "gpu", QOS: "high", Account: "other", Signal: "HUP", To: "all"}}
	for name, rule := range map[string]cluster.SignalRule{
		"partition": {Partition: "gpu"}, "QOS": {QOS: "high"}, "account": {Account: "a"}, "all three": {Partition: "gpu", QOS: "high", Account: "a"},
	} {
		for _, comment := range []string{"", "signal=B:INT"} {
			rule.Signal, rule.To = "TERM", "all"
			w := newWorld(t, recalling(), []int{1}, "a", "b")
			w.Settings.RecallFirst, w.Settings.Signals = false, append(slices.Clone(other), rule, cluster.SignalRule{Signal: "USR2", To: "steps"})
			w.alter = func(seen *cluster.Observation) {
				for i := range seen.Jobs {
					if h := seen.Jobs[i].Hints; h != nil {
						seen.Jobs[i].Declares.Signal, seen.Jobs[i].Declares.SignalTo = h.Signal, h.SignalTo
					}
				}
			}
			id := w.submit("a", 1, forever, func(j *sim.Work) { j.QOS, j.Comment = "high", comment })
			w.Run(minute)
			w.submit("b", 1, forever, nil)
			w.Run(15 * minute)
			want, to := "TERM", "all"
			if comment != "" {
				want, to = "INT", "batch"
			}
			told := w.done(cluster.Notify, id)
			if len(told) != 1 || told[0].Signal != want || told[0].SignalTo != to {
				t.Errorf("by %s, comment %q: %d notices, %+v, want %s to %s", name, comment, len(told), told, want, to)
			}
		}
	}
}

// A job may leave the processes that get its signal to the site, and may decline the signal.
func TestAJobMayDeclareASignalAlone(t *testing.T) {
	for _, x := range []struct{ declares, signal, to string }{{"TERM", "TERM", "steps"}, {cluster.NoSignal, "", ""}} {
		w, _, _ := contested(t)
		w.Settings.SignalTo = "steps"
		w.alter = func(seen *cluster.Observation) {
			for i := range seen.Jobs {
				seen.Jobs[i].Declares.Signal = x.declares
			}
		}
		w.Run(15 * minute)
		for _, n := range w.done(cluster.Notify) {
			if n.Signal != x.signal || n.SignalTo != x.to {
				t.Errorf("%s: notice with %q to %q, want %q to %q", x.declares, n.Signal, n.SignalTo, x.signal, x.to)
			}
		}
		if len(w.done(cluster.Notify)) == 0 {
			t.Errorf("%s: no notice was given", x.declares)
		}
	}
}

// "a grant in between gets a first lease to the next boundary,
// stretched by one term if that is shorter than the minimum lease."
func TestTheMinimumLease(t *testing.T) {
	set := simtest.Product()
	for _, c := range []struct{ at, want cluster.Span }{
		{9 * minute, 15 * minute},  // six minutes are enough
		{12 * minute, 30 * minute}, // three are not
	} {
		w := newWorld(t, set, []int{1}, "a", "b")
		w.submit("b", 1, c.at, nil)
		w.Run(minute)
		id := w.submit("a", 1, forever, nil)
		w.submit("b", 1, forever, nil)
		w.Run(c.at)
		w.state(id, cluster.Running)
		if l := w.lease(id); l == nil || l.End != simtest.Start.Add(c.want) {
			t.Errorf("granted at %s: the lease is %+v, want it to end at %s", c.at, l, c.want)
		}
		w.Run(hour)
		for _, d := range w.done(cluster.Reclaim, id) {
			if ran := d.at.Sub(simtest.Start.Add(c.at)); ran < set.MinLease {
				t.Errorf("reclaimed after %s", ran)
			}
			break
		}
	}
}

// "A reclaim needs a deficit larger than a configured threshold."
func TestNoReclaimBelowTheThreshold(t *testing.T) {
	decide := func(ahead cluster.Span) ([]cluster.JobKey, cluster.Reason) {
		s := boundary(2)
		s.Settings.Threshold = 5 * minute
		s.Cases = []cluster.Case{runsOn(1, "a", 2, "n01"), waits(2, "b", 2)}
		s.Leases = []cluster.Lease{leaseOf(&s, 0)}
		owe(&s, "a", 0)
		owe(&s, "b", cluster.Times(1, ahead)) // its quota is one GPU
		p := engine.Decide(s)
		return holders(p), p.Statuses[1].Reason
	}
	for _, c := range []struct {
		behind cluster.Span
		want   []cluster.JobKey
		why    cluster.Code
	}{
		{0, []cluster.JobKey{1}, cluster.ReasonBehind}, {1, []cluster.JobKey{1}, cluster.ReasonThreshold},
		{5 * minute, []cluster.JobKey{1}, cluster.ReasonThreshold},
		{5*minute + 1, []cluster.JobKey{2}, cluster.ReasonGranted}, {hour, []cluster.JobKey{2}, cluster.ReasonGranted},
	} {
		got, why := decide(c.behind)
		if !slices.Equal(got, c.want) {
			t.Errorf("further behind by %s: leases for %v, want %v", c.behind, got, c.want)
		}
		if why.Code != c.why || c.why == cluster.ReasonThreshold && why.Behind-why.OtherBehind != c.behind {
			t.Errorf("further behind by %s: the word on the one that waits is %+v, want %s", c.behind, why, c.why)
		}
	}
}

// The same holds within a tenant: a waiting job must be behind the running one by that much.
func TestNoReclaimBelowTheThresholdWithinATenant(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a")
	w.Settings.JobOrder, w.Settings.Threshold = cluster.ByRho, 20*minute
	w.Submit("a", 2, 1, forever)
	w.Run(12 * hour)
	if n := len(w.done(cluster.Reclaim)); n > 13 { // 20 minutes behind, 20 ahead
		t.Errorf("%d reclaims in 12 hours with a threshold of 20 minutes, want one in four terms", n)
	}
	w.Settings.Threshold = 0
	w.did = nil
	w.Run(12 * hour)
	if n := len(w.done(cluster.Reclaim)); n < 23 { // a tie goes to the running job
		t.Errorf("%d reclaims in 12 hours without a threshold, want one every other term", n)
	}
}

// "At most N reclaims a round": the other jobs wait for the next boundary, and get that reason.
func TestMaxReclaims(t *testing.T) {
	set := simtest.Product()
	set.JobOrder, set.MaxReclaims, set.BurstMaxMilli = cluster.ByRho, 3, 0
	w := newWorld(t, set, []int{8}, "a", "b")
	w.Submit("a", 8, 1, forever)
	w.Run(minute)
	waits := w.Submit("b", 8, 1, forever)
	w.Run(13*minute + 30*second)
	limited := 0
	for _, id := range waits {
		if w.Reason(id).Code == cluster.ReasonLimit {
			limited++
		}
	}
	if limited == 0 {
		t.Errorf("nobody is told that the limit is reached: %+v", w.Reason(waits[7]))
	}
	w.Run(5 * hour)
	perRound := map[cluster.Instant]int{}
	for _, d := range w.done(cluster.Reclaim) {
		perRound[d.at]++
	}
	for at, n := range perRound {
		if n > 3 {
			t.Errorf("%d reclaims at %s, want 3 at most", n, at.Sub(simtest.Start))
		}
	}
	near(t, "b all the same", w.Used("b"), cluster.Times(4, 5*hour), 10)
}

// The limit does not starve a gang that is larger: the first gang of a round may displace as many jobs as it
// needs.
func TestMaxReclaimsDoesNotStarveAGang(t *testing.T) {
	set := simtest.Product()
	set.MaxReclaims = 1
	w := newWorld(t, set, []int{8}, "a", "b")
	w.Submit("a", 8, 1, forever)
	w.Run(minute)
	gang := w.submit("b", 8, forever, nil)
	w.Run(20 * minute)
	w.state(gang, cluster.Running)
}

// The order of a hand-over is the reservation, the grants in it, then the requeues that free the GPUs. In
// every other order a third job can win a race.
func TestTheOrderOfAHandOver(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")
	w.Submit("a", 4, 2, forever)
	w.Run(minute)
	w.Submit("b", 1, 4, forever)
	w.Submit("b", 4, 1, forever)
	w.Run(5 * hour)
	handOvers := 0
	for _, r := range w.reports {
		at := map[string]int{} // reservation -> index of its action
		freed := map[string]int{}
		for i, a := range r.Plan.Actions {
			switch a.Verb {
			case cluster.Reserve:
				handOvers++
				at[a.Reservation] = i
				if a.Until <= r.Plan.At || len(a.Nodes) == 0 || len(a.Accounts) == 0 {
					t.Errorf("%+v: a reservation has nodes, accounts and an end", a)
				}
			case cluster.Grant:
				if made, ok := at[a.Reservation]; a.Reservation != "" && (!ok || made > i) {
					t.Errorf("job %s is granted in %s before that is made", a.ID, a.Reservation)
				}
				for _, n := range a.Nodes {
					if when, ok := freed[n]; ok && when < i {
						t.Errorf("job %s is granted %s after its holder was requeued", a.ID, n)
					}
				}
			case cluster.Reclaim:
				for _, rec := range r.Plan.State.Leases {
					if rec.Job == a.Job {
						for _, h := range rec.Nodes {
							freed[h.Node] = i
						}
					}
				}
			}
		}
	}
	if handOvers == 0 {
		t.Error("there was no hand-over")
	}
	if s, err := w.Virtual.Observe(t.Context(), 0); err != nil || len(s.Reservations) > 1 {
		t.Errorf("%d reservations are left: %v", len(s.Reservations), err)
	}
}

// Each job has at most one action in a round.
func TestOneActionAJobARound(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 2}, "a", "b")
	w.Submit("a", 6, 1, forever)
	w.Submit("b", 3, 2, forever)
	w.Run(4 * hour)
	for _, r := range w.reports {
		seen := map[cluster.JobKey]cluster.Verb{}
		for _, a := range r.Plan.Actions {
			if was, ok := seen[a.Job]; ok && a.Job != 0 {
				t.Errorf("at %s job %d: %s and %s", r.Plan.At.Sub(simtest.Start), a.Job, was, a.Verb)
			}
			seen[a.Job] = a.Verb
		}
	}
}

// blocked is a node with four GPUs of tenant a, at 28 minutes. Three become free at 30 minutes. The fourth
// has a stretched lease and becomes free at 45.
func blocked(t *testing.T) *world {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	first := w.Submit("a", 4, 1, forever)
	w.Run(term + 12*minute)
	w.Cancel(first[0])
	w.submit("a", 1, forever, nil)
	w.Run(minute)
	return w
}

// A gang that is due gets a claim if a stretched lease blocks it. The claim is served at the next boundary or
// the one after, and reports that time.
func TestAClaimForAGangThatIsDue(t *testing.T) {
	w := blocked(t)
	gang := w.submit("b", 4, forever, nil)
	w.Run(minute)
	r := w.why(gang, cluster.ReasonClaim)
	if r.Until != simtest.Start.Add(45*minute) || len(w.Last.State.Claims) != 1 {
		t.Errorf("the reason is %+v with claims %+v, want one until the stretched lease ends at 45 minutes", r, w.Last.State.Claims)
	}
	w.Run(17 * minute)
	w.state(gang, cluster.Running)
	if n := len(w.Last.State.Claims); n != 0 {
		t.Errorf("%d claims are left", n)
	}
	if got := w.Job(gang).Start; got > simtest.Start.Add(45*minute+5*second) {
		t.Errorf("it started at %s", got.Sub(simtest.Start))
	}
}

// "leases there are not renewed; work that surely ends before may start meanwhile": a lease, or a job's time
// limit, must end with the claim at the latest.
func TestWhatMayStartOnClaimedNodes(t *testing.T) {
	w := blocked(t)
	gang := w.submit("b", 4, forever, nil)
	w.Run(minute)
	for _, c := range w.Last.State.Leases[1:3] { // two more GPUs become free
		w.Cancel(cluster.JobID{ID: int64(c.Job)})
	}
	long := w.submit("b", 1, forever, func(j *sim.Work) { j.Begin, j.Limit = w.Now().Add(20*second), 5*hour })
	short := w.submit("b", 1, 5*minute, func(j *sim.Work) { j.Begin, j.Limit = w.Now().Add(20*second), 10*minute })
	w.Run(minute)
	for _, l := range w.Last.State.Leases {
		if l.End > simtest.Start.Add(45*minute) {
			t.Errorf("a lease on the claimed node ends at %s", l.End.Sub(simtest.Start))
		}
	}
	w.Run(17 * minute)
	w.state(gang, cluster.Running)
	w.state(short, cluster.Done)
	w.state(long, cluster.Waiting)
}

// A job that fits on idle GPUs except for a claim is told the claim's job. A job that would not fit anyway is
// not.
func TestWhatIsKeptOffIdleGPUsByAClaim(t *testing.T) {
	w := blocked(t)
	gang := w.submit("b", 4, forever, nil)
	w.Run(13 * minute) // a lease from here would end at 60 minutes; the claim's time is 45
	w.Cancel(cluster.JobID{ID: int64(w.Last.State.Leases[0].Job)})
	gated := func(j *sim.Work) { j.Begin = w.Now().Add(20 * second) }
	kept := w.submit("b", 1, forever, gated)
	greedy := w.submit("b", 1, forever, func(j *sim.Work) { gated(j); j.Request.CPUs = 64 })
	w.Run(minute)
	if r := w.why(kept, cluster.ReasonClaimed); r.For != w.Record(gang).Key || r.Free != cluster.CountOf(1) {
		t.Errorf("the reason is %+v, want that the free GPU is kept for job %s", r, gang)
	}
	w.why(greedy, cluster.ReasonShape)
}

// A job that the cluster can never hold, or no longer, gets that reason.
func TestAJobThatIsTooBig(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4, 4}, "a")
	big := w.submit("a", 8, forever, nil)
	model := w.submit("a", 1, forever, func(j *sim.Work) { j.Request.Model = "h100" })
	w.Run(minute)
	w.why(big, cluster.ReasonTooBig)
	w.why(model, cluster.ReasonTooBig)
	if got := w.Standing("a", "v100").Demand; got != 0 {
		t.Errorf("jobs that can never run are demand: %d", got)
	}
}

// Every reason has its numbers: the required GPUs, how far others are behind, and the end of the next lease
// that could serve the job.
func TestReasonsAreInNumbers(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	w.Submit("a", 2, 1, forever)
	w.Submit("b", 1, 1, forever)
	w.Run(7 * minute)
	id := w.submit("b", 2, forever, nil)
	w.Run(10 * second)
	r := w.Reason(id)
	if r.Need != cluster.CountOf(2) || r.Until == 0 || r.Pool != "v100" && r.Code != cluster.ReasonClaim {
		t.Errorf("the reason is %+v", r)
	}
	for _, v := range w.Last.Statuses {
		if v.Reason.Code == "" || strings.TrimSpace(string(v.Reason.Code)) == "" {
			t.Errorf("job %d has no reason", v.Job)
		}
	}
}

// A tenant at its burst limit while others wait gets that reason.
func TestTheBurstLimit(t *testing.T) {
	set := simtest.Product()
	set.BurstMaxMilli = 1500
	w := newWorld(t, set, []int{8}, "a", "b")
	w.Submit("b", 8, 1, forever)
	w.Run(5 * hour) // a saves up credit
	ids := w.Submit("a", 8, 1, forever)
	w.Run(20 * minute)
	running := 0
	for _, id := range ids {
		if w.Job(id).State == cluster.Running {
			running++
		}
	}
	if running != 6 {
		t.Errorf("tenant a has %d GPUs, want 1.5 times its quota of 4", running)
	}
	for _, id := range ids {
		if w.Job(id).State != cluster.Running {
			w.why(id, cluster.ReasonBurst)
		}
	}
}

// A tenant's small jobs do not hold its large one back: it holds less than its quota, and the gang alone is above the limit, so that it gets
// its turn like that of a tenant that holds nothing. Beyond its quota it waits.
func TestASmallJobHoldsNoGangOfItsTenantBack(t *testing.T) {
	for small, may := range map[int]bool{1: true, 5: false} {
		set := simtest.Product()
		set.BurstMaxMilli = 1500
		w := newWorld(t, set, []int{8, 8}, "a", "b", "c", "d")
		w.Submit("a", small, 1, forever)
		w.Run(hour)
		for _, other := range []string{"b", "c", "d"} {
			w.Submit(other, 8, 1, forever)
		}
		w.Run(hour)
		gang := w.Submit("a", 1, 8, forever)[0]
		w.Run(8 * hour)
		if ran := w.Job(gang).Start != 0; ran != may {
			t.Errorf("beside %d small jobs of its tenant, whose quota is 4: a gang of 8 GPUs ran is %t, want %t", small, ran, may)
		}
	}
}

// A signal kills a program that does not handle it, and Slurm does not requeue the job then. So the notice has a
// signal only for jobs that are known to save on it, and only once they have had the time to start.
func TestTheNoticeHasASignalForThoseWhoHandleOne(t *testing.T) {
	for name, c := range map[string]struct {
		said  cluster.Saving
		rule  cluster.Manner
		start cluster.Span
		want  string
	}{
		"nothing is known":           {want: ""},
		"it never saves":             {said: cluster.Saving{Manner: cluster.SavesNever}, want: ""},
		"it saves on SIGTERM":        {said: cluster.Saving{Manner: cluster.SavesOnTerm}, want: ""},
		"it saves every ten minutes": {said: cluster.Saving{Manner: cluster.SavesEvery, Every: 10 * minute}, want: ""},
		"it saves on the notice":     {said: cluster.Saving{Manner: cluster.SavesOnNotice}, want: "USR1"},
		"it asked for a signal":      {said: cluster.Saving{Signal: "USR2", SignalTo: "batch"}, want: "USR2"},
		"the site says so":           {rule: cluster.SavesOnNotice, want: "USR1"},
		"the site says otherwise":    {rule: cluster.SavesOnTerm, want: ""},
		"it is still starting":       {said: cluster.Saving{Manner: cluster.SavesOnNotice}, start: 14*minute + 30*second, want: ""},
	} {
		w, _, _ := contested(t, func(w *world) {
			w.Settings.StartCost, w.Settings.StopAllowance = c.start, hour
			if c.rule != cluster.UnknownManner {
				w.Settings.Saves = []cluster.SavingRule{{Manner: c.rule}}
			}
			w.alter = func(seen *cluster.Observation) {
				for i := range seen.Jobs {
					seen.Jobs[i].Declares = c.said
				}
			}
		})
		w.Run(15 * minute)
		if len(w.done(cluster.Notify)) == 0 {
			t.Errorf("%s: no notice was given", name)
		}
		for _, n := range w.done(cluster.Notify) {
			if n.Signal != c.want {
				t.Errorf("%s: the notice's signal is %q, want %q", name, n.Signal, c.want)
			}
		}
	}
}

// A job that asked sbatch for a signal gets that signal.
func TestTheSignalIsTheOneThatAJobDeclares(t *testing.T) {
	w, _, _ := contested(t)
	w.Settings.Signals = []cluster.SignalRule{{Signal: "INT", To: "steps"}}
	w.alter = func(seen *cluster.Observation) {
		for i := range seen.Jobs {
			d := &seen.Jobs[i].Declares
			d.Signal, d.SignalTo = "USR2", "batch"
		}
	}
	w.Run(15 * minute)
	for _, n := range w.done(cluster.Notify) {
		if n.Signal != "USR2" || n.SignalTo != "batch" {
			t.Errorf("notice with %s to %s, want USR2 to batch", n.Signal, n.SignalTo)
		}
	}
	if len(w.done(cluster.Notify)) == 0 {
		t.Error("no notice was given")
	}
}
