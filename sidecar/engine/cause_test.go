package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// flooded is a cluster of 16 GPUs on which tenant a wants everything, and tenant b has many jobs that Slurm refuses for a
// reason. refused tells which of b's jobs are concerned; nil = all.
func flooded(t *testing.T, reason string, jobs int, change func(int, *sim.Work)) (*world, []cluster.JobID) {
	w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
	w.Refuse = func(j *cluster.Job) string {
		if j.Account == "b" {
			return reason
		}
		return ""
	}
	w.Submit("a", 60, 1, 20*hour)
	w.Run(20 * minute)
	var flood []cluster.JobID
	for i := range jobs {
		flood = append(flood, w.submit("b", 1, hour, func(j *sim.Work) {
			if change != nil {
				change(i, j)
			}
		}))
	}
	return w, flood
}

// probes counts b's grants that have not started, and the reclaims, in each round from the first failure on; the rounds before are
// not counted.
func (w *world) probes(each func(r loop.Report, grants, reclaims int)) {
	failed := false
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		grants, reclaims := 0, 0
		for _, l := range r.Plan.State.Leases {
			if l.State == cluster.Granted && w.owner(r, l.Job) == "b" {
				grants++
			}
		}
		for _, a := range r.Plan.Actions {
			if (a.Verb == cluster.Reclaim || a.Verb == cluster.Notify) && w.owner(r, a.Reason.For) == "b" {
				reclaims++
			}
			failed = failed || a.Verb == cluster.RevokeGrant
		}
		if failed {
			each(r, grants, reclaims)
		}
	}
}

// owner gives the tenant of a job; "" = none.
func (w *world) owner(r loop.Report, key cluster.JobKey) string {
	for i := range r.Plan.State.Records {
		if r.Plan.State.Records[i].Key == key {
			return r.Plan.State.Records[i].Tenant
		}
	}
	return ""
}

// A grant is looked at when Slurm's reason for not starting its job counts, also in a cluster in which nothing else happens:
// else the first round after it would be that of its timeout, which cannot tell a grant that failed from one that nobody saw.
func TestAGrantIsLookedAt(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8}, "a")
	w.Refuse = func(*cluster.Job) string { return "Resources" }
	w.submit("a", 1, hour, nil)
	w.Run(second)
	l := w.Last.State.Leases[0]
	for _, after := range []cluster.Span{w.Settings.Interval, 2 * w.Settings.Interval} {
		if at := l.Granted.Add(after); w.Last.At < at && (w.Last.Next == 0 || w.Last.Next > at) {
			t.Errorf("the next round after %s is at %s, of a grant at %s", w.Last.At, w.Last.Next, l.Granted)
		}
		w.Run(w.Settings.Interval)
	}
}

// Jobs that a limit keeps from starting cost their own tenant one round, and the others no running job: from the first
// failure on one probe at a time is granted idle GPUs. When the limit is lifted, all start.
func TestAFloodThatNoLimitLetsStart(t *testing.T) {
	seeds.Slow(t)
	for _, reason := range []string{"QOSGrpGRES", "AssocGrpGRES", "BadConstraints", "Resources"} {
		t.Run(reason, func(t *testing.T) {
			w, flood := flooded(t, reason, 200, nil)
			most, reclaimed := 0, 0
			w.probes(func(r loop.Report, grants, reclaims int) {
				most, reclaimed = max(most, grants), reclaimed+reclaims
			})
			w.Run(30 * minute)
			owed := w.Last.State.Ledger.Tenants[1].Owed
			idle := w.Last.State.Ledger.Pools[0].Idle
			w.Run(2 * hour)
			if most > 1 || reclaimed > 4 {
				t.Errorf("%d grants at a time, %d notices and requeues of others for them: want one probe, mostly on idle GPUs", most, reclaimed)
			}
			if more := w.Last.State.Ledger.Pools[0].Idle - idle; more > cluster.Times(16, 2*hour)/100 {
				t.Errorf("%d GPU-ms idle in two hours, want at most 1 %%", more)
			}
			if got := w.why(flood[100], cluster.ReasonRefused); got.Note != reason || got.For == 0 {
				t.Errorf("the reason is %+v, want Slurm's and the probe", got)
			}
			if s := w.Standing("b", "v100"); s.Demand > cluster.WholeGPU {
				t.Errorf("b wants %d millionths, want at most a probe's", s.Demand)
			}
			for _, row := range w.Last.State.Ledger.Tenants {
				if row.Tenant == "b" && row.Owed > owed {
					t.Errorf("b is owed %d GPU-ms for GPUs that it could not use", row.Owed)
				}
			}
			w.Refuse = nil
			w.Reconsider()
			w.Run(3 * hour)
			if w.Used("b") == 0 || w.Standing("b", "v100").Holds < cluster.CountOf(3) || len(w.Last.State.Causes) > 0 {
				t.Errorf("after the limit was lifted b holds %s GPUs; causes %+v", w.Standing("b", "v100").Holds, w.Last.State.Causes)
			}
			w.books()
		})
	}
}

// A limit that lets some run: as one ends, another starts, and nothing else is kept idle for them.
func TestALimitThatLetsSomeRun(t *testing.T) {
	w, _ := flooded(t, "", 100, func(i int, j *sim.Work) { j.Runs = 40 * minute })
	w.Refuse = func(j *cluster.Job) string {
		if held := w.Last.State.Leases; j.Account == "b" {
			n := 0
			for _, l := range held {
				if l.State == cluster.Active && w.owner(loop.Report{Plan: w.Last}, l.Job) == "b" {
					n++
				}
			}
			if n >= 3 {
				return "AssocGrpGRES"
			}
		}
		return ""
	}
	w.Run(8 * hour)
	if got := w.Used("b"); got < cluster.Times(3, 8*hour)*6/10 {
		t.Errorf("b used %d GPU-ms, want most of its limit of 3 GPUs", got)
	}
	if idle := w.Last.State.Ledger.Pools[0].Idle; idle > cluster.Times(16, 8*hour)*3/100 {
		t.Errorf("%d GPU-ms idle", idle)
	}
}

// A class whose limit is changed is tried at once, not by time: here a limit that the rules do not read.
func TestAChangedLimitOpensTheClass(t *testing.T) {
	limit := uint64(1)
	w := newWorld(t, simtest.Product(), []int{8, 8}, "a", "b")
	w.Refuse = func(j *cluster.Job) string {
		if j.Account == "b" {
			return "AssocGrpBilling"
		}
		return ""
	}
	w.alter = func(s *cluster.Observation) {
		s.Limits.Associations = []cluster.Association{{Account: "b", Unread: limit}}
	}
	w.Run(minute)
	w.Submit("a", 4, 1, 20*hour)
	var flood []cluster.JobID
	for range 20 {
		flood = append(flood, w.submit("b", 1, 20*hour, nil))
	}
	w.Run(2*hour + 10*minute)
	closed := w.Last.State.Causes
	if len(closed) != 1 || closed[0].Until < w.Last.At.Add(30*minute) {
		t.Fatalf("causes %+v at %s, want one that is closed for long", closed, w.Last.At)
	}
	limit, w.Refuse = 2, nil
	w.Reconsider()
	w.submit("a", 1, hour, nil) // something to look at
	w.Run(5 * minute)
	running := 0
	for _, id := range flood {
		if w.Job(id).State == cluster.Running {
			running++
		}
	}
	if running < 8 {
		t.Errorf("%d jobs run 5 minutes after the limit was changed, want most of 11", running)
	}
}

// Whatever limits come and go, and whatever their reason, one job of a class is granted at a time while it is closed, and none
// of them ends a lease.
func TestOneProbeAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		reasons := map[string]string{}
		w, _ := flooded(t, "", 30, func(i int, j *sim.Work) {
			j.User, j.QOS, j.Runs = fmt.Sprint("b", i%3), fmt.Sprint("q", i%2), 30*minute
		})
		w.Refuse = func(j *cluster.Job) string { return reasons[j.User] }
		check := w.Check
		w.Check = func(r loop.Report) {
			check(r)
			for _, x := range r.Plan.State.Causes {
				n := 0
				for _, l := range r.Plan.State.Leases {
					id := w.idOf(r, l.Job)
					if c := (cluster.Case{Job: w.Job(id), Record: w.Record(id)}); l.State == cluster.Granted && l.Granted == r.Plan.At && lease.Concerns(&x, &c) {
						n++
					}
				}
				if x.Admits > 0 && (n > x.Admits || n > 0 && x.Until > r.Plan.At) {
					rt.Fatalf("%d new grants of %+v", n, x)
				}
			}
		}
		for range rapid.IntRange(2, 10).Draw(rt, "changes") {
			for _, u := range []string{"b0", "b1", "b2"} {
				reasons[u] = rapid.SampledFrom([]string{"", "AssocMaxJobsLimit", "QOSMaxGRESPerUser", "Resources"}).Draw(rt, "reason")
			}
			w.Reconsider()
			w.Run(cluster.Span(rapid.IntRange(1, 60).Draw(rt, "minutes")) * minute)
		}
		w.books()
	})
}

// idOf gives Slurm's id of a job.
func (w *world) idOf(r loop.Report, key cluster.JobKey) cluster.JobID {
	for i := range r.Plan.State.Records {
		if r.Plan.State.Records[i].Key == key {
			return r.Plan.State.Records[i].ID
		}
	}
	return cluster.JobID{}
}

// Jobs that do not start for ever other reasons keep few GPUs idle: beyond the first grants, no more are made while some
// stand for longer than a start takes. Other users of the tenant, and the other tenant, go on.
func TestGrantsThatStandAreBounded(t *testing.T) {
	w := newWorld(t, simtest.Product(), []int{8, 8, 8, 8}, "a", "b")
	w.Refuse = func(j *cluster.Job) string {
		if j.User == "flood" {
			return fmt.Sprint("Odd", j.ID.ID) // a class of its own
		}
		return ""
	}
	w.Submit("a", 12, 1, 20*hour)
	other := w.submit("b", 1, 20*hour, nil)
	w.Run(20 * minute)
	for range 6 {
		w.submit("b", 1, hour, func(j *sim.Work) { j.User = "flood" })
	}
	w.Run(30 * second)
	for range 100 {
		w.submit("b", 1, hour, func(j *sim.Work) { j.User = "flood" })
	}
	late := w.submit("b", 1, hour, nil)
	stands := 0
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		n := 0
		for _, l := range r.Plan.State.Leases {
			if l.State == cluster.Granted {
				n++
			}
		}
		stands = max(stands, n)
	}
	w.Run(20 * second)
	if stands > 7 {
		t.Errorf("%d grants stand, want no more than the six that came first, and another user's", stands)
	}
	w.state(late, cluster.Running)
	w.state(other, cluster.Running)
	w.books()
}
