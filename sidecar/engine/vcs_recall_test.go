package engine_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/cells"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// beyond returns the events of a job's stops beyond its budget.
func (w *world) beyond(id cluster.JobID) []cluster.Event {
	var out []cluster.Event
	key := w.Record(id).Key
	for _, r := range w.reports {
		for _, e := range r.Plan.Events {
			if e.Kind == "stop_beyond_budget" && e.Job == key {
				out = append(out, e)
			}
		}
	}
	return out
}

// recalledOnce returns a world in which job second of a, which never saves, ran for an hour on b's node until
// b wanted it. b has finished since. first holds a's own node.
func recalledOnce(t *testing.T, change func(*sim.Work)) (w *world, first, second cluster.JobID) {
	w = newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
	first = w.submit("a", 4, 3*hour, neverSaves)
	w.Run(minute)
	second = w.submit("a", 4, 2*hour, func(j *sim.Work) {
		if neverSaves(j); change != nil {
			change(j)
		}
	})
	w.Run(hour)
	w.class(first, cluster.Guaranteed)
	w.class(second, cluster.Opportunistic)
	owner := w.submit("b", 4, 10*minute, neverSaves)
	w.Run(2 * minute)
	w.class(owner, cluster.Guaranteed)
	w.state(second, cluster.Waiting)
	w.Run(13 * minute)
	w.state(owner, cluster.Done)
	return w, first, second
}

// A recall cannot wait, and may exceed the budget once. This is counted and reported as an event. The job
// then waits for cells of its own VC, where it is never stopped.
func TestAJobWhoseBudgetIsGoneRunsByRight(t *testing.T) {
	w, first, second := recalledOnce(t, nil)
	r := w.Record(second)
	if r.Stops != 1 || r.Beyond != 1 || r.Spent < hour-minute || r.Spent > hour+minute {
		t.Errorf("%d stops, %d beyond its budget, cost it %s", r.Stops, r.Beyond, r.Spent)
	}
	if e := w.beyond(second); len(e) != 1 || !strings.Contains(e[0].Text, "owner needs them") || !strings.Contains(e[0].Text, "its budget was 16 min;") {
		t.Errorf("told: %+v", e)
	}
	w.state(second, cluster.Waiting)
	if why := w.why(second, cluster.ReasonBudget); why.Spent != r.Spent || why.Fits < 30*minute || why.Fits > hour || why.Cell != "node" || why.For != w.Record(first).Key {
		t.Errorf("%+v", why)
	}
	other := w.submit("a", 4, 10*minute, neverSaves)
	w.Run(minute)
	w.class(other, cluster.Opportunistic) // b's node is lent to jobs that still have a budget
	w.Run(2 * hour)
	w.state(first, cluster.Done)
	w.class(second, cluster.Guaranteed)
	for range 4 {
		w.submit("b", 4, 30*minute, neverSaves)
		urgent := w.submit("a", 4, minute, func(j *sim.Work) { j.QOS = "urgent" })
		w.Settings.UrgentQOS = []string{"urgent"}
		w.Run(20 * minute)
		w.class(second, cluster.Guaranteed)
		if w.Alloc(urgent) != 0 && w.Record(second).Stops != 1 {
			t.Error("an urgent job of its VC took its right")
		}
	}
	w.Run(2 * hour)
	w.state(second, cluster.Done)
	if got := w.Received(second); got < cluster.Times(4, 3*hour) || got > cluster.Times(4, 3*hour+5*minute) {
		t.Errorf("it received %.1f GPU-hours for its two hours and the one that was destroyed", got.Hours())
	}
	w.books()
}

// It can borrow GPUs if its time limit ends before a recall is likely. If it is recalled there, too, no
// forecast counts.
func TestAJobWhoseBudgetIsGoneIsLentWhatItCanFinish(t *testing.T) {
	w, _, second := recalledOnce(t, func(j *sim.Work) { j.Limit = 90 * minute }) // 30 min are left of it
	w.class(second, cluster.Opportunistic)
	w.submit("b", 4, 5*minute, neverSaves)
	w.Run(10 * minute)
	if r := w.Record(second); r.Beyond != 2 {
		t.Errorf("%d of its %d stops were beyond its budget", r.Beyond, r.Stops)
	}
	if why := w.why(second, cluster.ReasonBudget); why.Fits != 0 {
		t.Errorf("it would be lent GPUs with a limit of %s", why.Fits)
	}
}

// A tenant without cells can only borrow GPUs. When its job's budget is gone, the job still borrows GPUs that
// no other job takes, until it ends.
func TestAJobWithoutCellsOfItsOwnIsLentWhatIsLeft(t *testing.T) {
	w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b", "c")
	w.submit("a", 4, 9*hour, neverSaves)
	id := w.submit("c", 4, 2*hour, neverSaves)
	w.Run(hour)
	w.class(id, cluster.Opportunistic)
	for range 3 {
		w.submit("b", 4, 20*minute, neverSaves)
		w.Run(hour)
	}
	if r := w.Record(id); r.Beyond < 3 {
		t.Errorf("%d of its %d stops were beyond its budget", r.Beyond, r.Stops)
	}
	w.class(id, cluster.Opportunistic)
	w.submit("b", 4, 10*minute, neverSaves)
	w.Run(minute)
	other := w.submit("a", 4, 30*minute, neverSaves)
	w.Run(20 * minute)
	w.class(other, cluster.Opportunistic) // jobs with budget come first
	w.state(id, cluster.Waiting)
	w.Run(3 * hour)
	w.state(id, cluster.Done)
	w.books()
}

// A user of b has set a begin time: no forecast goes beyond it.
func TestABeginTimeIsKnown(t *testing.T) {
	w, _, second := recalledOnce(t, nil)
	before := w.why(second, cluster.ReasonBudget).Fits
	w.submit("b", 4, hour, func(j *sim.Work) { j.Begin = w.Now().Add(10 * minute) })
	w.Run(minute)
	if fits := w.why(second, cluster.ReasonBudget).Fits; fits < 8*minute || fits > 10*minute || fits >= before {
		t.Errorf("its node is wanted in 9 min, and a limit of %s would do", fits)
	}
}

// The time for which GPUs stay lent is learnt: longer limits fit if recalls are rare.
func TestForecastsAreLearnt(t *testing.T) {
	w, _, second := recalledOnce(t, nil)
	sum := func() (out cluster.Lent) {
		for _, x := range w.Last.State.Lent {
			out.Time, out.Recalls = out.Time+x.Now.Time+x.Earlier.Time, out.Recalls+x.Now.Recalls+x.Earlier.Recalls
		}
		return out
	}
	if got := sum(); got.Recalls != 1 || got.Time < hour-minute || got.Time > hour+minute {
		t.Fatalf("learnt of one recall after an hour: %+v", got)
	}
	before := w.why(second, cluster.ReasonBudget).Fits
	w.submit("a", 4, 90*minute, neverSaves)
	w.Run(80 * minute)
	if got := sum(); got.Recalls != 1 || got.Time < 2*hour {
		t.Errorf("learnt of 80 minutes more: %+v", got)
	}
	if fits := w.why(second, cluster.ReasonBudget).Fits; fits < before+20*minute {
		t.Errorf("a limit of %s would do now, and %s before", fits, before)
	}
	w.Settings.Window = hour // recalls of two windows ago are forgotten
	w.Run(3 * hour)
	if got := sum(); got.Recalls != 0 {
		t.Errorf("not forgotten: %+v", got)
	}
}

// An order does not wait for the budget. It is counted, and the job keeps its right to GPUs.
func TestAnOrderIsBooked(t *testing.T) {
	w := newCells(t, 1, nodeCells(4, 1, vc("a", "node", 1)), "a")
	id := w.submit("a", 4, 3*hour, neverSaves)
	w.Run(hour)
	w.order(cluster.Freeze, "job", id.String(), 1)
	w.Run(30 * minute)
	w.state(id, cluster.Waiting)
	r := w.Record(id)
	if r.Stops != 1 || r.Beyond != 1 || r.Spent < hour-minute {
		t.Errorf("%d stops, %d beyond its budget, cost it %s", r.Stops, r.Beyond, r.Spent)
	}
	if e := w.beyond(id); len(e) != 1 || !strings.Contains(e[0].Text, "freeze") {
		t.Errorf("told: %+v", e)
	}
	w.Run(hour)
	w.class(id, cluster.Guaranteed)
	w.Run(4 * hour)
	w.state(id, cluster.Done)
}

// A draining node keeps its jobs, with and without VCs: a job that may not be stopped is not stopped.
func TestADrainStopsNobody(t *testing.T) {
	for _, c := range []struct {
		name  string
		world *world
	}{
		{"cells", newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")},
		{"shares", newWorld(t, simtest.Product(), []int{4, 4}, "a", "b")},
	} {
		w := c.world
		id := w.submit("a", 4, 3*hour, neverSaves)
		w.Run(hour)
		on := w.Job(id).Holds[0].Node
		w.alter = func(s *cluster.Observation) {
			s.Nodes = slices.Clone(s.Nodes)
			for i := range s.Nodes {
				if s.Nodes[i].Name == on {
					s.Nodes[i].Bad = "drained"
				}
			}
		}
		w.submit("b", 4, 3*hour, neverSaves)
		w.submit("b", 4, 3*hour, neverSaves)
		w.Run(90 * minute)
		w.state(id, cluster.Running)
		w.alter = nil
		w.Run(hour)
		w.state(id, cluster.Done)
		if r := w.Record(id); r.Stops != 0 || r.Spent != 0 {
			t.Errorf("%s: %d stops, which cost it %s", c.name, r.Stops, r.Spent)
		}
	}
}

// Neither a node that is drained or fails nor a requeue by others is a stop: they do not cost the job its stop budget. The job keeps its
// right to GPUs.
func TestADrainIsNobodysStop(t *testing.T) {
	for _, drain := range []bool{true, false} {
		w := newCells(t, 2, nodeCells(4, 2, vc("a", "node", 1), vc("b", "node", 1)), "a", "b")
		id := w.submit("a", 4, 3*hour, neverSaves)
		w.Run(hour)
		if drain {
			w.SetNode(w.Job(id).Holds[0].Node, "drained")
		} else {
			w.Requeue(id)
		}
		w.Run(10 * minute)
		r := w.Record(id)
		if r.Stops != 0 || r.Spent != 0 || r.Lost != 0 || len(w.beyond(id)) != 0 || r.Others == nil || r.Others.Count != 1 || (r.Others.Cause == cluster.ByNodeFailure) != drain {
			t.Errorf("drained %v: %d stops, which cost it %s: %+v", drain, r.Stops, r.Spent, r.Others)
		}
		if drain { // a's GPUs are gone with its node
			w.SetNode("n01", "")
			w.SetNode("n02", "")
		}
		w.Run(5 * minute)
		w.class(id, cluster.Guaranteed)
		w.Run(4 * hour)
		w.state(id, cluster.Done)
	}
}

// Under constant recalls, a job that never saves is stopped beyond its budget at most twice, whatever its
// limit. Every job of finite work ends, because its tenant's own VC can hold it.
func TestRecallsGoBeyondTheBudgetTwiceAtMost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := simtest.Product()
		set.Preset, set.Chooser = "hived", rapid.SampledFrom([]string{"astraea", "fifo", "gandiva-fair"}).Draw(rt, "chooser")
		set.Divide = rapid.SampledFrom(append([]string{""}, preset.Dividing()...)).Draw(rt, "preset")
		set.DivideJobs = preset.OfJobs(set.Divide)
		set.StopAllowance = cluster.Span(rapid.IntRange(1, 40).Draw(rt, "allowance")) * minute
		set.StopOverheadMilli = int64(rapid.IntRange(0, 50).Draw(rt, "overhead"))
		set.RecallNotice = cluster.Span(rapid.IntRange(0, 1).Draw(rt, "notice")) * minute
		nodes := rapid.IntRange(1, 3).Draw(rt, "b's nodes")
		d := nodeCells(4, 1+nodes, vc("a", "node", 1), vc("b", "node", nodes))
		if _, err := cells.New(*d); err != nil {
			rt.Fatal(err)
		}
		w := simtest.New(t, set, simtest.Nodes("n", "v100", 1+nodes, 4), "a", "b")
		w.Rules.Cells = d
		submit := func(tenant string, gpus int, runs, limit cluster.Span) cluster.JobID {
			return w.Virtual.Submit(sim.Work{User: tenant, Account: tenant, Partition: "gpu", Command: cluster.Untyped, Saves: sim.Never,
				Request: simtest.Gang(gpus), Runs: runs, Limit: limit})
		}
		var ids []cluster.JobID
		for range rapid.IntRange(2, 6).Draw(rt, "jobs") {
			runs := cluster.Span(rapid.IntRange(30, 400).Draw(rt, "minutes")) * minute
			limit := runs * cluster.Span(rapid.SampledFrom([]int{0, 1, 2}).Draw(rt, "limit"))
			ids = append(ids, submit("a", rapid.IntRange(1, 4).Draw(rt, "gpus"), runs, limit))
		}
		spent := map[cluster.JobID]cluster.Record{}
		w.Check = func(r loop.Report) {
			for x := range r.Plan.State.All() {
				spent[x.ID] = *x
			}
		}
		done := func() (n int) {
			for _, id := range ids {
				if s := w.Job(id).State; s == cluster.Done || s == "" {
					n++
				}
			}
			return n
		}
		for rounds := 0; done() < len(ids); rounds++ {
			if rounds > 24*10 {
				rt.Fatalf("after 10 days %d of %d jobs have ended, though all their work is %d hours at most", done(), len(ids), 7*len(ids))
			}
			for range nodes { // b wants all its GPUs again and again
				submit("b", 4, cluster.Span(rapid.IntRange(5, 30).Draw(rt, "b's minutes"))*minute, 0)
			}
			w.Run(hour)
		}
		for id, r := range spent {
			if r.Beyond > 2 {
				rt.Errorf("job %s was stopped %d times, %d beyond its budget", id, r.Stops, r.Beyond)
			}
		}
	})
}
