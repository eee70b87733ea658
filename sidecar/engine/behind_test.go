package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// tinyWorld is two nodes of eight GPUs for the tenants a and b, whose new jobs are gated by the submit plugin. It fails if
// more GPUs are leased than there are, or if the pool's account does not add up.
func tinyWorld(t *testing.T) *world {
	w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
	w.Gate, w.License = 10*minute, 1_000_000
	w.Loop.Decide, w.Loop.Brief, w.Lend = simtest.Checked(t), true, true
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		sums(t, &r.Plan)
	}
	return w
}

// sums checks that GPUs are leased once, that leases behind others hold none, and that the accounts add up.
func sums(t *testing.T, p *cluster.Plan) {
	t.Helper()
	gpus := map[string]int{}
	for _, l := range p.State.Leases {
		n := 0
		for _, h := range l.Nodes {
			if n += h.Size.Devices; l.State != cluster.Ending { // its GPUs are handed over
				gpus[h.Node] += h.Size.Devices
			}
		}
		if n != l.Size.Devices || l.Behind != 0 && (n != 0 || l.State != cluster.Granted) {
			t.Errorf("at %s: a lease of %d GPUs holds %+v behind %d, %s", p.At.Sub(simtest.Start), l.Size.Devices, l.Nodes, l.Behind, l.State)
		}
	}
	for node, n := range gpus {
		if n > 8 {
			t.Errorf("at %s: %d GPUs of %s are leased", p.At.Sub(simtest.Start), n, node)
		}
	}
	for _, a := range p.State.Ledger.Pools {
		if sum := a.Tenants + a.Untouchable + a.Overhead + a.Idle + a.Bad; sum != a.Capacity {
			t.Errorf("at %s: capacity %v, parts %v", p.At.Sub(simtest.Start), a.Capacity, sum)
		}
	}
}

// Two-second jobs keep their tenant's half of the GPUs busy beside long jobs, though rounds are ten seconds apart.
func TestTinyJobsUseTheirShare(t *testing.T) {
	w := tinyWorld(t)
	tiny := w.Submit("a", 1000, 1, 2*second)
	w.Submit("b", 16, 1, forever)
	w.Run(4 * minute)
	a, b := w.Used("a"), w.Used("b")
	half := cluster.Times(8, 4*minute)
	t.Logf("a used %.0f %%, b %.0f %% of their halves; %d grants", 100*float64(a)/float64(half), 100*float64(b)/float64(half), len(w.done(cluster.Grant)))
	if a < half*6/10 || b < half*9/10 {
		t.Errorf("a used %v of its half of %v, b %v", a, half, b)
	}
	// Each job is charged for what it ran, neither more nor less.
	var ran cluster.GPUTime
	for _, id := range tiny {
		if got, want := w.Alloc(id), w.Received(id); got != want {
			t.Fatalf("job %s is charged %v, and ran %v", id, got, want)
		}
		ran += w.Received(id)
	}
	if ran != a {
		t.Errorf("a's jobs ran %v, and it is charged %v", ran, a)
	}
}

// A user who trains the history with tiny jobs and then submits long ones under the same name gains nothing over one whose
// jobs always were long. Their open gates are shut again within three rounds, and nothing counts as a failure.
func TestATrainedHistoryGainsNothing(t *testing.T) {
	used := map[bool]cluster.GPUTime{}
	for _, trains := range []bool{false, true} {
		w := tinyWorld(t)
		w.Submit("b", 16, 1, forever)
		if trains {
			w.Submit("a", 100, 1, 2*second)
		}
		w.Run(2 * minute)
		before := w.Used("b")
		long := w.Submit("a", 64, 1, forever)
		waits := map[cluster.JobID]int{}
		check := w.Check
		w.Check = func(r loop.Report) {
			check(r)
			for _, l := range r.Plan.State.Leases {
				if l.Behind != 0 {
					waits[recordIn(&r.Plan, l.Job).ID]++
				}
			}
		}
		w.Run(4 * hour)
		used[trains] = w.Used("b") - before
		for _, id := range long {
			if n := waits[id]; n > 4 {
				t.Errorf("job %s was behind another in %d rounds", id, n)
			}
			if r := w.Record(id); r.Failed > 0 || r.AvoidUntil > 0 {
				t.Errorf("job %s: %d failures, back-off to %s", id, r.Failed, r.AvoidUntil)
			}
		}
		if trains && len(waits) == 0 {
			t.Error("no job was granted a lease behind another: the test shows nothing")
		}
	}
	t.Logf("b used %v beside one without history, %v beside one with", used[false], used[true])
	if lost := used[false] - used[true]; lost > cluster.Times(1, 5*minute) {
		t.Errorf("the other tenant lost %v", lost)
	}
}

// A job behind another is granted on its node, and explained so.
func TestAJobBehindAnother(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{1}, "a", "b")
	w.Gate, w.License = 10*minute, 1_000_000
	w.Submit("a", 8, 1, 2*second)
	w.Run(2 * minute) // five of them show that such jobs are short
	ids := w.Submit("a", 6, 1, 2*second)
	w.Run(10 * second)
	followers := 0
	for _, d := range w.done(cluster.Grant, ids...) {
		if d.Reason.Code != cluster.ReasonFollows {
			continue
		}
		followers++
		if d.Reason.Note != "n01" || d.Reason.For != w.Record(ids[0]).Key || d.Nodes[0] != "n01" || !d.outcome.OK {
			t.Errorf("granted: %+v", d)
		}
	}
	if followers != 4 { // ten seconds, of three each
		t.Errorf("%d jobs are behind another", followers)
	}
}

// Where users take turns, jobs of other users do not use a user's turn.
func TestUsersDoNotShareATurn(t *testing.T) {
	set := simtest.Product()
	set.Users = cluster.UsersEqual
	w := newWorld(t, set, []int{8, 8}, "a")
	w.Gate, w.License = 10*minute, 1_000_000
	check, seen := w.Check, 0
	w.Check = func(r loop.Report) {
		check(r)
		sums(t, &r.Plan)
		for _, l := range r.Plan.State.Leases {
			if l.Behind == 0 {
				continue
			}
			seen++
			if x, y := recordIn(&r.Plan, l.Job).User, recordIn(&r.Plan, l.Behind).User; x != y {
				t.Errorf("a job of %s is behind one of %s", x, y)
			}
		}
	}
	for n := range 600 {
		w.submit("a", 1, 2*second, func(j *sim.Work) { j.User = []string{"u", "v"}[n%2] })
	}
	w.Run(2 * minute)
	if seen == 0 {
		t.Error("no job was granted a lease behind another")
	}
}

// recordIn returns the record of a job in a plan.
func recordIn(p *cluster.Plan, key cluster.JobKey) cluster.Record {
	for r := range p.State.All() {
		if r.Key == key {
			return *r
		}
	}
	return cluster.Record{}
}

// Jobs that their user cancels at once say nothing of how long such jobs run: no others are granted leases behind them.
func TestCancelledJobsAreNotShort(t *testing.T) {
	t.Parallel()
	for _, cancels := range []bool{false, true} {
		w := tinyWorld(t)
		for k := range 10 {
			w.submit("a", 1, 3*second, func(j *sim.Work) {
				if cancels {
					j.Begin = w.Now().Add(cluster.Span(k) * 20 * second)
					j.Runs, j.Cancel = hour, j.Begin.Add(5*second)
				}
			})
		}
		w.Run(5 * minute)
		w.Submit("a", 40, 1, hour)
		w.Run(minute)
		behind := 0
		for _, d := range w.done(cluster.Grant) {
			if d.Reason.Code == cluster.ReasonFollows {
				behind++
			}
		}
		if (behind > 0) == cancels {
			t.Errorf("cancelled: %v, and %d grants behind jobs that are held to be short", cancels, behind)
		}
	}
}
