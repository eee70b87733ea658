package engine_test

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// The smallest input: of 16 GPUs a tenant held 12 for two days in jobs that cannot be stopped; then it and the other one want 20. In
// every hour it holds its floor, and the other one is repaid by all the rest.
func TestWhoRepaysKeepsItsFloorInEveryHour(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		floor int
		cap   cluster.Span
	}{{75, 2 * hour}, {50, 2 * hour}, {75, 24 * hour}} {
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

// After any history of held GPUs, gangs, terms, floors, caps and presets, a tenant that repays holds its floor in every hour in which others'
// GPUs can be taken back, but for its largest gang for one term.
func TestFloorsAfterAnyHistory(t *testing.T) {
	t.Parallel()
	hours := 0
	n := 4
	if seeds.Full() {
		n = 20
	}
	for seed := range seeds.Of(t, n) {
		f := simtest.FloorsOf(t, seed)
		if hours += f.Hours; f.Hours > 0 && f.Worst < 75 {
			t.Errorf("%.1f %% of what was due where 75 are promised: %s", f.Worst, f.What)
		}
	}
	if hours == 0 {
		t.Error("no tenant repays in any history")
	}
}
