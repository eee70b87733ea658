package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// The smallest input: of 16 GPUs a tenant held 12 for two days in jobs that cannot be stopped; then it and the other one want 20. In
// every hour it holds its floor, and the other one is repaid by all the rest.
func TestWhoRepaysKeepsItsFloorInEveryHour(t *testing.T) {
	t.Parallel()
	type promise struct {
		floor int
		cap   cluster.Span
	}
	for _, c := range seeds.Few(1, promise{75, 2 * hour}, promise{50, 2 * hour}, promise{75, 24 * hour}) {
		set := simtest.Product()
		set.Interval, set.RepayFloorPercent, set.CreditCap = minute, c.floor, c.cap
		w := simtest.New(t, set, simtest.Nodes("n", "v100", 2, 8), "a", "b")
		submit := func(tenant string, n int, runs cluster.Span, change func(*sim.Work)) {
			for range n {
				work := sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(1), Runs: runs}
				change(&work)
				w.Virtual.Submit(work)
			}
		}
		saves := func(j *sim.Work) { j.Saves, j.Comment = sim.OnTerm, "saves=term" }
		submit("a", 12, 48*hour, func(j *sim.Work) { j.NoRequeue = true })
		w.Run(minute)
		submit("b", 20, forever, saves)
		w.Run(47 * hour)
		submit("a", 20, forever, saves)
		w.Run(hour)
		for n := range 12 {
			a, b := w.Used("a"), w.Used("b")
			w.Run(hour)
			a, b = w.Used("a")-a, w.Used("b")-b
			floor := cluster.Times(8, hour) * cluster.GPUTime(c.floor) / 100
			if gang := cluster.Times(1, term+minute); a < floor-gang || a > floor+gang || b < cluster.Times(16, hour)-floor-gang {
				t.Errorf("floor %d, credit.cap %s: in hour %d a had %.2f and b %.2f GPU-hours, want %.2f and the rest", c.floor, c.cap, n+1, a.Hours(), b.Hours(), floor.Hours())
			}
		}
	}
}

// Where one tenant repays another, neither the creditor nor a third one, which owes nothing, pays for the debtor's floor with its own: in every
// hour all three hold it. Equally old claims go by size: a gang does not lose a term since single GPUs were claimed beside it.
func TestNobodyPaysForAFloorWithItsOwn(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	type group struct {
		tenant  string
		n, gang int
	}
	type floor struct {
		cap   cluster.Span
		holds int // GPUs that a holds for two days, or for one if they can be stopped
		stops bool
		gang  int  // of a
		boost bool // c has one job, and goes first
	}
	for _, c := range []floor{{24 * hour, 16, false, 1, true}, {2 * hour, 20, true, 4, false}, {2 * hour, 16, false, 1, false},
		{24 * hour, 16, false, 1, false}, {2 * hour, 20, true, 2, false}} {
		set := simtest.Product()
		set.Interval, set.CreditCap = minute, c.cap
		w := newWorldOn(t, set, simtest.Nodes("n", "v100", 3, 8), "a", "b", "c")
		submit := func(g group, runs cluster.Span, stops bool) {
			for range g.n {
				work := sim.Work{Name: "train", User: g.tenant + "_user", Account: g.tenant, Partition: "gpu", Request: simtest.Gang(g.gang), Runs: runs,
					Saves: sim.OnTerm, Comment: "saves=term", NoRequeue: !stops}
				w.Virtual.Submit(work)
			}
		}
		submit(group{"a", c.holds, 1}, 48*hour, c.stops)
		w.Run(minute)
		submit(group{"b", 40, 1}, forever, true)
		if !c.boost {
			submit(group{"c", 8, 1}, forever, true)
		}
		w.Run(47*hour + 59*minute)
		submit(group{"a", 40 / c.gang, c.gang}, forever, true)
		if c.boost {
			submit(group{"c", 1, 1}, forever, true)
			w.order(cluster.Boost, "tenant", "c", 12)
		} else {
			submit(group{"c", 32, 1}, forever, true)
		}
		w.Run(hour)
		for n := range 10 {
			before := [3]cluster.GPUTime{w.Used("a"), w.Used("b"), w.Used("c")}
			w.Run(hour)
			for k, name := range []string{"a", "b", "c"} {
				gang := cluster.Times(1, term+minute)
				if k == 0 {
					gang *= cluster.GPUTime(c.gang)
				}
				floor := cluster.Times(6, hour)
				if c.boost && name == "c" {
					floor = cluster.Times(1, hour)
				}
				if c.stops && name != "a" {
					continue // GPUs that were promised to a's gangs when their jobs got their notice are taken from the others' floors
				}
				if got := w.Used(name) - before[k]; got < floor-gang {
					t.Errorf("%+v: in hour %d %s had %.2f GPU-hours, want %.2f, but for %.2f", c, n+1, name, got.Hours(), floor.Hours(), gang.Hours())
				}
			}
		}
	}
}

// After any history of held GPUs, gangs, terms, floors, caps and presets, each tenant holds its floor in every hour in which somebody repays and
// others' GPUs can be taken back, but for its largest gang for one term.
func TestFloorsAfterAnyHistory(t *testing.T) {
	t.Parallel()
	hours := 0
	for seed := range seeds.Of(t, 20) {
		f := simtest.FloorsOf(t, seed, cluster.StopsPerHour{})
		if hours += f.Hours; f.Hours > 0 && f.Worst < 75 {
			t.Errorf("%.1f %% of what was due where 75 are promised: %s", f.Worst, f.What)
		}
	}
	if hours == 0 {
		t.Error("no tenant repays in any history")
	}
}

// Each tenant holds its floor also where stops are limited, but in hours in which its jobs say that stops wait. Elsewhere jobs may wait for GPUs
// that are claimed for them, or behind those, and say that.
func TestFloorsWhereStopsAreLimited(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for _, limits := range []cluster.StopsPerHour{{Tenant: 10}, {Tenant: 10, User: 5}} {
		if f := simtest.FloorsOf(t, 0, limits); f.Hours == 0 || f.Worst < 75 {
			t.Errorf("%+v, %d hours: %.1f %% of what was due where 75 are promised: %s", limits, f.Hours, f.Worst, f.What)
		}
	}
}

// Where nobody repays nothing is kept from others: a debt in one pool does not stop recalls for first leases in another.
func TestAFloorInOnePoolStopsNoRecallInAnother(t *testing.T) {
	t.Parallel()
	for _, debt := range []bool{false, true} {
		set := simtest.Product()
		set.Interval, set.Term, set.Threshold = minute, 2*hour, 5*minute
		w := newWorldOn(t, set, append(simtest.Nodes("v", "v100", 1, 8), simtest.Nodes("k", "k80", 1, 8)...), "a", "b")
		submit := func(tenant, model string, n int, runs cluster.Span, stops bool) (ids []cluster.JobID) {
			for range n {
				gang := simtest.Gang(1)
				gang.Model = model
				ids = append(ids, w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: gang, Runs: runs,
					Saves: sim.OnTerm, Comment: "saves=term", NoRequeue: !stops}))
			}
			return ids
		}
		if debt {
			submit("a", "v100", 8, 24*hour, false)
			w.Run(minute)
			submit("b", "v100", 16, forever, true)
			w.Run(24 * hour)
			submit("a", "v100", 16, forever, true)
		}
		submit("a", "k80", 16, forever, true)
		w.Run(2*hour + 30*minute)
		repays := false
		for _, row := range w.Last.State.Ledger.Tenants {
			repays = repays || row.Pool == "v100" && row.Owed < 0 && row.Repaying
		}
		if repays != debt {
			t.Fatalf("somebody repays: %v, want %v", repays, debt)
		}
		first := submit("b", "k80", 1, forever, true)[0]
		w.Run(10 * minute)
		if w.Alloc(first) == 0 {
			t.Errorf("with a debt elsewhere %v: the first lease of a job of a tenant without GPUs waits for a boundary", debt)
		}
	}
}

// Hours in which a tenant that repays lacks its floor, since others have lost as many GPUs as they may within the hour, are told by the reason of its
// waiting jobs. They end.
func TestHoursWithoutAFloorAreTold(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for name, limit := range map[string]cluster.StopsPerHour{"site": {Site: 10}, "tenant": {Tenant: 10}, "user": {User: 10}} {
		set := simtest.Product()
		set.Interval, set.StopsPerHour, set.CreditCap = minute, limit, 24*hour
		w := simtest.New(t, set, simtest.Nodes("n", "v100", 2, 8), "a", "b")
		submit := func(tenant string, n int, runs cluster.Span, stops bool) {
			for range n {
				w.Virtual.Submit(sim.Work{Name: "train", User: tenant + "_user", Account: tenant, Partition: "gpu", Request: simtest.Gang(1), Runs: runs,
					Saves: sim.OnTerm, Comment: "saves=term", NoRequeue: !stops})
			}
		}
		submit("a", 12, 48*hour, false)
		w.Run(minute)
		submit("b", 20, forever, true)
		w.Run(49 * hour)
		submit("a", 20, forever, true)
		without := 0
		for n := range 24 {
			told := false
			w.Check = func(rep loop.Report) {
				told = told || slices.ContainsFunc(rep.Plan.Statuses, func(s cluster.JobStatus) bool { return s.Reason.Code == cluster.ReasonStops })
			}
			a := w.Used("a")
			w.Run(hour)
			if a = w.Used("a") - a; a < cluster.Times(6, hour)-cluster.Times(1, term+minute) {
				if without = n + 1; !told {
					t.Errorf("%s: in hour %d a had %.2f GPU-hours, less than its floor, and no job is told why", name, n+1, a.Hours())
				}
			}
		}
		if without == 0 || without == 24 {
			t.Errorf("%s: the last hour without a's floor is number %d; want one, and not the last", name, without)
		}
	}
}
