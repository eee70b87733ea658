package engine_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// newMarket makes a world of two pools, k80 and v100, with so many nodes of 4 GPUs each. The function divide
// allocates them between tenants' job types, or between jobs.
func newMarket(t *testing.T, k80, v100 int, jobs bool, divide func(cluster.AllocationRequest) cluster.Allocation, tenants ...string) *world {
	t.Helper()
	set := simtest.Product()
	set.Divide, set.DivideJobs = "test", jobs
	w := newWorld(t, set, nil, tenants...)
	check := w.Check
	nodes := append(simtest.Nodes("k", "k80", k80, 4), simtest.Nodes("v", "v100", v100, 4)...)
	w.World = simtest.New(t, set, nodes, tenants...)
	w.Loop.Journal, w.Loop.Cluster, w.Loop.Divide = w.journal, w, divide
	w.Gate, w.Check = set.GateTTL, check
	return w
}

// parts answers an allocation request with fixed GPUs by party and pool. Other parties get none.
func parts(due map[string]map[string]cluster.MicroGPU) func(cluster.AllocationRequest) cluster.Allocation {
	return func(q cluster.AllocationRequest) cluster.Allocation {
		d := cluster.Allocation{Policy: q.Policy, Digest: q.Digest}
		for _, p := range q.Pools {
			d.Pools = append(d.Pools, p.Model)
		}
		for i := range q.Bids {
			part := cluster.Part{Party: q.Bids[i].Party, GPUs: make([]cluster.MicroGPU, len(q.Pools))}
			for p, pool := range d.Pools {
				part.GPUs[p] = due[q.Bids[i].Tenant][pool] * cluster.WholeGPU
			}
			d.Parts = append(d.Parts, part)
		}
		return d
	}
}

// on counts the GPUs that a tenant's running jobs hold in a pool.
func (w *world) on(tenant, pool string) int {
	n := 0
	for i := range w.Last.State.Leases {
		l := &w.Last.State.Leases[i]
		for k := range w.Last.State.Records {
			if r := &w.Last.State.Records[k]; r.Key == l.Job && r.Tenant == tenant && l.Pool == pool && l.State == cluster.Active {
				n += l.Size.Devices
			}
		}
	}
	return n
}

// Tenants receive the GPUs of each model that a policy allocates to them, though by weight they would have
// half of each.
func TestADivisionSteersGrants(t *testing.T) {
	for _, jobs := range []bool{false, true} {
		due := map[string]map[string]cluster.MicroGPU{"a": {"v100": 4}, "b": {"k80": 4}}
		w := newMarket(t, 1, 1, jobs, nil, "a", "b")
		if jobs {
			due = map[string]map[string]cluster.MicroGPU{"a": {"v100": 1}, "b": {"k80": 1}}
		}
		w.Loop.Divide = parts(due)
		w.Submit("b", 4, 1, forever)
		w.Submit("a", 4, 1, forever)
		w.Run(4 * term)
		if w.on("a", "v100") != 4 || w.on("b", "k80") != 4 {
			t.Errorf("jobs %v: a has %d of v100, b %d of k80, want 4 and 4", jobs, w.on("a", "v100"), w.on("b", "k80"))
		}
		for _, row := range w.Last.Tenants {
			if want := map[string]cluster.MicroGPU{"a v100": 4, "b k80": 4}[row.Tenant+" "+row.Pool]; row.Entitlement != want*cluster.WholeGPU || row.Base != 2*cluster.WholeGPU {
				t.Errorf("jobs %v: %s of %s is due %d, by weight %d", jobs, row.Tenant, row.Pool, row.Entitlement, row.Base)
			}
		}
		w.books()
	}
}

// When entitlements change, jobs on other models move at the end of their leases. Each is requeued once, and
// its new GPUs are kept for it. A job that had more than its due on the new model moves later, and perhaps stops for one that moves earlier:
// where parties are jobs, those are two here.
func TestAJobMovesToWhereItIsDue(t *testing.T) {
	for _, jobs := range []bool{false, true} {
		one := cluster.MicroGPU(4)
		if jobs {
			one = 1
		}
		w := newMarket(t, 1, 1, jobs, nil, "a", "b")
		w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": one}, "b": {"v100": one}})
		w.Submit("a", 4, 1, forever)
		w.Submit("b", 4, 1, forever)
		w.Run(4 * term)
		if w.on("a", "k80") != 4 || w.on("b", "v100") != 4 {
			t.Fatalf("jobs %v: a has %d of k80, b %d of v100, want 4 and 4", jobs, w.on("a", "k80"), w.on("b", "v100"))
		}
		before := len(w.done(cluster.Reclaim))
		w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"v100": one}, "b": {"k80": one}})
		w.Settings.DivideEvery = 1
		w.Run(6 * term)
		if w.on("a", "v100") != 4 || w.on("b", "k80") != 4 {
			t.Errorf("jobs %v: a has %d of v100, b %d of k80, want 4 and 4", jobs, w.on("a", "v100"), w.on("b", "k80"))
		}
		most := 8
		if jobs {
			most += 2
		}
		if n := len(w.done(cluster.Reclaim)) - before; n < 8 || n > most {
			t.Errorf("jobs %v: %d requeues, want the 8 jobs once each, and %d at most", jobs, n, most)
		}
		w.books()
	}
}

// declared gives the world job types with the given speeds on k80 and v100.
func (w *world) declared(kinds map[string][2]float64) {
	w.Rules.Profiles = nil
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		for p, model := range []string{"k80", "v100"} {
			w.Rules.Profiles = append(w.Rules.Profiles, cluster.Profile{Kind: cluster.Kind(name), Model: model, Gang: 1, Rate: kinds[name][p], Source: cluster.Declared})
		}
	}
}

// Two tenants have opposite speedups. Each policy that considers models gives the fast GPUs to the tenant
// that gains most. Except for oef:noncoop, no tenant gets less than by weight.
func TestPoliciesUseSpeedups(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"gavel:las", "gandiva-fair", "oef:coop", "gavel:ftf", "gavel:las-jobs", "oef:noncoop"}[:seeds.Some(3, 6)] {
		w := newMarket(t, 1, 1, preset.OfJobs(by), engine.Divide, "a", "b")
		w.Settings.Divide = by
		w.declared(map[string][2]float64{"lstm": {1, 6}, "vae": {1, 1.2}})
		for _, job := range []struct{ tenant, kind string }{{"a", "lstm"}, {"b", "vae"}} {
			for range 8 {
				w.submit(job.tenant, 1, forever, func(k *sim.Work) { k.Comment = "kind=" + job.kind })
			}
		}
		w.Run(4 * term)
		if d := w.Last.State.Allocation; d == nil || d.Policy != by || d.Why != "" || w.due("a", "v100") < 9*cluster.WholeGPU/4 && by != "oef:noncoop" {
			t.Errorf("%s: a is due %d of v100: %+v", by, w.due("a", "v100"), d)
		}
		before := w.Last.State.Ledger.Tenants
		w.Run(40 * term)
		for i, row := range w.Last.State.Ledger.Tenants {
			got := float64(row.Alloc-before[i].Alloc) / float64(40*term)
			if due := float64(row.Entitlement) / float64(cluster.WholeGPU); math.Abs(got-due) > 0.2+0.05*due {
				t.Errorf("%s: %s had %.2f GPUs of %s, and is due %.2f", by, row.Tenant, got, row.Pool, due)
			}
		}
		if by == "oef:noncoop" || by == "gavel:ftf" { // these equalise other measures than throughput relative to a weighted share
			continue
		}
		speed := map[string][2]float64{"a": {1, 6}, "b": {1, 1.2}}
		for tenant, s := range speed {
			got := s[0]*float64(w.due(tenant, "k80")) + s[1]*float64(w.due(tenant, "v100"))
			if fair := 2*s[0] + 2*s[1]; got < 0.999*fair*float64(cluster.WholeGPU) {
				t.Errorf("%s: %s is due %.3f, by weight %.3f", by, tenant, got/1e6, fair)
			}
		}
		w.books()
	}
}

// due returns a tenant's entitlement in a pool.
func (w *world) due(tenant, pool string) cluster.MicroGPU {
	for _, row := range w.Last.Tenants {
		if row.Tenant == tenant && row.Pool == pool {
			return row.Entitlement
		}
	}
	return 0
}

// Speeds are not declared, but jobs report progress. Job types get trial runs on models without measurements,
// and the GPUs then go where they help most.
func TestSpeedupsAreLearned(t *testing.T) {
	w := newMarket(t, 1, 1, false, engine.Divide, "a", "b")
	w.Settings.Divide = "gandiva-fair"
	w.Reports = 30 * second
	w.Speeds = sim.Speeds{}
	for kind, fast := range map[string]sim.Speed{"lstm": 6 * sim.Reference, "vae": sim.Reference * 6 / 5} {
		w.Speeds[sim.Task{Kind: kind, GPUs: 1}] = map[string]sim.Rate{"k80": {Speed: sim.Reference}, "v100": {Speed: fast}}
	}
	for _, job := range []struct{ tenant, kind string }{{"a", "lstm"}, {"b", "vae"}} {
		for range 8 {
			w.submit(job.tenant, 1, forever, func(k *sim.Work) { k.Kind, k.Comment = job.kind, "kind="+job.kind })
		}
	}
	w.Run(12 * term)
	for _, p := range w.Last.State.Profiles {
		want := map[string]float64{"a/lstm k80": 1, "a/lstm v100": 6, "b/vae k80": 1, "b/vae v100": 1.2}[string(p.Kind)+" "+p.Model]
		if p.Source != cluster.Observed || math.Abs(p.Rate-want) > 0.01 {
			t.Errorf("learned: %+v, want %v steps a second", p, want)
		}
	}
	if len(w.Last.State.Profiles) != 4 {
		t.Errorf("learned: %+v", w.Last.State.Profiles)
	}
	if d := w.Last.State.Allocation; d == nil || len(d.Trades) != 1 || d.Trades[0].FastTo.Tenant != "a" {
		t.Errorf("divided: %+v", d)
	}
	if due := w.due("a", "v100"); due < 5*cluster.WholeGPU/2 {
		t.Errorf("a is due %d of v100", due)
	}
	w.books()
}

// A tenant that leaves takes its trades with it. Within one term the other tenant has at least its weighted
// share.
func TestADepartureUndoesTrades(t *testing.T) {
	w := newMarket(t, 1, 1, false, engine.Divide, "a", "b", "c")
	w.Settings.Divide = "gandiva-fair"
	w.declared(map[string][2]float64{"lstm": {1, 6}, "vae": {1, 1.2}})
	var leavers []cluster.JobID
	for _, job := range []struct{ tenant, kind string }{{"a", "lstm"}, {"b", "vae"}, {"c", "vae"}} {
		for range 8 {
			id := w.submit(job.tenant, 1, forever, func(k *sim.Work) { k.Comment = "kind=" + job.kind })
			if job.tenant == "a" {
				leavers = append(leavers, id)
			}
		}
	}
	w.Run(4 * term)
	if d := w.Last.State.Allocation; d == nil || len(d.Trades) == 0 {
		t.Fatalf("nobody traded: %+v", d)
	}
	for _, id := range leavers {
		w.Cancel(id)
	}
	w.Run(minute)
	if d := w.Last.State.Allocation; len(d.Trades) > 0 {
		t.Errorf("with nobody to trade with: %+v", d.Trades)
	}
	w.Run(term)
	if w.on("b", "v100")+w.on("c", "v100") != 4 || w.due("b", "v100") != 2*cluster.WholeGPU {
		t.Errorf("b has %d of v100, c %d; b is due %d", w.on("b", "v100"), w.on("c", "v100"), w.due("b", "v100"))
	}
	w.books()
}

// A tenant that cancels all its jobs and submits jobs of another type is not new: it still owes its excess.
func TestATenantThatComesBackIsNotNew(t *testing.T) {
	w := newMarket(t, 1, 1, false, nil, "a", "b")
	w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation { // half of everything for each tenant, whatever its types
		d := cluster.Allocation{Policy: q.Policy, Digest: q.Digest, Pools: []string{"k80", "v100"}}
		for i := range q.Bids {
			d.Parts = append(d.Parts, cluster.Part{Party: q.Bids[i].Party, GPUs: []cluster.MicroGPU{2 * cluster.WholeGPU, 2 * cluster.WholeGPU}})
		}
		return d
	}
	first := w.Submit("a", 8, 1, forever) // all GPUs, while b wants none
	w.Run(4 * term)
	for _, id := range first {
		w.Cancel(id)
	}
	w.Run(w.Settings.Interval)
	for range 8 {
		w.submit("a", 1, forever, func(k *sim.Work) { k.Comment = "kind=another" })
	}
	w.Submit("b", 4, 1, forever)
	w.Run(term)
	if n := w.on("b", "k80") + w.on("b", "v100"); n != 4 {
		t.Errorf("b has %d GPUs, though a has had all until now", n)
	}
}

// A job's remaining work is its declared steps less the reported ones, else the rest of its time limit.
func TestWhatAJobHasLeft(t *testing.T) {
	var asked cluster.AllocationRequest
	w := newMarket(t, 1, 1, true, func(q cluster.AllocationRequest) cluster.Allocation {
		asked = q
		return engine.Divide(q)
	}, "a")
	w.Settings.Divide, w.Settings.DivideEvery = "gavel:makespan", 1
	w.declared(map[string][2]float64{"lstm": {2, 8}})
	w.Reports = 30 * second
	w.Speeds = sim.Speeds{{Kind: "lstm"}: {"k80": {Speed: 2 * sim.Reference}, "v100": {Speed: 8 * sim.Reference}}}
	w.submit("a", 1, 2*hour, func(k *sim.Work) { k.Kind, k.Comment = "lstm", "kind=lstm,steps=7200" })
	w.submit("a", 1, hour, func(k *sim.Work) { k.Kind, k.Comment, k.Limit = "lstm", "kind=lstm", hour })
	w.Run(w.Settings.Interval)
	left := func() [2]float64 { return [2]float64{asked.Bids[0].Steps, asked.Bids[1].Steps} }
	if got := left(); got != [2]float64{3600, 14400} { // 7,200 steps at 2 a second; an hour on a model 4 times as fast
		t.Errorf("at first they have %v seconds left", got)
	}
	w.Run(5 * minute)
	if got := left(); got != [2]float64{3300, 13200} { // the second, which has more left, has the v100
		t.Errorf("after five minutes they have %v seconds left", got)
	}
}

// A job with a deadline gets enough of the expensive model to meet it; the other jobs get the cheapest model.
// A job that no model can finish in time is named and left out.
func TestDeadlinesAreKept(t *testing.T) {
	within := []cluster.Span{forever, 2 * hour, 3 * hour, 30 * minute}
	inTime := map[string][]bool{"gavel:cost-sum-slo": {false, true, true, false}, "gavel:cost-sum": {false, false, false, false}}
	for _, by := range slices.Sorted(maps.Keys(inTime)) {
		w := newMarket(t, 1, 1, true, engine.Divide, "a")
		w.Settings.Divide, w.Settings.DivideEvery = by, 30
		w.Settings.Prices = []cluster.Price{{Model: "k80", Price: 1}, {Model: "v100", Price: 8}}
		w.declared(map[string][2]float64{"lstm": {1, 4}})
		w.Reports = 30 * second
		w.Speeds = sim.Speeds{{Kind: "lstm"}: {"k80": {Speed: sim.Reference}, "v100": {Speed: 4 * sim.Reference}}}
		var ids []cluster.JobID
		for _, span := range within {
			ids = append(ids, w.submit("a", 1, 4*hour, func(k *sim.Work) { // an hour on a v100
				k.Kind, k.Comment, k.Deadline = "lstm", "kind=lstm,steps=14400", simtest.Start.Add(span)
			}))
		}
		w.Run(w.Settings.Interval)
		if late := w.Last.State.Allocation.Late; by == "gavel:cost-sum-slo" && !slices.Equal(late, []cluster.JobKey{w.Record(ids[3]).Key}) {
			t.Errorf("left out: %v", late)
		}
		w.Run(3 * hour)
		for i, want := range inTime[by] {
			if j := w.Job(ids[i]); (j.State == cluster.Done && j.End <= j.Deadline) != want {
				t.Errorf("%s: the job with %s is %s at %s", by, within[i], j.State, j.End.Sub(simtest.Start))
			}
		}
	}
}

// The reason of a job names the tenant served before it, or the job if the policy knows only jobs.
func TestWhoWentBefore(t *testing.T) {
	for _, by := range []string{"gavel:las", "gavel:ftf", "gandiva-fair"} {
		w := newMarket(t, 1, 1, preset.OfJobs(by), engine.Divide, "a", "b")
		w.Settings.Divide = by
		w.Submit("a", 8, 1, forever)
		w.Submit("b", 8, 1, forever)
		w.Run(2 * term)
		said := 0
		var all []cluster.JobStatus
		for _, r := range w.reports {
			all = append(all, r.Plan.Statuses...)
		}
		for _, v := range all {
			r := v.Reason
			if r.Other == "" {
				continue
			}
			said++
			switch {
			case r.Other != "a" && r.Other != "b":
				t.Errorf("%s: %q is no tenant", by, r.Other)
			case by != "gavel:ftf" && (r.Queue != "" || r.OtherJob != 0 || r.Rank == 0),
				by == "gavel:ftf" && (r.Queue != cluster.JobQueues || w.record(r.OtherJob).Tenant != r.Other || r.OtherJob == v.Job || r.Rank != 0):
				t.Errorf("%s: %+v", by, r)
			}
		}
		if said == 0 {
			t.Errorf("%s: nobody went before anybody", by)
		}
	}
}

// record returns the record of a job by its key.
func (w *world) record(key cluster.JobKey) cluster.Record {
	for r := range w.Last.State.All() {
		if r.Key == key {
			return *r
		}
	}
	return cluster.Record{}
}

// A running job moves to a faster model if one term's gain exceeds the cost of the move, and then stays. Even
// if speeds swing, it moves at most once in ten times that cost.
func TestMovesPay(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	const cost = 2 * minute // a minute's notice, and another to start again
	for _, c := range []struct {
		name        string
		fast        [2]float64 // of a v100 over a k80, in turns of a term that begin in the middle of leases
		least, most int        // moves of each job in eight hours
	}{
		{"worthwhile", [2]float64{2, 2}, 1, 1},
		{"as much as it costs", [2]float64{1.13, 1.13}, 0, 0},
		{"no gain", [2]float64{1, 1}, 0, 0},
		{"small swings", [2]float64{1.1, 1 / 1.1}, 0, 0},
		{"large swings", [2]float64{4, 0.25}, 1, int(8 * hour / (10 * cost))},
	} {
		w := newMarket(t, 1, 1, false, nil, "a")
		w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 4}})
		var ids []cluster.JobID
		for range 4 {
			ids = append(ids, w.submit("a", 1, forever, func(k *sim.Work) { k.Comment = "kind=x" }))
		}
		w.declared(map[string][2]float64{"x": {1, c.fast[0]}})
		w.Run(5 * term / 2)
		if w.on("a", "k80") != 4 {
			t.Fatalf("%s: %d run on k80", c.name, w.on("a", "k80"))
		}
		before := map[cluster.JobID]int{}
		for _, id := range ids {
			before[id] = len(w.done(cluster.Reclaim, id))
		}
		w.Settings.DivideEvery = 1
		w.Loop.Divide = parts(map[string]map[string]cluster.MicroGPU{"a": {"k80": 4, "v100": 4}})
		for i := range int(8 * hour / term) {
			w.declared(map[string][2]float64{"x": {1, c.fast[i%2]}})
			w.Run(term)
		}
		for _, id := range ids {
			if n := len(w.done(cluster.Reclaim, id)) - before[id]; n < c.least || n > c.most {
				t.Errorf("%s: job %s moved %d times, want %d to %d", c.name, id, n, c.least, c.most)
			}
		}
		if c.name == "worthwhile" && w.on("a", "v100") != 4 {
			t.Errorf("%s: %d run on v100", c.name, w.on("a", "v100"))
		}
		w.books()
	}
}

// Over a trade and its end, every tenant gets at least as much done as with its weighted share, or is owed
// the rest: what it received, with the change of its accounts, is worth its share. Its part of the GPU time
// that no present tenant owes, by entitlement, counts as received: idle, in hand-overs, or owed by a tenant
// that left. A thousandth is allowed: a departure changes entitlements some rounds later.
func TestTradesAndTheirUndoingCostNobody(t *testing.T) {
	for seed := range seeds.Of(t, 6) {
		rng := seed*6364136223846793005 + 1442695040888963407
		uniform := func() float64 {
			rng = rng*6364136223846793005 + 1442695040888963407
			return float64(rng>>11) / (1 << 53)
		}
		w := newMarket(t, 2, 1, false, engine.Divide, "a", "b", "c")
		w.Settings.Divide = "gandiva-fair"
		speed, kinds := map[string]float64{}, map[string][2]float64{}
		var leavers []cluster.JobID
		for _, tenant := range []string{"a", "b", "c"} {
			speed[tenant] = 1 + 6*uniform()
			kinds["of-"+tenant] = [2]float64{1, speed[tenant]}
			for range 12 {
				id := w.submit(tenant, 1, forever, func(k *sim.Work) { k.Comment = "kind=of-" + tenant })
				if tenant == "a" {
					leavers = append(leavers, id)
				}
			}
		}
		w.declared(kinds)
		w.Run(term)
		traded := false
		past := func(span cluster.Span, stay ...string) {
			before := w.Last.State.Ledger
			w.Run(span)
			after := w.Last.State.Ledger
			traded = traded || len(w.Last.State.Allocation.Trades) > 0
			nobodys := make([]cluster.GPUTime, len(after.Pools))
			for p := range after.Pools {
				nobodys[p] = after.Pools[p].Idle + after.Pools[p].Overhead - before.Pools[p].Idle - before.Pools[p].Overhead
			}
			for i, row := range before.Tenants {
				if !slices.Contains(stay, row.Tenant) {
					nobodys[i%len(nobodys)] += max(-row.Deficit, 0)
				}
			}
			got := map[string]float64{}
			for i, row := range after.Tenants {
				all := cluster.MicroGPU(after.Pools[i%len(nobodys)].GPUs)
				s := map[string]float64{"k80": 1, "v100": speed[row.Tenant]}[row.Pool]
				received := row.Alloc + row.Deficit - before.Tenants[i].Alloc - before.Tenants[i].Deficit
				got[row.Tenant] += s * (float64(received) + float64(nobodys[i%len(nobodys)])*float64(max(row.Entitlement, before.Tenants[i].Entitlement))/float64(all)) / float64(span)
			}
			for _, tenant := range stay {
				share := (8 + 4*speed[tenant]) / float64(len(stay))
				if got[tenant] < 0.999*share {
					t.Errorf("seed %d, in %s: %s of speedup %.2f got or is owed %.3f, its share is worth %.3f", seed, span, tenant, speed[tenant], got[tenant], share)
				}
			}
		}
		past(16*term, "a", "b", "c")
		for _, id := range leavers {
			w.Cancel(id)
		}
		past(16*term, "b", "c")
		if fast := slices.Collect(maps.Values(speed)); !traded && slices.Max(fast) > 1.06*slices.Min(fast) {
			t.Errorf("seed %d: nobody traded: %v", seed, speed)
		}
		w.books()
	}
}
