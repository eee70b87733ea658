package engine_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// stopsOf notes what was really stopped in a world: when, and how many GPUs.
type stopsOf struct {
	at   []cluster.Instant
	gpus []int
	user []string
}

func (s *stopsOf) watch(e sim.Event) {
	if e.What == sim.Requeued && e.Start > 0 {
		s.at, s.gpus, s.user = append(s.at, e.At), append(s.gpus, e.Work.Request.Size.Devices), append(s.user, e.Work.User)
	}
}

// spread asks for GPUs on as few nodes of a size as hold them.
func spread(gpus, size int) cluster.Request {
	r := simtest.Gang(min(gpus, size))
	r.Size, r.Nodes = cluster.Whole(gpus), (gpus+size-1)/size
	return r
}

// In no hour more GPUs are taken from running jobs than stop.per_hour allows, but for a gang that needs more at once. Every job still ends.
func TestStopsStayWithinTheHoursLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		set := simtest.Product()
		set.Interval = cluster.Span(rapid.SampledFrom([]int{10, 30, 60}).Draw(rt, "interval")) * cluster.Second
		set.Term = cluster.Span(rapid.SampledFrom([]int{10, 15, 30, 60}).Draw(rt, "term")) * cluster.Minute
		set.MinLease = 5 * cluster.Minute
		set.Notice = cluster.Span(rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "notice")) * cluster.Minute
		set.RecallNotice = set.Notice / 2
		set.RecallFirst = rapid.Bool().Draw(rt, "recall")
		saves := []sim.Saves{sim.AtEnd, sim.AtNotice, sim.Never}
		if rapid.Bool().Draw(rt, "any job may be stopped") { // then one that never saves may begin again for ever
			set.StopAllowance, set.StopOverheadMilli, set.StopTotalMilli = 0, 0, 0
			saves = []sim.Saves{sim.AtEnd}
		}
		set.MaxReclaims = rapid.SampledFrom([]int{0, 3, 100}).Draw(rt, "max")
		if rapid.Bool().Draw(rt, "users") {
			set.Users = cluster.UsersEqual
		}
		set.StopsPerHour.Site = rapid.SampledFrom([]int{5, 25, 50, 100}).Draw(rt, "percent")
		nodes, size := rapid.IntRange(1, 4).Draw(rt, "nodes"), rapid.SampledFrom([]int{2, 4, 8}).Draw(rt, "size")
		tenants := []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(rt, "tenants")]
		w := simtest.New(t, set, simtest.Nodes("n", "v100", nodes, size), tenants...)
		stops := stopsOf{}
		w.Watch = stops.watch
		var ids []cluster.JobID
		submit := func() {
			n := rapid.SampledFrom([]int{1, 1, 2, size, size * nodes}).Draw(rt, "gpus")
			ids = append(ids, w.Virtual.Submit(sim.Work{User: rapid.SampledFrom([]string{"u", "v"}).Draw(rt, "user"), Account: rapid.SampledFrom(tenants).Draw(rt, "tenant"),
				Partition: "gpu", Command: cluster.Untyped, Request: spread(n, size), Runs: cluster.Span(rapid.IntRange(1, 300).Draw(rt, "minutes")) * cluster.Minute,
				Saves: rapid.SampledFrom(saves).Draw(rt, "saves")}))
		}
		for range rapid.IntRange(2, 12).Draw(rt, "jobs") {
			submit()
		}
		waits := func() bool {
			return slices.ContainsFunc(ids, func(id cluster.JobID) bool { s := w.Job(id).State; return s != cluster.Done && s != "" })
		}
		for hours := 1; waits(); hours++ {
			if hours > 60*24 {
				rt.Fatal("after 60 days not all jobs have ended")
			}
			if hours < 10 {
				submit()
			}
			w.Run(cluster.Hour)
		}
		most := set.StopsPerHour.Site * nodes * size / 100
		for first := range stops.at {
			sum, last := 0, first
			for k := first; k < len(stops.at) && stops.at[k].Sub(stops.at[first]) < cluster.Hour-2*set.Interval; k++ {
				sum, last = sum+stops.gpus[k], k
			}
			if once := stops.at[last].Sub(stops.at[first]) <= set.Notice+2*set.Interval; sum > most && !once {
				rt.Fatalf("from %s to %s %d GPUs were taken from running jobs, of %d at most: %v", stops.at[first], stops.at[last], sum, most, stops.gpus[first:last+1])
			}
		}
	})
}

// A site, a tenant and a user lose no more of their GPUs within an hour than their limits allow: 8 jobs of one GPU fill the site, and a tenant comes
// that is due half of it. Its jobs are told why they wait.
func TestNoOwnerLosesMoreThanItsHoursLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit       cluster.StopsPerHour
		site, owner int // GPUs within any hour, at most
	}{
		"site":            {cluster.StopsPerHour{Site: 25}, 2, 2},
		"site, by shadow": {cluster.StopsPerHour{Auto: true}, 2, 2},
		"tenant":          {cluster.StopsPerHour{Tenant: 40}, 8, 3},
		"user":            {cluster.StopsPerHour{User: 13}, 8, 1},
		"a part of one":   {cluster.StopsPerHour{Tenant: 1}, 8, 1},
	} {
		set := simtest.Product()
		set.Users, set.StopsPerHour = cluster.UsersBooked, c.limit
		w := simtest.New(t, set, simtest.Nodes("n", "v100", 1, 8), "x", "y")
		stops := stopsOf{}
		w.Watch = stops.watch
		w.Submit("x", 8, 1, 100*cluster.Hour)
		w.Run(20 * cluster.Minute)
		w.Submit("y", 8, 1, 100*cluster.Hour)
		told := false
		w.Check = func(rep loop.Report) {
			told = told || slices.ContainsFunc(rep.Plan.Statuses, func(s cluster.JobStatus) bool {
				return s.Reason.Code == cluster.ReasonStops && s.Reason.Until > rep.Plan.At
			})
		}
		w.Run(13 * cluster.Hour)
		if !told {
			t.Errorf("%s: no job is told that it waits for the limit", name)
		}
		site, owner := 0, 0
		for first := range stops.at {
			sum, of := 0, map[string]int{}
			for k := first; k < len(stops.at) && stops.at[k].Sub(stops.at[first]) < cluster.Hour-2*set.Interval; k++ {
				sum, of[stops.user[k]] = sum+stops.gpus[k], of[stops.user[k]]+stops.gpus[k]
			}
			site, owner = max(site, sum), max(owner, of["x_user"], of["y_user"])
		}
		if site == 0 || site > c.site || owner > c.owner {
			t.Errorf("%s: %d GPUs were taken from running jobs within an hour, %d of one owner; want at most %d and %d", name, site, owner, c.site, c.owner)
		}
		if got := w.Used("y"); got < 35*cluster.GPUTime(cluster.Hour) {
			t.Errorf("%s: y received %.1f GPU-hours in 13 hours, want 35 at least", name, got.Hours())
		}
	}
}

// Jobs that move for their own speed are stopped, too: no more of them move within an hour than the limit allows, and all do in the end.
func TestMovesStayWithinTheHoursLimit(t *testing.T) {
	for _, c := range []struct{ percent, first int }{{0, 4}, {10, 1}} {
		set := simtest.Product()
		set.ScatterWait, set.StopsPerHour.Site = hour, c.percent
		nodes := simtest.Nodes("n", "v100", 12, 2)
		w := newWorldOn(t, set, nodes, "a")
		w.Gate = w.Settings.GateTTL
		for node := range nodes {
			gpus := 1
			if node >= 8 { // is idle later
				gpus = 2
			}
			w.submit("a", gpus, 31*minute, func(j *sim.Work) { j.NoRequeue, j.NodeList = true, []string{nodes[node].Name} })
		}
		w.Run(minute)
		var gangs []cluster.JobID
		for range 4 {
			gangs = append(gangs, w.submit("a", 2, 20*hour, func(j *sim.Work) { anywhere(j); j.Comment += ",saves=notice" }))
		}
		w.Run(minute)
		w.Rules.Profiles = keeps(0.3, 2)
		together := func() (n int) {
			for _, id := range gangs {
				if len(w.Job(id).Holds) == 1 {
					n++
				}
			}
			return n
		}
		if n := together(); n > 0 {
			t.Fatalf("%d of the gangs begin on one node", n)
		}
		w.Run(47 * minute)
		if n := together(); n != c.first {
			t.Errorf("%d %%: %d gangs have moved at once, want %d", c.percent, n, c.first)
		}
		w.Run(6 * hour)
		if n := together(); n != len(gangs) {
			t.Errorf("%d %%: %d gangs have moved after six hours, want all", c.percent, n)
		}
	}
}
