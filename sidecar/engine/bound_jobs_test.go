package engine_test

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// boundAs gives the plan's entry of a job among those whose GPUs are bound; nil = it has none.
func (w *world) boundAs(id cluster.JobID) *cluster.BoundJob {
	key := w.Record(id).Key
	if i := slices.IndexFunc(w.Last.Bound, func(b cluster.BoundJob) bool { return b.Job == key }); i >= 0 {
		return &w.Last.Bound[i]
	}
	return nil
}

// Each way in which a job keeps its GPUs has a word, the moment since which it does, and the moment at which that ends.
func TestBoundJobs(t *testing.T) {
	t.Parallel()
	const after = 3 * minute // its eligible time, from which the loop grants it a lease
	for _, c := range []struct {
		name  string
		job   func(*sim.Work)
		set   func(*world)
		order cluster.OverrideKind
		way   cluster.Way
		late  cluster.Span // since when it is bound, from its start; at most
		until cluster.Span // from its start; 0 = unknown
	}{
		{name: "saves on SIGTERM"},
		{name: "no requeue", job: func(j *sim.Work) { j.NoRequeue = true }, way: cluster.WayNoRequeue},
		{name: "no requeue, with a limit", job: func(j *sim.Work) { j.NoRequeue, j.Limit = true, 30*hour }, way: cluster.WayNoRequeue, until: 30 * hour},
		{name: "no requeue, overridden", job: func(j *sim.Work) { j.NoRequeue = true }, set: func(w *world) { w.Rules.OptOut.NoRequeue = loop.Override }},
		{name: "no requeue, left alone", job: func(j *sim.Work) { j.NoRequeue = true }, set: func(w *world) { w.Rules.OptOut.NoRequeue = loop.LeaveAlone }, way: cluster.WayNoRequeue},
		{name: "contiguous", job: func(j *sim.Work) { j.Request.Unplaceable = cluster.Contiguous }, way: cluster.WayContiguous},
		{name: "contiguous, overridden", job: func(j *sim.Work) { j.Request.Unplaceable = cluster.Contiguous }, set: func(w *world) { w.Rules.OptOut.Contiguous = loop.Override }},
		{name: "session", job: func(j *sim.Work) { j.Interactive = true }, way: cluster.WaySession},
		{name: "brackets", job: func(j *sim.Work) { j.Request.Features = "[a*1]" }, way: cluster.WayOther},
		{name: "excluded", set: func(w *world) { w.Rules.ExcludeUsers = []string{"a_user"} }, way: cluster.Way(cluster.LeftExcluded)},
		{name: "no tenant", job: func(j *sim.Work) { j.Account = "stranger" }, way: cluster.Way(cluster.LeftNoTenant)},
		{name: "older than its allowance", job: neverSaves, way: cluster.WayAge, late: 16 * minute},
		{name: "older, with a limit", job: func(j *sim.Work) { neverSaves(j); j.Limit = 30 * hour }, way: cluster.WayAge, late: 16 * minute, until: 30 * hour},
		{name: "saves rarely", job: func(j *sim.Work) { j.Saves, j.Every = sim.Periodic, 10*hour }, way: cluster.WaySaves, late: 16 * minute, until: 10*hour + 30*minute},
		{name: "minimum lease", job: func(j *sim.Work) { j.Saves, j.Comment = sim.OnTerm, "min-lease=8h" }, set: func(w *world) { w.Settings.MinLeaseTerms = 100 },
			way: cluster.WayMinLease, until: 8*hour + 30*minute},
		{name: "exempt", order: cluster.Exempt, way: cluster.WayExempt, until: 5*hour + 10*minute},
		{name: "frozen", job: func(j *sim.Work) { j.NoRequeue = true }, order: cluster.Freeze, way: cluster.WayNoRequeue},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := simtest.Product()
			set.Interval = minute
			w := newWorld(t, set, []int{4}, "a", "b")
			if c.set != nil {
				c.set(w)
			}
			id := w.submit("a", 2, 100*hour, func(j *sim.Work) {
				j.Begin, j.Saves, j.Comment = w.Now().Add(after), sim.OnTerm, "saves=term"
				if c.job != nil {
					c.job(j)
				}
			})
			w.Run(10 * minute)
			if c.order != "" {
				w.order(c.order, "job", id.String(), 5)
			}
			w.Run(2 * hour)
			j := w.Job(id)
			if j.State != cluster.Running {
				t.Fatalf("the job is %s: %+v", j.State, w.Reason(id))
			}
			got := w.boundAs(id)
			if c.way == "" {
				if got != nil {
					t.Errorf("its GPUs count as bound: %+v", *got)
				}
				return
			}
			if got == nil {
				t.Fatalf("its GPUs count as free to take back; %+v", w.Last.Bound)
			}
			if got.Way != c.way || got.GPUs != cluster.CountOf(2) || got.Pool != "v100" {
				t.Errorf("its GPUs are bound as %+v, want 2 of v100 by %q", *got, c.way)
			}
			if late := got.Since.Sub(j.Start); late < 0 || late > c.late || late < c.late/2 {
				t.Errorf("it is bound since %s after its start, want at most %s", late, c.late)
			}
			switch until := got.Until.Sub(j.Start); {
			case c.until == 0 && got.Until != 0, c.until > 0 && got.Until == 0:
				t.Errorf("it is bound until %d, want %s after its start", got.Until, c.until)
			case c.until > 0 && (until > c.until || until < c.until-hour/2):
				t.Errorf("it is bound until %s after its start, want %s", until, c.until)
			}
		})
	}
}

// Jobs that wait, end, or were told to stop bind nothing.
func TestOnlyRunningJobsAreBound(t *testing.T) {
	t.Parallel()
	set := simtest.Product()
	set.Interval = minute
	w := newWorld(t, set, []int{2}, "a", "b")
	short := w.submit("a", 2, hour, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(10 * minute)
	waits := w.submit("a", 2, hour, func(j *sim.Work) { j.NoRequeue = true })
	w.Run(10 * minute)
	if w.boundAs(short) == nil || w.boundAs(waits) != nil {
		t.Errorf("bound are %+v, want the running job alone", w.Last.Bound)
	}
	w.Run(hour)
	if w.boundAs(short) != nil || w.boundAs(waits) == nil {
		t.Errorf("bound are %+v, want the second job alone", w.Last.Bound)
	}
	w.Run(2 * hour)
	if len(w.Last.Bound) > 0 {
		t.Errorf("after the last job %+v are bound", w.Last.Bound)
	}
}

// A job that takes whole nodes counts for all GPUs of them before it is granted a lease: as the demand of its tenant, and as
// what it would bind.
func TestWholeNodesNeedRoomToBeBound(t *testing.T) {
	for name, more := range map[string]func(*cluster.Request){
		"alone":             func(*cluster.Request) {},
		"shared by a user":  func(r *cluster.Request) { r.Unplaceable = cluster.Apart + "user" },
		"of two components": func(r *cluster.Request) { r.Size, r.Nodes, r.Unplaceable = cluster.Whole(2), 2, cluster.HetParts },
	} {
		w := newWorld(t, simtest.Product(), []int{4, 4, 4, 4}, "a", "b")
		w.Gate = 240 * hour
		request := cluster.Request{Size: cluster.Whole(1), Nodes: 1, PerNode: 1, Exclusive: true}
		more(&request)
		takes := 4 * request.Nodes
		ask := func(tenant string) cluster.JobID {
			return w.submit(tenant, 1, 20*hour, func(j *sim.Work) { j.Request, j.NoRequeue = request, true })
		}
		for range 4 {
			ask("a")
			ask("b")
		}
		w.Run(minute)
		for _, tenant := range []string{"a", "b"} {
			if held := w.Standing(tenant, "v100").Holds; held != cluster.CountOf(8) {
				t.Errorf("%s: the jobs of %s hold %s of 16 GPUs", name, tenant, held)
			}
			if due := w.Standing(tenant, "v100").Demand; due != 4*cluster.MicroGPU(takes)*cluster.WholeGPU {
				t.Errorf("%s: four jobs of %s count as a demand of %d; want %d GPUs", name, tenant, due, 4*takes)
			}
		}
	}
}
