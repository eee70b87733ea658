package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// These are traps for a scheduler above Slurm.

// "The user's own --begin: never grant before it, never lose it."
func TestTheUsersBeginIsKept(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a")
	begin := simtest.Start.Add(hour + 7*minute)
	id := w.submit("a", 1, forever, func(j *sim.Work) { j.Begin = begin })
	w.Run(hour)
	if r := w.why(id, cluster.ReasonInactive); r.Note != "begin" || r.Until != begin {
		t.Errorf("the reason is %+v, want its own begin time at %s", r, begin)
	}
	if r := w.Record(id); r.Due != 0 || r.DueRate != 0 || r.First != 0 {
		t.Errorf("before its begin it is owed nothing: %+v", r)
	}
	w.untouched(id)
	w.Run(8 * minute)
	w.state(id, cluster.Running)
	if got := w.Job(id).Start; got < begin {
		t.Errorf("started at %s, before its begin at %s", got, begin)
	}
}

// The same on a full cluster, where the job must be gated when its begin time has come.
func TestTheUsersBeginOnAFullCluster(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	w.submit("b", 1, forever, nil)
	w.Run(minute)
	begin := w.Now().Add(40 * minute)
	id := w.submit("a", 1, forever, func(j *sim.Work) { j.Begin = begin })
	w.Run(50 * minute)
	for _, d := range w.done(cluster.Grant, id) {
		if d.at < begin {
			t.Errorf("granted at %s, before its begin at %s", d.at, begin)
		}
	}
	for _, d := range w.done(cluster.Gate, id) {
		if d.Until < begin {
			t.Errorf("gated to %s, before its own begin %s", d.Until, begin)
		}
	}
	if len(w.done(cluster.Grant, id)) != 1 {
		t.Errorf("granted %d times, want once: %+v", len(w.done(cluster.Grant, id)), w.Reason(id))
	}
}

// The user moves a begin time, later or sooner, even while our gate hides it.
func TestAUserWhoMovesTheBeginIsFollowed(t *testing.T) {
	full := func(t *testing.T) *world {
		w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
		w.submit("b", 1, forever, nil)
		w.Run(minute)
		return w
	}
	t.Run("later, behind our gate", func(t *testing.T) {
		w := full(t)
		id := w.submit("a", 1, forever, nil)
		w.Run(minute)
		begin := w.Now().Add(3 * hour)
		w.SetBegin(id, begin)
		w.Run(2 * hour)
		if w.Received(id) != 0 || w.why(id, cluster.ReasonInactive).Until != begin {
			t.Errorf("it has received %d GPU-ms before its begin", w.Received(id))
		}
		w.Run(hour + 20*minute)
		w.state(id, cluster.Running)
	})
	t.Run("later, before any gate", func(t *testing.T) {
		w := full(t)
		id := w.submit("a", 1, forever, func(j *sim.Work) { j.Begin = w.Now().Add(hour) })
		w.Run(minute)
		w.SetBegin(id, w.Now().Add(3*hour))
		w.Run(2 * hour)
		if w.Received(id) != 0 {
			t.Errorf("it has received %d GPU-ms before its new begin", w.Received(id))
		}
	})
	t.Run("sooner", func(t *testing.T) {
		w := full(t)
		id := w.submit("a", 1, forever, func(j *sim.Work) { j.Begin = w.Now().Add(20 * hour) })
		w.Run(minute)
		w.SetBegin(id, w.Now().Add(30*minute))
		w.Run(hour)
		if w.Received(id) == 0 {
			t.Errorf("it has had nothing an hour later: %+v", w.Reason(id))
		}
	})
}

// "Held jobs, unmet dependencies, arrays over their %limit, jobs before their begin
// time: not active, owed nothing."
func TestInactiveJobsAreOwedNothing(t *testing.T) {
	for _, why := range []string{"held", "dependency", "array limit"} {
		w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
		w.Submit("b", 2, 1, forever)
		w.Run(minute)
		id := w.submit("a", 1, forever, nil)
		w.alter = func(s *cluster.Observation) {
			for i := range s.Jobs {
				if s.Jobs[i].ID == id {
					s.Jobs[i].Inactive = why
				}
			}
		}
		w.Run(2 * hour)
		if r := w.why(id, cluster.ReasonInactive); r.Note != why {
			t.Errorf("%s: the reason is %+v", why, r)
		}
		if r := w.Record(id); r.Due != 0 || r.First != 0 || w.Standing("a", "v100").Demand != 0 {
			t.Errorf("%s: owed %d GPU-ms, demand %d", why, r.Due, w.Standing("a", "v100").Demand)
		}
		if n := len(w.done(cluster.Grant)) + len(w.done(cluster.Reclaim)); n != 0 {
			t.Errorf("%s: %d grants and reclaims for a job that cannot start", why, n)
		}
		w.alter = nil
		w.Run(20 * minute)
		if w.Received(id) == 0 {
			t.Errorf("%s: once free it gets its turn: %+v", why, w.Reason(id))
		}
	}
}

// A job that is held while it runs under a lease is requeued by its user, and is not lost.
func TestAJobThatIsHeldBetweenItsLeases(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	id := w.submit("a", 1, forever, nil)
	w.submit("b", 1, forever, nil)
	w.Run(20 * minute)
	w.state(id, cluster.Waiting)
	w.Hold(id, true)
	w.Run(2 * hour)
	w.state(id, cluster.Waiting)
	w.Hold(id, false)
	w.Run(20 * minute)
	if w.Record(id).Terms < 2 {
		t.Errorf("after its release it was not served again: %+v", w.Reason(id))
	}
}

// "A job that may not be requeued is never reclaimed; its tenant is charged all the same."
func TestNoRequeueJobsAreKeptAndCharged(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	kept := w.submit("a", 1, 5*hour, func(j *sim.Work) { j.NoRequeue = true })
	other := w.submit("a", 1, forever, nil)
	w.Run(minute)
	w.Submit("b", 2, 1, forever)
	w.Run(4 * hour)
	w.state(kept, cluster.Running)
	w.why(kept, cluster.ReasonKept)
	w.untouched(kept)
	near(t, "the kept job's tenant", w.Used("a"), cluster.Times(1, 4*hour), 10)
	if w.Alloc(kept) != w.Received(kept) {
		t.Errorf("charged %d GPU-ms for %d", w.Alloc(kept), w.Received(kept))
	}
	if w.Job(other).Restarts == 0 {
		t.Error("the tenant's other job was not reclaimed")
	}
	w.Run(2 * hour)
	w.state(kept, cluster.Done)
}

// A waiting --no-requeue job is gated and granted like any other.
func TestNoRequeueJobsAreGranted(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	w.submit("b", 1, forever, nil)
	w.Run(minute)
	kept := w.submit("a", 1, hour, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(20 * minute)
	w.state(kept, cluster.Running)
	if n := len(w.done(cluster.Grant, kept)); n != 1 {
		t.Errorf("granted %d times, want once", n)
	}
}

// An interactive job waits for a lease like others, keeps its GPUs until it ends, and its tenant is charged. So does a job whose
// nodes only Slurm can choose; its grant names none.
func TestJobsThatKeepTheirGPUsWaitForALease(t *testing.T) {
	for name, as := range map[string]func(*sim.Work){
		"interactive": func(j *sim.Work) { j.Interactive = true },
		"loose":       func(j *sim.Work) { j.Request.Unplaceable = cluster.Contiguous },
	} {
		w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
		w.Submit("b", 1, 2, forever)
		w.Run(minute)
		id := w.submit("a", 1, 9*hour, as)
		w.Run(2 * second)
		w.state(id, cluster.Waiting)
		w.Run(hour)
		w.state(id, cluster.Running)
		w.why(id, cluster.ReasonKept)
		w.Submit("b", 3, 1, forever)
		w.Run(minute)
		late := w.submit("a", 1, 9*hour, as)
		w.Run(2 * hour)
		w.state(id, cluster.Running)
		w.state(late, cluster.Waiting) // its tenant has its half
		if w.Alloc(id) != w.Received(id) || w.Used("a") < w.Received(id) {
			t.Errorf("%s: it received %d GPU-ms; it was charged %d, its tenant %d", name, w.Received(id), w.Alloc(id), w.Used("a"))
		}
		for _, a := range w.done(cluster.Grant, id) {
			if pinned := len(a.Nodes) > 0; pinned != (name == "interactive") {
				t.Errorf("%s: granted on %v", name, a.Nodes)
			}
		}
		w.books()
	}
}

// With opt_out: leave, interactive and similar jobs belong to no tenant. Their GPUs do not count as capacity,
// and their tenant is not charged for them and gets a share of the rest.
func TestInteractiveJobsAreNobodysWhereTheSiteSaysSo(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	w.Rules.OptOut = loop.AllOut(loop.LeaveAlone)
	id := w.submit("a", 2, 3*hour, func(j *sim.Work) { j.Interactive = true })
	w.Run(minute)
	w.Submit("a", 2, 1, forever)
	w.Submit("b", 2, 1, forever)
	w.Run(2 * hour)
	w.untouched(id)
	w.state(id, cluster.Running)
	if got := w.Standing("a", "v100").Entitlement; got != cluster.WholeGPU {
		t.Errorf("tenant a is entitled to %d millionths, want half of the two GPUs that are left", got)
	}
	if got := w.Standing("a", "v100").Demand; got != 2*cluster.WholeGPU {
		t.Errorf("tenant a wants %d millionths, want the two GPUs of its other jobs: nobody pays for the interactive one", got)
	}
	if a, b := w.Used("a"), w.Used("b"); max(a-b, b-a) > cluster.Times(1, term) {
		t.Errorf("tenant a was charged %d GPU-ms, b %d: want the same but for a term, though a also has an interactive job", a, b)
	}
	w.Run(2 * hour) // it ends
	if got := w.Last.State.Ledger.Pools[0].Untouchable; got != w.Received(id) || got == 0 {
		t.Errorf("%d GPU-ms are booked as nobody's, the job received %d", got, w.Received(id))
	}
	w.books()
}

// Jobs of accounts outside the tree hold GPUs to which no tenant is entitled.
func TestStrangersAreUntouchable(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	id := w.submit("stranger", 2, 4*hour, nil)
	w.Submit("a", 2, 1, forever)
	w.Submit("b", 2, 1, forever)
	w.Run(2 * hour)
	w.untouched(id)
	if got := w.Standing("a", "v100").Entitlement; got != cluster.WholeGPU {
		t.Errorf("tenant a is entitled to %d millionths, want half of the two GPUs that are left", got)
	}
	if got := w.Last.State.Ledger.Pools[0].Untouchable; got != w.Received(id) {
		t.Errorf("%d GPU-ms are booked as untouchable, the stranger received %d", got, w.Received(id))
	}
	w.books()
}

// "Slurm does not start a job whose time limit runs into a coming reservation."
func TestAMaintenanceReservationAhead(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	hold := w.submit("b", 2, 20*minute, func(j *sim.Work) { j.Limit = 30 * minute })
	w.Run(minute)
	start := simtest.Start.Add(2 * hour)
	w.AddReservation(cluster.Reservation{Name: "maint", Nodes: []string{"n01"}, Start: start, End: start.Add(hour)})
	long := w.submit("a", 1, 10*minute, func(j *sim.Work) { j.Limit = 5 * hour })
	short := w.submit("a", 1, 10*minute, func(j *sim.Work) { j.Limit = 30 * minute })
	w.Run(90 * minute)
	w.state(hold, cluster.Done)
	w.state(short, cluster.Done)
	w.state(long, cluster.Waiting)
	if r := w.why(long, cluster.ReasonReserved); !strings.Contains(r.Note, "maint") {
		t.Errorf("the reason is %+v, want the reservation's name", r)
	}
	if n := len(w.done(cluster.Grant, long)); n != 0 {
		t.Errorf("granted %d times in vain", n)
	}
	w.Run(2 * hour)
	w.state(long, cluster.Done)
}

// hidden makes node n01 refuse jobs for a reason that is invisible beforehand, such as a QOS limit.
func hidden(w *world) {
	w.AddReservation(cluster.Reservation{Name: "secret", Nodes: []string{"n01"}, Start: w.Now(), End: w.Now().Add(1000 * hour)})
	w.alter = func(s *cluster.Observation) {
		s.Reservations = slices.DeleteFunc(s.Reservations, func(r cluster.Reservation) bool { return r.Name == "secret" })
	}
}

// "A grant that does not start within its timeout is taken back with Slurm's reason,
// that pair of job and nodes is avoided for a while with growing back-off, and
// meanwhile the job does not count as demand that is due something."
func TestAGrantThatDoesNotStartIsTakenBack(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	w.submit("b", 2, 30*minute, nil)
	w.Run(minute)
	id := w.submit("a", 1, forever, nil)
	w.Run(minute)
	hidden(w)
	w.Run(5 * hour)
	grants, backs := w.done(cluster.Grant, id), w.done(cluster.RevokeGrant, id)
	if len(grants) < 4 || len(backs) < 3 || len(grants) > 10 {
		t.Fatalf("%d grants, %d taken back in five hours: want several, further and further apart", len(grants), len(backs))
	}
	for i, back := range backs {
		if wait := back.at.Sub(grants[i].at); wait < w.Settings.GrantTimeout || wait > w.Settings.GrantTimeout+20*second {
			t.Errorf("taken back after %s, want the grant timeout of %s", wait, w.Settings.GrantTimeout)
		}
		if back.Reason.Note != "Resources" || len(back.NodeList) != 0 {
			t.Errorf("taken back with %+v, want Slurm's reason and no nodes, as the user submitted it", back.Action)
		}
		if i > 0 && i < 5 && grants[i+1].at.Sub(back.at) <= grants[i].at.Sub(backs[i-1].at) {
			t.Errorf("the %d. back-off is no longer than the one before", i+1)
		}
	}
	if w.Used("a") != 0 {
		t.Errorf("charged %d GPU-ms for grants that never started", w.Used("a"))
	}
	r := w.Record(id)
	if r.AvoidUntil > w.Now() {
		w.why(id, cluster.ReasonFailed)
		if r.DueRate != 0 || w.Standing("a", "v100").Demand != 0 {
			t.Errorf("while it is avoided it is due %d millionths, its tenant wants %d", r.DueRate, w.Standing("a", "v100").Demand)
		}
	}
}

// Other nodes are tried first.
func TestAfterAFailedGrantOtherNodesAreTried(t *testing.T) {
	set := simtest.Product()
	set.RecallFirst, set.Threshold, set.CompactPercent = false, minute, 0 // else it moves back to n01, which seems idle, for the gang
	w := newWorld(t, set, []int{1, 2}, "a", "b")
	w.submit("b", 1, 30*minute, nil)
	w.submit("b", 2, forever, nil)
	w.Run(minute)
	id := w.submit("a", 1, forever, nil)
	w.Run(minute)
	hidden(w)
	w.Run(30*minute + 3*w.Settings.GrantTimeout)
	w.Run(45 * minute)
	w.state(id, cluster.Running)
	if got := w.Job(id).Holds[0].Node; got != "n02" {
		t.Errorf("it runs on %s, want n02", got)
	}
}

// The nodes of a failed grant are tried again where the others stay taken: they do not idle for good while the job waits.
func TestAfterATermTheNodesOfAFailedGrantAreTriedAgain(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1, 2}, "a", "b")
	w.submit("b", 1, 30*minute, nil)
	w.submit("b", 2, forever, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(minute)
	id := w.submit("a", 1, forever, nil)
	failing := true
	w.Refuse = func(j *cluster.Job) string {
		if failing && j.ID == id {
			return "Resources"
		}
		return ""
	}
	w.Run(30*minute + 3*w.Settings.GrantTimeout)
	if r := w.Record(id); r.Failed == 0 || !slices.Equal(r.AvoidNodes, []string{"n01"}) {
		t.Fatalf("failed %d times on %v, want n01", r.Failed, r.AvoidNodes)
	}
	failing = false
	w.Run(hour + w.Settings.Term)
	w.state(id, cluster.Running)
}

// "Slurm's own preemption, node failures and administrators requeue and cancel jobs
// as well: what we did not order is normal input."
func TestANodeThatGoesDownInMidLease(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2, 2}, "a", "b")
	ids := append(w.Submit("a", 2, 1, forever), w.Submit("b", 2, 1, forever)...)
	w.Run(20 * minute)
	w.SetNode("n01", "down")
	w.Run(2 * minute)
	if p := w.Last.State.Ledger.Pools[0]; p.BadGPUs != cluster.CountOf(2) {
		t.Errorf("%s bad GPUs, want 2", p.BadGPUs)
	}
	if got := w.Standing("a", "v100").Entitlement; got != cluster.WholeGPU {
		t.Errorf("with half of the GPUs down tenant a is entitled to %d millionths, want one GPU", got)
	}
	w.Run(3 * hour)
	for _, id := range ids {
		for _, h := range w.Job(id).Holds {
			if h.Node == "n01" {
				t.Errorf("job %s is on a node that is down", id)
			}
		}
	}
	w.SetNode("n01", "")
	w.Run(20 * minute)
	for _, id := range ids {
		w.state(id, cluster.Running)
		if w.Alloc(id) != w.Received(id) {
			t.Errorf("job %s was charged %d GPU-ms and received %d", id, w.Alloc(id), w.Received(id))
		}
	}
	w.books()
}

func TestJobsRequeuedAndCancelledByOthers(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	requeued, cancelled := w.submit("a", 1, forever, nil), w.submit("b", 1, forever, nil)
	w.Run(7 * minute)
	key := w.Record(requeued).Key
	w.Requeue(requeued)
	w.Cancel(cancelled)
	w.Run(10 * second)
	if l := w.lease(requeued); l != nil && l.State == cluster.Active {
		t.Errorf("the requeued job still has a lease: %+v", l)
	}
	w.Run(5 * minute)
	w.state(requeued, cluster.Running)
	w.state(cancelled, cluster.Done)
	if r := w.Record(requeued); r.Key != key || r.Alloc != w.Received(requeued) {
		t.Errorf("it is job %d now, was %d; charged %d GPU-ms of %d", r.Key, key, r.Alloc, w.Received(requeued))
	}
	if w.Used("b") != w.Received(cancelled) {
		t.Errorf("the cancelled job received %d GPU-ms, its tenant was charged %d", w.Received(cancelled), w.Used("b"))
	}
	if n := len(w.done(cluster.Reclaim)); n != 0 {
		t.Errorf("%d reclaims of jobs that others had ended", n)
	}
	w.books()
}

// During an outage longer than MinJobAge, jobs run unseen. The history reports them, and they are charged
// once.
func TestAnOutageIsReconciledFromTheHistory(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	long := w.submit("a", 1, forever, nil)
	ends := w.submit("a", 1, 30*minute, nil)
	moved := w.submit("b", 1, forever, nil)
	w.Run(10 * minute)
	unseen := w.submit("b", 1, 20*minute, nil) // comes and goes during the outage
	w.Advance(w.Now().Add(5 * minute))
	w.Requeue(moved)
	w.Advance(w.Now().Add(2 * hour))
	w.Run(10 * second)
	for _, id := range []cluster.JobID{long, ends, moved, unseen} {
		if got, want := w.Alloc(id), w.Received(id); got != want {
			t.Errorf("job %s was charged %d GPU-ms and received %d", id, got, want)
		}
	}
	if got, want := w.Used("a")+w.Used("b"), w.Received(long)+w.Received(ends)+w.Received(moved)+w.Received(unseen); got != want {
		t.Errorf("tenants were charged %d GPU-ms, their jobs received %d", got, want)
	}
	w.books()
	w.Run(hour)
	w.books()
	if got, want := w.Alloc(moved), w.Received(moved); got != want {
		t.Errorf("an hour later job %s was charged %d GPU-ms and received %d", moved, got, want)
	}
}

// After a crash the loop continues from the journal: no lease is granted twice, and no lease is lost.
func TestADaemonThatStartsAgain(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	w.Submit("a", 4, 1, forever)
	w.Submit("b", 4, 1, forever)
	w.Run(2*hour + 3*minute)
	before := w.Last.State.Leases
	w.Loop = &loop.Loop{Cluster: w, Journal: w.journal, Decide: engine.Decide, Configure: w.Loop.Configure}
	w.did = nil
	w.Run(10 * second)
	for _, d := range w.did {
		if d.Verb == cluster.Grant || d.Verb == cluster.Reclaim {
			t.Errorf("starting again in mid-term: %+v", d.Action)
		}
	}
	if got := w.Last.State.Leases; len(got) != len(before) {
		t.Errorf("%d leases, before it was %d", len(got), len(before))
	}
	w.books()
}

// A clock that goes back, or a cluster without nodes, is an error and changes nothing.
func TestALookThatCannotBeTrueChangesNothing(t *testing.T) {
	for name, alter := range map[string]func(*cluster.Observation){
		"books are ahead":   func(s *cluster.Observation) { s.Now -= 1_000_000_000 },
		"no node with GPUs": func(s *cluster.Observation) { s.Nodes = nil },
	} {
		w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
		w.Submit("a", 1, 1, forever)
		w.Submit("b", 1, 1, forever)
		w.Run(10 * minute)
		before, _ := w.journal.Open(context.Background())
		w.alter = alter
		w.Advance(w.Now().Add(5 * minute)) // a boundary passes
		if _, err := w.Loop.Turn(context.Background()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
		if now, _ := w.journal.Open(context.Background()); now.Round != before.Round {
			t.Errorf("%s: round %d was written down", name, now.Round)
		}
		w.alter = nil
		w.Run(10 * minute)
		w.books()
	}
}

// "A requeue restarts the time limit (set the remaining limit at every grant)."
func TestTheTimeLimitThatIsLeftIsSetAtTheNextGrant(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	id := w.submit("a", 1, forever, func(j *sim.Work) { j.Limit = 2 * hour })
	w.submit("b", 1, forever, nil)
	w.Run(20 * minute)
	w.state(id, cluster.Waiting)
	ran := w.Progress(id)
	w.Run(40 * minute)
	grants := w.done(cluster.Grant, id)
	if len(grants) == 0 || grants[len(grants)-1].Limit != 2*hour-ran {
		t.Fatalf("granted with %+v, want a limit of %s: it has run for %s", grants, 2*hour-ran, ran)
	}
	w.Run(10 * hour)
	w.state(id, cluster.Done)
	if j := w.Job(id); j.Outcome != "TIMEOUT" || w.Progress(id) < 2*hour-minute || w.Progress(id) > 2*hour+minute {
		t.Errorf("it ended by %s after %s of run time, want its own two hours", j.Outcome, w.Progress(id))
	}
}

// Array tasks are jobs of their own: gated together, granted one by one.
func TestArrayTasks(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	w.Submit("b", 2, 1, forever)
	w.Run(minute)
	ids := w.SubmitArray(sim.Work{User: "u", Account: "a", Partition: "gpu", Request: simtest.Gang(1), Runs: 20 * minute}, 3)
	w.Run(4 * hour)
	for _, id := range ids {
		w.state(id, cluster.Done)
		if w.Alloc(id) != 0 && w.Alloc(id) != w.Received(id) {
			t.Errorf("task %s was charged %d GPU-ms and received %d", id, w.Alloc(id), w.Received(id))
		}
	}
}

// A job that Slurm never starts costs running jobs less and less. After every failure it takes longer until
// others are requeued for it again, while idle GPUs are tried again sooner. Its tenant's other jobs can use
// the GPUs that it does not take.
func TestAGrantThatNeverStartsRequeuesOthersEverMoreRarely(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{2}, "a", "b")
	w.Submit("a", 2, 1, forever)
	w.Run(minute)
	broken := w.submit("b", 1, forever, nil)
	w.Hold(broken, true)
	w.alter = func(s *cluster.Observation) { // Slurm does not say so
		for i := range s.Jobs {
			if s.Jobs[i].ID == broken {
				s.Jobs[i].Inactive = ""
			}
		}
	}
	w.Run(24 * hour)
	reclaims := w.done(cluster.Reclaim)
	if len(reclaims) < 3 || len(reclaims) > 8 {
		t.Errorf("%d requeues in a day for a job that never starts, want a few", len(reclaims))
	}
	for i := 2; i < len(reclaims); i++ {
		if last, before := reclaims[i].at.Sub(reclaims[i-1].at), reclaims[i-1].at.Sub(reclaims[i-2].at); last < before {
			t.Errorf("%s after %s, want the next requeue for it later than the last", last, before)
		}
	}
	if r := w.why(broken, cluster.ReasonFailed); r.Note != w.Record(broken).SlurmSaid || r.Until <= w.Now() || r.Until > w.Now().Add(25*hour) {
		t.Errorf("the reason is %+v, want Slurm's words and when it takes its turn again", r)
	}
	if lost := 24*cluster.Times(2, hour) - w.Used("a"); lost > cluster.Times(1, 30*minute) {
		t.Errorf("the others lost %d GPU-ms in a day", lost)
	}
}

// "Job credential revoked": slurmd mistakes a start in the second of the requeue for the attempt that had to
// end. Slurm then fails the job for good.
func TestARequeuedJobSettles(t *testing.T) {
	s := boundary(4)
	c := waits(1, "a", 1)
	c.Job.Restarts, c.Record.Restarts = 1, 1
	c.Job.Submit, c.Record.Submit = s.Now, s.Now
	s.Cases = []cluster.Case{c}
	p := engine.Decide(s)
	if got := holders(p); len(got) != 0 || p.Statuses[0].Reason.Code != cluster.ReasonCompleting {
		t.Errorf("leases for %v in the second of its requeue, %+v", got, p.Statuses[0].Reason)
	}
	if want := s.Now.Add(second); p.Next != want {
		t.Errorf("looks again at %s, want %s", p.Next, want)
	}
	if got := holders(engine.Decide(after(&s, p, second))); !slices.Equal(got, []cluster.JobKey{1}) {
		t.Errorf("leases for %v a second later, want its own", got)
	}
}
