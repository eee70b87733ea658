package engine_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

func saves(j *sim.Work) { j.Saves, j.Comment = sim.OnTerm, "saves=term" }

// told counts the events of a kind about a job.
func (w *world) toldOf(kind string, id cluster.JobID) (n int) {
	for _, r := range w.reports {
		for _, e := range r.Plan.Events {
			if e.Kind == kind && e.Job == w.Record(id).Key {
				n++
			}
		}
	}
	return n
}

// unstoppable is what an owner does to keep its GPUs: no requeue, no saves, another name, and a reservation.
func unstoppable(j *cluster.Job) {
	j.Requeueable, j.Name, j.Reservation, j.Declares, j.Hints = false, "other", "course", cluster.Saving{}, nil
}

// A job that was granted its lease as one that may be stopped is stopped, whatever its owner has changed since.
func TestAnOwnersChangesKeepNoGPUs(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a", "b")
	var ids []cluster.JobID
	for range 8 {
		ids = append(ids, w.submit("a", 1, forever, saves))
	}
	w.Run(20 * minute)
	for _, id := range ids {
		w.state(id, cluster.Running)
		w.Update(id, unstoppable)
	}
	w.Run(minute)
	for range 4 {
		w.submit("b", 1, forever, saves)
	}
	w.Run(2*term + 2*minute)
	if n := w.Standing("b", "v100").Holds; n != cluster.CountOf(4) {
		t.Errorf("b holds %s GPUs after two terms, want its half", n)
	}
	stopped := 0
	for _, id := range ids {
		if n := w.toldOf("changed_in_lease", id); n != 1 {
			t.Errorf("job %s: %d events about what its owner changed", id, n)
		}
		if w.Job(id).State == cluster.Waiting {
			stopped++
			if n := w.toldOf("requeue_set", id); n != 1 || !w.Job(id).Requeueable {
				t.Errorf("job %s was requeued: %d events about that, %+v", id, n, w.Job(id))
			}
		}
	}
	if stopped != 4 {
		t.Errorf("%d jobs were stopped", stopped)
	}
}

// A change while the job waits counts: --no-requeue is its owner's choice.
func TestAnOwnersChoiceBeforeTheGrant(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
	holder := w.submit("a", 4, forever, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(minute)
	id := w.submit("a", 4, forever, saves)
	w.Run(minute)
	w.state(id, cluster.Waiting)
	w.Update(id, func(j *cluster.Job) { j.Requeueable = false })
	w.Run(minute)
	w.Cancel(holder)
	w.Run(minute)
	w.state(id, cluster.Running)
	w.submit("b", 4, hour, saves)
	w.Run(5 * hour)
	w.state(id, cluster.Running)
	if n := len(w.done(cluster.Reclaim, id)) + w.toldOf("requeue_set", id); n != 0 {
		t.Errorf("it was stopped: %d", n)
	}
}

// A job with --no-requeue whose owner opens its gate has no right to keep what it takes: it is stopped like others. One that starts
// since its gate lapsed keeps its GPUs.
func TestAnOpenedGateKeepsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		license bool
		open    func(*world, cluster.JobID)
	}{
		"licence taken off": {true, func(w *world, id cluster.JobID) { w.TakeOff(id) }},
		"begin time set":    {false, func(w *world, id cluster.JobID) { w.SetBegin(id, w.Now()) }},
	} {
		w := newWorld(t, simtest.Product(), []int{4}, "a", "b")
		if c.license {
			w.License = 1_000_000
		}
		holder := w.submit("a", 4, forever, func(j *sim.Work) { j.NoRequeue = true })
		w.Run(minute)
		id := w.submit("a", 4, forever, func(j *sim.Work) { saves(j); j.NoRequeue = true })
		w.Run(minute)
		w.state(id, cluster.Waiting)
		c.open(w, id)
		w.Cancel(holder)
		w.Run(minute)
		w.state(id, cluster.Running)
		if n := len(w.done(cluster.Grant, id)); n > 0 {
			t.Fatalf("%s: it was granted a lease", name)
		}
		w.submit("b", 4, hour, saves)
		w.Run(5 * hour)
		if n := w.toldOf("requeue_set", id); n != 1 || len(w.done(cluster.Reclaim, id)) == 0 {
			t.Errorf("%s: it was stopped %d times, with %d events", name, len(w.done(cluster.Reclaim, id)), n)
		}
	}
}

// A job whose owner opened its gate has no term before its turn: while another tenant waits for its due, it is stopped at once, as often
// as that happens, whatever a stop costs it and whether its pool can pay for it.
func TestAnOpenedGateIsNoTerm(t *testing.T) {
	set := simtest.Product()
	set.StopTotalMilli = 1
	w := newWorld(t, set, []int{4, 4}, "a", "b")
	w.License = 1_000_000
	w.submit("a", 4, forever, func(j *sim.Work) { j.NoRequeue = true }) // its due
	runs := w.submit("b", 4, forever, saves)
	w.Run(minute)
	id := w.submit("a", 4, forever, func(j *sim.Work) { neverSaves(j); j.NoRequeue = true })
	started := 0
	for range 5 {
		w.Run(term - w.Now().Sub(simtest.Start)%term + 5*second) // all leases are new
		next := w.submit("b", 4, forever, saves)
		w.Run(10 * second)
		w.Cancel(runs)
		w.TakeOff(id)
		w.Run(5 * second)
		if w.Job(id).State == cluster.Running { // else its gate was shut again in time
			started++
		}
		w.Run(2*set.Notice + minute)
		w.state(id, cluster.Waiting)
		w.state(next, cluster.Running)
		runs = next
	}
	if started < 2 {
		t.Errorf("it started %d times", started)
	}
}

// A running job that its owner requeues, makes not requeueable and starts again, all before it is seen, keeps nothing either.
func TestAStartBetweenTwoLooksKeepsNothing(t *testing.T) {
	for _, license := range []int64{0, 1_000_000} {
		set := simtest.Product()
		set.Interval = minute
		w := newWorld(t, set, []int{4}, "a", "b")
		w.License = license
		id := w.submit("a", 4, forever, saves)
		w.Run(hour)
		w.state(id, cluster.Running)
		was := w.Job(id).Restarts
		w.Requeue(id)
		w.Advance(w.Now().Add(10 * second))
		w.Update(id, func(j *cluster.Job) { j.Requeueable = false })
		if license > 0 {
			w.TakeOff(id)
		}
		w.SetBegin(id, w.Now())
		w.Advance(w.Now().Add(10 * second))
		if j := w.Job(id); j.State != cluster.Running || j.Restarts != was+1 {
			t.Fatalf("it is %s after %d restarts", j.State, j.Restarts-was)
		}
		other := w.submit("b", 4, hour, saves)
		w.Run(5 * hour)
		if n := len(w.done(cluster.Reclaim, id)); n == 0 || w.Received(other) == 0 {
			t.Errorf("licences %d: it was stopped %d times, and the other tenant received %.1f GPU hours", license, n, w.Received(other).Hours())
		}
	}
}

// Promised cells come back after an owner's change, as without it.
func TestAnOwnersChangesKeepNoCells(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	w.submit("a", 4, forever, saves)
	w.Run(minute)
	lent := w.submit("a", 4, forever, saves)
	w.Run(hour)
	w.class(lent, cluster.Opportunistic)
	w.Update(lent, unstoppable)
	w.Run(minute)
	w.class(lent, cluster.Opportunistic)
	owner := w.submit("b", 4, 10*minute, saves)
	w.Run(3 * minute)
	w.class(owner, cluster.Guaranteed)
	w.state(lent, cluster.Waiting)
}

// meddler shows the running jobs of a cluster as their owners have changed them, until they wait again.
type meddler struct {
	*sim.Virtual
	change func(*cluster.Job)
}

func (m meddler) Observe(ctx context.Context, since cluster.Instant) (cluster.Observation, error) {
	seen, err := m.Virtual.Observe(ctx, since)
	jobs := make([]cluster.Job, len(seen.Jobs))
	for i := range seen.Jobs {
		jobs[i] = seen.Jobs[i]
		m.change(&jobs[i])
	}
	seen.Jobs = jobs
	return seen, err
}

// Whatever owners change of their running jobs to keep them running, or to have others pay: each round decides as without it.
func TestOwnersChangesDecideNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plain := newChaos(rt, t)
		c := &chaos{T: rt, nodes: plain.nodes, world: simtest.New(t, plain.world.Settings, plain.nodes, "x", "y", "z"), sure: plain.sure}
		twin := simtest.New(t, c.world.Settings, c.nodes, "x", "y", "z")
		c.world.License, c.world.Completing, c.world.History = plain.world.License, plain.world.Completing, plain.world.History
		twin.License, twin.Completing, twin.History = c.world.License, c.world.Completing, c.world.History

		which := rapid.IntRange(1, 255).Draw(rt, "changes")
		seen := map[cluster.JobID]cluster.Instant{} // the attempt in which a job was seen unchanged
		changed := map[cluster.JobID]bool{}
		twin.Loop.Cluster = meddler{twin.Virtual, func(j *cluster.Job) {
			granted := slices.ContainsFunc(twin.Last.State.Records, func(r cluster.Record) bool { return r.ID == j.ID && r.Basis != nil })
			switch {
			case j.State == cluster.Waiting:
				changed[j.ID] = false
			case j.State != cluster.Running:
			case !granted && seen[j.ID] != j.Start: // it started without a lease: its first sight counts
				seen[j.ID] = j.Start
			default:
				changed[j.ID] = true
			}
			if !changed[j.ID] {
				return
			}
			for bit, change := range []func(){
				func() { j.Requeueable = false },
				func() { j.Account = "z" },
				func() { j.QOS = "debug" },
				func() { j.Partitions = []string{"free"} },
				func() { j.Name = "other" },
				func() { j.Reservation = cmp.Or(j.Reservation, "course") },
				func() {
					if j.Declares = (cluster.Saving{}); j.Hints != nil {
						j.Hints = &cluster.Hints{MinLease: j.Hints.MinLease} // to wish for less counts at once
					}
				},
				func() {
					j.Hints, j.Declares = cluster.ParseHints("kind=other,min-lease=12h,save-time=9m,saves=never", 0), cluster.Saving{Manner: cluster.SavesNever, Takes: 9 * minute}
				},
			} {
				if which&(1<<bit) != 0 {
					change()
				}
			}
		}}
		var plans [2][]cluster.Plan
		for i, w := range []*simtest.World{c.world, twin} {
			w.Check = func(r loop.Report) { plans[i] = append(plans[i], r.Plan) }
		}
		for range rapid.IntRange(1, 12).Draw(rt, "jobs") {
			work := sim.Work{Name: "train", User: "u", Account: rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "tenant"), Partition: "gpu",
				Request: simtest.Gang(rapid.SampledFrom([]int{1, 2, 4}).Draw(rt, "gpus")), Runs: cluster.Span(rapid.IntRange(1, 300).Draw(rt, "minutes")) * minute,
				Saves: sim.Saves(rapid.IntRange(0, 5).Draw(rt, "saves")), Every: 10 * minute, NoRequeue: rapid.IntRange(0, 9).Draw(rt, "no requeue") == 0,
				Comment: rapid.SampledFrom([]string{"", "min-lease=30m", "gpus=idle", "kind=lstm"}).Draw(rt, "comment")}
			c.world.Virtual.Submit(work)
			twin.Virtual.Submit(work)
			span := cluster.Span(rapid.IntRange(1, 1200).Draw(rt, "seconds")) * second
			c.world.Run(span)
			twin.Run(span)
		}
		for range 4 {
			c.world.Run(hour)
			twin.Run(hour)
		}
		if len(plans[0]) != len(plans[1]) {
			rt.Fatalf("%d rounds, and %d with the owners' changes", len(plans[0]), len(plans[1]))
		}
		for i := range plans[0] {
			for k := range plans {
				p := &plans[k][i]
				p.Events, p.State.Noise = nil, nil
				for r := range p.State.Records {
					if b := p.State.Records[r].Basis; b != nil {
						now := *b
						now.Told = 0
						p.State.Records[r].Basis = &now
					}
				}
			}
			if a, b := encode(plans[0][i]), encode(plans[1][i]); a != b {
				rt.Fatalf("round %d: without the changes of owners\n%s\nwith them\n%s", plans[0][i].Round, a, b)
			}
		}
	})
}
