package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// withLicense makes a world whose Slurm has licences for gates. With plugin, its submit plugin makes new jobs
// ask for one.
func withLicense(t *testing.T, plugin bool, gpus []int, tenants ...string) *world {
	w := newWorld(t, simtest.Product(), gpus, tenants...)
	if w.License = 1_000_000; plugin {
		w.Gate = w.Settings.GateTTL
	}
	w.Run(10 * second)
	return w
}

// told counts the events of a kind.
func (w *world) told(kind string) (n int) {
	for _, r := range w.reports {
		for _, e := range r.Plan.Events {
			if e.Kind == kind {
				n++
			}
		}
	}
	return n
}

// Waiting jobs cost no changes: the lock is prolonged, and only grants and reclaims change jobs. A job that has started gets
// the licence back with one change.
func TestTheLockKeepsAllGatesShut(t *testing.T) {
	w := withLicense(t, true, []int{8}, "a", "b")
	for range 100 {
		w.submit("a", 4, 100*hour, nil)
		w.submit("b", 4, 100*hour, func(j *sim.Work) { j.NoRequeue = true })
	}
	w.Run(2 * hour)
	given := map[cluster.JobID]int{}
	for _, d := range w.done(cluster.Gate) {
		given[d.ID]++
	}
	for id, n := range given {
		if starts := len(w.done(cluster.Grant, id)); n > starts {
			t.Errorf("job %v got the licence %d times in %d starts", id, n, starts)
		}
	}
	locks, grants, others := len(w.done(cluster.Lock)), len(w.done(cluster.Grant))+len(w.done(cluster.Reclaim)), len(w.done(cluster.Gate))
	if most := int(2*hour/(w.Settings.GateTTL/2)) + 2; locks < 12 || locks > most || others == 0 || grants == 0 {
		t.Errorf("%d locks, want 12 to %d; %d gates, want one a start; %d grants and reclaims", locks, most, others, grants)
	}
	if n := w.told("gate_opened") + w.told("gates_open"); n != 0 {
		t.Errorf("%d gates were said to be open", n)
	}
	w.books()
}

// Without a plugin, each job gets the licence once and is not changed otherwise. A job that asks for one of
// several licences is gated by a begin time.
func TestJobsAreLockedOnce(t *testing.T) {
	w := withLicense(t, false, []int{4}, "a")
	w.submit("a", 4, 100*hour, nil)
	w.Run(10 * second)
	waits := w.submit("a", 4, hour, nil)
	either := w.submit("a", 4, hour, nil)
	w.alter = func(s *cluster.Observation) {
		for i := range s.Jobs {
			if s.Jobs[i].ID == either {
				s.Jobs[i].Either, s.Jobs[i].Licenses = true, "x|y"
			}
		}
	}
	w.Run(2 * hour)
	if n, starts := len(w.done(cluster.Gate, waits)), len(w.done(cluster.Grant, waits)); n < 1 || n > 1+starts {
		t.Errorf("%d gates of %+v", n, w.Job(waits))
	}
	for _, d := range w.did {
		if d.ID == waits && (d.Verb == cluster.Gate || d.Verb == cluster.Reclaim) && (!d.Lock || d.Until != 0) {
			t.Errorf("its begin time is changed: %+v", d.Action)
		}
	}
	if n := len(w.done(cluster.Gate, either)); n < 12 || w.Job(either).Locked || w.Job(either).Eligible <= w.Now() {
		t.Errorf("%d gates of %+v", n, w.Job(either))
	}
}

// If a user removes the licence from a waiting job, the engine sees that. The gate is shut again, or the
// started job is charged.
func TestGatesThatUsersOpenAreSeen(t *testing.T) {
	w := withLicense(t, true, []int{4, 4}, "a", "b")
	w.submit("a", 4, 100*hour, nil)
	w.Run(10 * second)
	waits := w.submit("b", 8, hour, func(j *sim.Work) { j.Request.Nodes, j.Request.PerNode = 2, 4 }) // has no room
	starts := w.submit("b", 4, hour, func(j *sim.Work) { j.NodeList = []string{"n02"} })
	w.Run(10 * second)
	if w.Job(starts).State == cluster.Running { // it was granted the idle GPUs
		w.Cancel(starts)
		w.submit("a", 4, 100*hour, nil)
		w.Run(minute)
		starts = w.submit("b", 4, hour, nil)
		w.Run(10 * second)
	}
	w.TakeOff(waits)
	w.Run(10 * second)
	if n := w.told("gate_opened"); n != 1 || !w.Job(waits).Locked {
		t.Errorf("told %d times; the job is locked again: %v", n, w.Job(waits).Locked)
	}
	for _, l := range w.Last.State.Leases {
		if id := w.Last.State.Records[slices.IndexFunc(w.Last.State.Records, func(r cluster.Record) bool { return r.Key == l.Job })].ID; id != starts {
			w.Cancel(id)
			break
		}
	}
	w.TakeOff(starts) // Slurm starts it before the next round
	w.Run(10 * second)
	w.state(starts, cluster.Running)
	if n := w.told("gate_opened"); n != 2 {
		t.Errorf("told %d times in all, want 2", n)
	}
	w.Run(hour / 2)
	if w.Received(starts) == 0 || w.Record(starts).Alloc != w.Received(starts) {
		t.Errorf("it received %d GPU-ms and is charged %d", w.Received(starts), w.Record(starts).Alloc)
	}
}

// If fairlease is down, Slurm starts jobs after gate.ttl at the latest. When fairlease returns, the gates are
// shut again.
func TestTheLockLapses(t *testing.T) {
	w := withLicense(t, true, []int{4, 4}, "a", "b")
	for range 3 {
		w.submit("a", 4, 3*hour, func(j *sim.Work) { j.NoRequeue = true })
	}
	w.Run(minute)
	w.Cancel(cluster.JobID{ID: 1})
	idle := cluster.JobID{ID: 3}
	w.state(idle, cluster.Waiting)
	w.Advance(w.Now().Add(w.Settings.GateTTL + second)) // no rounds are made
	w.state(idle, cluster.Running)
	late := w.submit("b", 4, hour, nil)
	w.Run(10 * second)
	w.Advance(w.Now().Add(minute))
	if w.Job(late).State != cluster.Waiting || !w.Job(late).Locked || len(w.done(cluster.Lock)) < 2 {
		t.Errorf("the gates are not shut again: %+v", w.Job(late))
	}
}

// Jobs that are not granted by fairlease, or no longer, stop asking for the licence. A site without managed
// jobs has no lock.
func TestTheLockIsGivenBack(t *testing.T) {
	w := withLicense(t, true, []int{4}, "a")
	first := w.submit("a", 4, 100*hour, nil)
	w.Run(10 * second)
	exempt := w.submit("a", 4, hour, nil)
	foreign := w.submit("a", 4, hour, func(j *sim.Work) { j.Request.Unplaceable = cluster.Cron })
	w.Run(10 * second)
	w.order(cluster.Exempt, "job", exempt.String(), 9)
	w.Run(10 * second)
	for _, id := range []cluster.JobID{exempt, foreign} {
		if w.Job(id).Locked || len(w.done(cluster.Open, id)) != 1 {
			t.Errorf("job %s: %+v", id, w.Job(id))
		}
	}
	w.Rules.Mode = loop.Observe
	locks := len(w.done(cluster.Lock))
	w.Run(hour)
	if n := len(w.done(cluster.Lock)); n != locks || slices.ContainsFunc(w.Last.Events, func(e cluster.Event) bool { return strings.HasPrefix(e.Kind, "gate") }) {
		t.Errorf("%d locks in observe mode", n-locks)
	}
	if w.Job(first).Locked {
		t.Errorf("the running job, which had started by itself, keeps the licence: %+v", w.Job(first))
	}
}

// A licence that the owner asked for stays on a job where fairlease has never acted.
func TestObservingTakesNoLicenceOff(t *testing.T) {
	w := withLicense(t, true, []int{4}, "a")
	w.Rules.Mode = loop.Observe
	id := w.submit("a", 4, 100*hour, func(j *sim.Work) { j.Locked = true })
	w.Run(hour)
	if !w.Job(id).Locked || len(w.done(cluster.Gate, id)) > 0 {
		t.Errorf("%+v", w.Job(id))
	}
}

// A grant that does not start is taken back, and nobody has opened the gate that the grant itself opened.
func TestATakeBackIsNoOpenedGate(t *testing.T) {
	w := withLicense(t, true, []int{2}, "a", "b")
	w.submit("b", 2, 30*minute, nil)
	w.Run(minute)
	id := w.submit("a", 1, forever, nil)
	w.Run(minute)
	hidden(w)
	w.Run(2 * hour)
	if n := len(w.done(cluster.RevokeGrant, id)); n == 0 {
		t.Fatal("no grant was taken back")
	}
	if n := w.told("gate_opened"); n != 0 {
		t.Errorf("told %d times that somebody opened a gate", n)
	}
}

// A running job has the licence, so that it waits behind its gate after a requeue by its owner or a node's failure. Off running
// jobs, it is put back within an hour, with an event.
func TestRunningJobsHaveTheLicence(t *testing.T) {
	w := withLicense(t, true, []int{4}, "a")
	id := w.submit("a", 4, 100*hour, nil)
	w.Run(minute)
	w.state(id, cluster.Running)
	if !w.Job(id).Locked || len(w.done(cluster.Gate, id)) != 1 {
		t.Fatalf("%d gates of %+v", len(w.done(cluster.Gate, id)), w.Job(id))
	}
	w.Run(10 * minute)
	w.TakeOff(id)
	before := w.told("gate_opened")
	w.Run(hour + minute)
	if !w.Job(id).Locked || w.told("gate_opened") != before+1 {
		t.Errorf("told %d times of %+v", w.told("gate_opened")-before, w.Job(id))
	}
}

// A job whose owner takes the licence off again and again, each time before it is seen, has no term for that when it starts: it is stopped
// like others, whatever its options.
func TestAGateOpenedAgainAndAgain(t *testing.T) {
	w := withLicense(t, true, []int{4}, "a", "b")
	w.submit("b", 4, 10*minute, neverSaves)
	w.Run(10 * second)
	id := w.submit("a", 4, 100*hour, func(j *sim.Work) { j.NoRequeue = true })
	other := w.submit("b", 4, 2*hour, nil)
	for range 80 {
		w.Run(10 * second)
		if w.Job(id).State == cluster.Running {
			break
		}
		w.TakeOff(id)
	}
	w.state(id, cluster.Running)
	w.Run(3 * hour)
	if n := len(w.done(cluster.Reclaim, id)); n == 0 || w.Received(other) < cluster.Times(4, hour) {
		t.Errorf("it was stopped %d times, and the other tenant received %.1f GPU hours", n, w.Received(other).Hours())
	}
}

// So is a job that has started when its gate, found open, is shut again: the licence is put on the running job then.
func TestAGateThatIsShutTooLate(t *testing.T) {
	w := withLicense(t, true, []int{4, 4}, "a", "b")
	w.submit("a", 4, 100*hour, func(j *sim.Work) { j.NoRequeue = true }) // its due
	runs := w.submit("b", 4, 100*hour, neverSaves)
	w.Run(minute)
	id := w.submit("a", 4, 100*hour, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(minute)
	w.TakeOff(id)
	w.Run(10 * second) // found open, and shut
	w.TakeOff(id)
	w.alter = func(s *cluster.Observation) { // the second time it starts before it is shut: that reaches a running job
		for i := range s.Jobs {
			if s.Jobs[i].ID == id && s.Jobs[i].State == cluster.Running {
				s.Jobs[i].Locked = true
			}
		}
	}
	w.Run(10 * second)
	w.TakeOff(id)
	w.Cancel(runs)
	w.Advance(w.Now().Add(5 * second))
	w.state(id, cluster.Running)
	w.submit("b", 4, 2*hour, nil)
	w.Run(3 * hour)
	if n := len(w.done(cluster.Reclaim, id)); n == 0 {
		t.Errorf("it was stopped %d times", n)
	}
}

// Where very many jobs wait without the licence, their gates last longer in proportion: the rate of changes stays, and no gate opens. A user who submits them
// opens nobody's.
func TestGatesOfVeryManyJobsLastLonger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most  int
		least cluster.Span // of a gate that is shut when 60 jobs wait
		till  cluster.Span
	}{
		{0, 7 * minute, 10 * minute}, {60, 7 * minute, 10 * minute}, {20, 22 * minute, 30 * minute}, {1, 7 * hour, 10 * hour},
	} {
		set := simtest.Product()
		set.MaxBeginTimes = c.most
		w := simtest.New(t, set, simtest.Nodes("n", "v100", 1, 4), "x", "y")
		w.License, w.Gate = 0, set.GateTTL
		w.Submit("x", 1, 4, 100*hour)
		w.Run(minute)
		gates, shortest, longest := 0, cluster.Span(1<<60), cluster.Span(0)
		w.Check = func(r loop.Report) {
			for i := range r.Plan.Actions {
				if a := &r.Plan.Actions[i]; a.Verb == cluster.Gate {
					gates, shortest, longest = gates+1, min(shortest, a.Until.Sub(r.Plan.At)), max(longest, a.Until.Sub(r.Plan.At))
				}
			}
		}
		w.Submit("y", 60, 4, hour)
		w.Run(minute)
		if shortest < c.least || longest > c.till {
			t.Errorf("begin_times %d: gates last %s to %s, want %s to %s", c.most, shortest, longest, c.least, c.till)
		}
		gates = 0
		w.Run(2 * hour)
		if most := 60 * 120 / 5; c.most > 0 && c.most < 60 && gates > most*c.most/60+60 {
			t.Errorf("begin_times %d: %d changes in two hours", c.most, gates)
		}
		for i := range w.Last.Statuses {
			if s := &w.Last.Statuses[i]; s.Reason.Code == cluster.ReasonUntouched {
				t.Errorf("begin_times %d: job #%d is left alone", c.most, s.Job)
			}
		}
	}
}
