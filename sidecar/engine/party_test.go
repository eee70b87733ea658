package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/tests/seeds"
)

// had returns the average GPUs of each tenant over some terms, by tenant and pool.
func (w *world) had(terms cluster.Span, meanwhile func()) map[string]map[string]float64 {
	sum := func(sign float64, into map[string]map[string]float64) map[string]map[string]float64 {
		for _, row := range w.Last.State.Ledger.Tenants {
			if into[row.Tenant] == nil {
				into[row.Tenant] = map[string]float64{}
			}
			into[row.Tenant][row.Pool] += sign * float64(row.Alloc) / float64(terms*term)
		}
		return into
	}
	had := sum(-1, map[string]map[string]float64{})
	for range terms {
		if meanwhile != nil {
			meanwhile()
		}
		w.Run(term)
	}
	return sum(1, had)
}

// A tenant with many short jobs, each a party or a type of its own, gets exactly its share.
func TestShortPartiesHaveTheirTenantsShare(t *testing.T) {
	for _, by := range []string{"gavel:las", "gavel:las-fifo", "gandiva-fair", "oef:coop", "oef:noncoop"}[:seeds.Some(1, 5)] {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := newMarket(t, 0, 2, preset.OfJobs(by), engine.Divide, "a", "b", "c")
			w.Settings.Divide = by
			for _, tenant := range []string{"b", "c"} {
				for range 8 {
					w.submit(tenant, 1, forever, func(k *sim.Work) { k.Comment = "kind=x" })
				}
			}
			w.Run(8 * term)
			terms, n := 0, 0
			had := w.had(48, func() {
				if terms++; terms%4 != 1 {
					return
				}
				for range 12 {
					n++
					w.submit("a", 4, 20*minute, func(k *sim.Work) { k.Limit, k.Comment = hour, fmt.Sprintf("kind=r%d", n) })
				}
			})
			for tenant, of := range had {
				if share := 8.0 / 3; of["v100"] < 0.8*share || of["v100"] > 1.2*share {
					t.Errorf("%s had %.2f GPUs over 12 hours of a share of %.2f", tenant, of["v100"], share)
				}
			}
			w.books()
		})
	}
}

// A type with measurements on one model and none on the other gets a trial there at its own tenant's cost.
func TestATrialIsPaidFor(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		shares int64
		silent bool
	}{{1, true}, {0, true}, {2, false}} {
		shares, silent := c.shares, c.silent
		w := newMarket(t, 1, 1, false, engine.Divide, "a", "b")
		w.Settings.Divide = "gandiva-fair"
		w.Settings.StopAllowance, w.Settings.StopOverheadMilli = 0, 0 // turns are a term long, as in the paper
		w.SetShares("b", min(shares, 1))
		w.Reports, w.Speeds = 30*second, sim.Speeds{}
		for _, gang := range []int{1, 4} {
			w.Speeds[sim.Task{Kind: "x", GPUs: gang}] = map[string]sim.Rate{"k80": {Speed: sim.Reference}, "v100": {Speed: 2 * sim.Reference}}
		}
		if silent {
			w.alter = func(s *cluster.Observation) {
				s.Progress = slices.DeleteFunc(s.Progress, func(r cluster.Progress) bool {
					return slices.ContainsFunc(s.Jobs, func(j cluster.Job) bool {
						return j.ID == r.Job && j.Account == "b" && len(j.Holds) > 0 && j.Holds[0].Model == "v100"
					})
				})
			}
		}
		for range 4 {
			w.submit("b", 4, forever, func(k *sim.Work) { k.Kind, k.Comment = "x", "kind=x" })
		}
		w.Run(2 * term)
		for range 16 {
			w.submit("a", 1, forever, func(k *sim.Work) { k.Kind, k.Comment = "x", "kind=x" })
		}
		w.Run(8 * term)
		due := 2.0
		if shares == 0 {
			due = 4
		}
		for pool, gpus := range w.had(96, nil)["a"] {
			if gpus < 0.9*due {
				t.Errorf("b has %d shares, its jobs are silent on v100: %v; a had %.2f of %s for a day, its share is %.0f", min(shares, 1), silent, gpus, pool, due)
			}
		}
		w.books()
	}
}

// Estimates from other types guide placement but never set trade prices. Otherwise a tenant that asks more
// for a GPU than it is worth would pay with its own GPUs.
func TestEstimatesPriceNoTrade(t *testing.T) {
	for source, trades := range map[cluster.Source]bool{cluster.Declared: true, cluster.Estimated: false} {
		w := newMarket(t, 1, 1, false, engine.Divide, "a", "b")
		w.Settings.Divide = "gandiva-fair"
		known := map[cluster.Kind]map[string]float64{"ref": {"k80": 1, "v100": 6}, "b/vae": {"k80": 1, "v100": 1.2}, "a/new": {"k80": 1, "v100": 6}}
		if source == cluster.Estimated {
			delete(known["a/new"], "v100")
		}
		for kind, rates := range known {
			for model, rate := range rates {
				w.Rules.Profiles = append(w.Rules.Profiles, cluster.Profile{Kind: kind, Model: model, Gang: 1, Rate: rate, Source: cluster.Declared})
			}
		}
		for tenant, kind := range map[string]string{"a": "new", "b": "vae"} {
			for range 8 {
				w.submit(tenant, 1, forever, func(k *sim.Work) { k.Comment = "kind=" + kind })
			}
		}
		w.Run(4 * term)
		if d := w.Last.State.Allocation; len(d.Trades) > 0 != trades {
			t.Errorf("%s: trades are %+v", source, d.Trades)
		}
	}
}

// A job without a time limit does not count as short.
func TestAJobWithoutLimitIsLong(t *testing.T) {
	w := newMarket(t, 0, 1, true, engine.Divide, "a")
	w.Settings.Divide = "gavel:sjf"
	w.submit("a", 4, forever, nil)
	short := w.submit("a", 4, hour, func(k *sim.Work) { k.Limit = 2 * hour })
	w.Run(8 * term)
	if w.Job(short).State != cluster.Done {
		t.Errorf("shortest first: the job of two hours is %s", w.Job(short).State)
	}
}

// Two jobs arrive together. Finish-time fairness lets the one that has done less catch up (Gavel §4.2).
func TestFinishTimeFairnessKnowsWhatJobsHaveDone(t *testing.T) {
	q := cluster.AllocationRequest{Policy: "gavel:ftf", Pools: []cluster.GPUs{{Model: "v100", Count: 4}}}
	for k, did := range []float64{0, 4 * 36_000} {
		q.Bids = append(q.Bids, cluster.Bid{Party: fmt.Sprintf("a/%010d", k+1), Tenant: "a", Job: cluster.JobKey(k + 1), Weight: 1, Milli: 1000, Gang: 4, Demand: 4,
			Speeds: []float64{1}, Basis: []cluster.Source{cluster.Declared}, Elapsed: 10 * hour, Steps: 4 * 36_000, Did: did})
	}
	d := engine.Divide(q)
	if d.Why != "" || d.Parts[1].GPUs[0] > d.Parts[0].GPUs[0]/2 {
		t.Errorf("it is %+v", d)
	}
}

// A tenant's weight applies to its jobs together. A tenant without weight has only idle GPUs, under every
// policy.
func TestWeightsOfTenants(t *testing.T) {
	for _, by := range preset.Dividing() {
		if preset.TenantBlind(by) {
			continue
		}
		q := cluster.AllocationRequest{Policy: by, Pools: []cluster.GPUs{{Model: "k80", Count: 4}, {Model: "v100", Count: 4}}}
		for i, tenant := range []string{"a", "b", "b", "b", "c"} {
			b := cluster.Bid{Party: fmt.Sprintf("%s/%010d", tenant, i), Tenant: tenant, Job: cluster.JobKey(i + 1), Milli: 1000, Gang: 4, Demand: 4,
				Speeds: []float64{1, 3}, Margins: []float64{1, 1}, Basis: []cluster.Source{cluster.Declared, cluster.Declared}, Steps: 3600}
			b.Weight = map[string]int64{"a": 2, "b": 2}[tenant]
			q.Bids = append(q.Bids, b)
		}
		d := engine.Divide(q)
		worth := map[string]float64{}
		for i := range d.Parts {
			worth[q.Bids[i].Tenant] += float64(d.Parts[i].GPUs[0]) + 3*float64(d.Parts[i].GPUs[1])
		}
		if a, b := worth["a"], worth["b"]; d.Why != "" || worth["c"] != 0 || a < 0.99*b || a > 1.01*b {
			t.Errorf("%s: a with one job has %.0f, b with three %.0f, c without weight %.0f (%s)", by, a, b, worth["c"], d.Why)
		}
	}
}

// A new allocation is requested when a job comes or goes or a speed becomes known, and otherwise every so
// many rounds. Reports of changed speeds alone request none.
func TestReportsAloneAskNothing(t *testing.T) {
	asked := 0
	w := newMarket(t, 1, 1, false, func(q cluster.AllocationRequest) cluster.Allocation {
		asked++
		return engine.Divide(q)
	}, "a", "b")
	w.Settings.Divide, w.Settings.DivideEvery, w.Settings.NoEstimates = "gandiva-fair", 100_000, true
	w.Reports, w.Speeds = 30*second, sim.Speeds{{Kind: "x", GPUs: 1}: {"k80": {Speed: sim.Reference}, "v100": {Speed: 2 * sim.Reference}}}
	for _, tenant := range []string{"a", "b"} {
		for range 4 {
			w.submit(tenant, 1, forever, func(k *sim.Work) { k.Kind, k.Comment = "x", "kind=x" })
		}
	}
	w.Run(8 * term)
	w.alter = func(s *cluster.Observation) { // each job is a little faster than before
		for i := range s.Progress {
			s.Progress[i].Steps *= 1.0001
		}
	}
	was := asked
	if w.Run(8 * term); asked > was {
		t.Errorf("it was asked %d times in all, %d times since everything is known", asked, asked-was)
	}
	w.Submit("a", 1, 1, forever)
	if w.Run(term); asked == was {
		t.Error("a job has come, and nothing was asked")
	}
}

// says makes jobs report, twice as fast on v100, except the jobs that silent matches.
func (w *world) says(kinds []string, gangs []int, silent func(*cluster.Job) bool) {
	w.Reports, w.Speeds = 30*second, sim.Speeds{}
	for _, kind := range kinds {
		for _, gang := range gangs {
			w.Speeds[sim.Task{Kind: kind, GPUs: gang}] = map[string]sim.Rate{"k80": {Speed: sim.Reference}, "v100": {Speed: 2 * sim.Reference}}
		}
	}
	w.alter = func(s *cluster.Observation) {
		s.Progress = slices.DeleteFunc(s.Progress, func(r cluster.Progress) bool {
			return slices.ContainsFunc(s.Jobs, func(j cluster.Job) bool { return j.ID == r.Job && silent(&j) })
		})
	}
}

// A job that runs on a model without measurements of its type needs no trial there.
func TestNoTrialWhereAJobRuns(t *testing.T) {
	w := newMarket(t, 1, 1, false, nil, "a", "b")
	w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		d := cluster.Allocation{Policy: q.Policy, Digest: q.Digest, Pools: []string{"k80", "v100"}}
		for _, b := range q.Bids {
			x := map[string][2]cluster.MicroGPU{"a/x@k80": {4, 0}, "a/x@v100": {0, 3}, "b/y@v100": {0, 1}}[b.Party]
			d.Parts = append(d.Parts, cluster.Part{Party: b.Party, GPUs: []cluster.MicroGPU{x[0] * cluster.WholeGPU, x[1] * cluster.WholeGPU}})
		}
		return d
	}
	w.says([]string{"x"}, []int{1, 2}, func(j *cluster.Job) bool { return j.Request.Model == "v100" })
	for _, job := range []struct {
		tenant, kind, model string
		gpus                int
	}{{"a", "x", "k80", 1}, {"a", "x", "v100", 2}, {"b", "y", "v100", 1}, {"b", "y", "v100", 1}} {
		w.submit(job.tenant, job.gpus, forever, func(k *sim.Work) { k.Kind, k.Comment, k.Request.Model = job.kind, "kind="+job.kind, job.model })
	}
	w.Run(24 * term)
	if n := len(w.done(cluster.Reclaim)); n > 0 {
		t.Errorf("%d jobs were requeued, though there is room for all", n)
	}
}

// Every reporting type gets a trial where it has no measurement. This holds on a busy cluster, and if a
// silent type would be cheaper to try.
func TestEveryKindIsTried(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	for _, silent := range []bool{false, true} {
		w := newMarket(t, 1, 1, false, nil, "a", "b", "c")
		w.Loop.Divide = parts(nil) // all by weight, so that idle GPUs are shared in order of arrival
		w.says([]string{"x", "z"}, []int{1}, func(j *cluster.Job) bool {
			return silent && j.Account == "a" && j.Hints.Kind == "x" && len(j.Holds) > 0 && j.Holds[0].Model == "v100"
		})
		kinds := func(tenant, kind, model string) {
			for range 4 {
				w.submit(tenant, 1, forever, func(k *sim.Work) { k.Kind, k.Comment, k.Request.Model = kind, "kind="+kind, model })
			}
		}
		kinds("a", "x", "")
		kinds("a", "z", "v100")
		kinds("b", "z", "v100")
		w.Run(2 * term)
		kinds("b", "x", "")
		w.Run(48 * term)
		for tenant, want := range map[cluster.Kind]bool{"a/x": !silent, "b/x": true} {
			if seen := slices.ContainsFunc(w.Last.State.Profiles, func(p cluster.Profile) bool {
				return p.Kind == tenant && p.Model == "v100" && p.Source == cluster.Observed
			}); seen != want {
				t.Errorf("a's are silent on v100: %v; how fast %s is there is known: %v", silent, tenant, seen)
			}
		}
	}
}

// Observed jobs get no trials: no job moves, and the books show none.
func TestWatchedJobsAreNotTried(t *testing.T) {
	w := newMarket(t, 1, 1, false, engine.Divide, "a", "b")
	w.Settings.Divide, w.Rules.Mode = "gandiva-fair", loop.Observe
	w.says([]string{"x"}, []int{1}, func(*cluster.Job) bool { return false })
	check := w.Check
	w.Check = func(r loop.Report) {
		check(r)
		if n := len(r.Plan.State.Claims); n > 0 {
			t.Fatalf("%d claims", n)
		}
		for x := range r.Plan.State.All() {
			if x.Moved > 0 {
				t.Fatalf("%s is said to have moved", x.ID)
			}
		}
	}
	for _, tenant := range []string{"a", "a", "a", "a", "b", "b"} {
		w.submit(tenant, 1, forever, func(k *sim.Work) { k.Kind, k.Comment = "x", "kind=x" })
	}
	w.Run(12 * term)
}

// A type with large gangs gets its part beside its tenant's types with one-GPU jobs, which fill every gap.
func TestGangsHaveTheirPartOfTheirTenants(t *testing.T) {
	seeds.Slow(t)
	t.Parallel()
	w := newMarket(t, 0, 2, false, nil, "a", "b")
	w.Loop.Divide = func(q cluster.AllocationRequest) cluster.Allocation {
		d := cluster.Allocation{Policy: q.Policy, Digest: q.Digest, Pools: []string{"v100"}}
		for _, b := range q.Bids {
			d.Parts = append(d.Parts, cluster.Part{Party: b.Party, GPUs: []cluster.MicroGPU{map[string]cluster.MicroGPU{"a/large": 2, "a/small": 4, "b/other": 2}[b.Party] * cluster.WholeGPU}})
		}
		return d
	}
	w.submit("a", 8, forever, func(k *sim.Work) { k.Comment, k.Request.Nodes, k.Request.PerNode = "kind=large", 2, 4 })
	const large cluster.JobKey = 1
	for range 12 {
		w.submit("a", 1, forever, func(k *sim.Work) { k.Comment = "kind=small" })
		w.submit("b", 1, forever, func(k *sim.Work) { k.Comment = "kind=other" })
	}
	w.Run(8 * term)
	was := w.record(large).Alloc
	w.Run(48 * term)
	if had := float64(w.record(large).Alloc-was) / float64(48*term); had < 0.85*2 {
		t.Errorf("gangs of 8 had %.2f GPUs of 2", had)
	}
}
