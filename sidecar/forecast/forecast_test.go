package forecast

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const begin = cluster.Instant(1_800_000_000_000)

// set is settings without budgets for stops, in which only terms of a quarter of an hour matter.
func set() cluster.Settings {
	return cluster.Settings{Interval: 10 * cluster.Second, Term: 15 * cluster.Minute, MinLease: 5 * cluster.Minute, Notice: cluster.Minute, RhoSelect: 16,
		CreditCap: 2 * cluster.Hour, JobOrder: cluster.ByExpected, BurstMaxMilli: 2000, StartCost: cluster.Minute}
}

// world is a cluster of nodes of 8 GPUs with tenants of equal shares.
type world struct {
	snap cluster.Snapshot
	plan cluster.Plan
}

func newWorld(nodes int, tenants ...string) *world {
	w := &world{snap: cluster.Snapshot{Round: 7, Now: begin, Settings: set(), NextKey: 1}}
	for n := range nodes {
		w.snap.Nodes = append(w.snap.Nodes, cluster.Node{Name: fmt.Sprintf("n%02d", n), GPUs: []cluster.GPUs{{Model: "v100", Count: 8}}, Partitions: []string{"gpu"}})
	}
	for _, t := range tenants {
		w.snap.Tenants = append(w.snap.Tenants, cluster.Tenant{Name: t, Weight: 1})
		w.plan.State.Ledger.Tenants = append(w.plan.State.Ledger.Tenants, cluster.TenantPool{Tenant: t, Pool: "v100",
			Entitlement: cluster.MicroGPU(8*nodes) * cluster.WholeGPU / cluster.MicroGPU(len(tenants))})
	}
	return w
}

// add adds a job; on = the node where it runs since ago, or "" = it waits.
func (w *world) add(tenant string, gpus int, on string, ago cluster.Span) *cluster.Case {
	key := w.snap.NextKey
	w.snap.NextKey++
	c := cluster.Case{Control: cluster.FullControl,
		Job: cluster.Job{ID: cluster.JobID{ID: int64(key)}, User: tenant + "_u", Partitions: []string{"gpu"}, State: cluster.Waiting, Batch: true, Requeueable: true,
			Request: cluster.Request{Size: cluster.Whole(gpus), Nodes: (gpus + 7) / 8}, Declares: cluster.Saving{Manner: cluster.SavesOnTerm}},
		Record: cluster.Record{Key: key, ID: cluster.JobID{ID: int64(key)}, Tenant: tenant, User: tenant + "_u", First: begin.Add(-ago)}}
	if on != "" {
		c.Job.State, c.Job.Start = cluster.Running, begin.Add(-ago)
		c.Job.Holds = []cluster.Holding{{Node: on, Model: "v100", Size: cluster.Whole(gpus)}}
		c.Record.Terms, c.Record.Alloc = 1, cluster.Times(gpus, ago)
	}
	w.snap.Cases = append(w.snap.Cases, c)
	return &w.snap.Cases[len(w.snap.Cases)-1]
}

func (w *world) ask() *Question {
	return &Question{Snapshot: &w.snap, Plan: &w.plan, Runs: 20, Seed: 1, Horizon: 2 * cluster.Day, Known: map[cluster.JobKey]cluster.Span{}}
}

func (w *world) forecast(t testing.TB, q *Question) map[cluster.JobKey]Job {
	t.Helper()
	f, err := Make(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	out := map[cluster.JobKey]Job{}
	for _, j := range f.Jobs {
		out[j.Key] = j
	}
	return out
}

func near(t *testing.T, what string, got cluster.Instant, want cluster.Span) {
	t.Helper()
	if d := got.Sub(begin.Add(want)); got == 0 || d < -cluster.Minute || d > cluster.Minute {
		t.Errorf("%s at %v, want %v", what, got.Sub(begin), want)
	}
}

// Run times are known, so all runs are equal: a job of the same tenant on all GPUs starts when the one before ends.
func TestOneAfterTheOther(t *testing.T) {
	w := newWorld(1, "a")
	w.add("a", 8, "n00", cluster.Hour)
	w.add("a", 8, "", cluster.Minute)
	w.snap.Settings.JobOrder = cluster.ByAttained // the new job would go first
	q := w.ask()
	w.snap.Cases[0].Control = cluster.NoReclaim // but cannot stop this one
	q.Known[1], q.Known[2] = 3*cluster.Hour, cluster.Hour
	f := w.forecast(t, q)
	near(t, "the first ends", f[1].End.P10, 2*cluster.Hour)
	near(t, "the second starts", f[2].Start.P50, 2*cluster.Hour)
	near(t, "the second ends", f[2].End.P90, 3*cluster.Hour)
	if f[1].Waits || f[1].Start != (Times{}) || !f[2].Waits {
		t.Errorf("%+v", f)
	}
}

// Two tenants of equal shares take turns by terms on all GPUs. Each job has an hour and starts of a minute after stops, so both
// end after about two hours.
func TestTurns(t *testing.T) {
	w := newWorld(1, "a", "b")
	w.add("a", 8, "n00", 10*cluster.Minute)
	w.add("b", 8, "", cluster.Minute)
	q := w.ask()
	q.Known[1], q.Known[2] = 70*cluster.Minute, cluster.Hour
	f := w.forecast(t, q)
	for key, j := range f {
		if end := j.End.P50.Sub(begin); end < 100*cluster.Minute || end > 140*cluster.Minute {
			t.Errorf("job %d ends after %v", key, end)
		}
	}
	if start := f[2].Start.P50.Sub(begin); start > 30*cluster.Minute {
		t.Errorf("b starts after %v", start)
	}
}

// On a model on which its type is three times as fast, a job takes a third of the time; where that runs nowhere else, it waits for it.
func TestSpeedups(t *testing.T) {
	w := newWorld(1, "a")
	w.snap.Nodes = append(w.snap.Nodes, cluster.Node{Name: "n01", GPUs: []cluster.GPUs{{Model: "k80", Count: 8}}, Partitions: []string{"gpu"}})
	w.plan.State.Ledger.Tenants = append(w.plan.State.Ledger.Tenants, cluster.TenantPool{Tenant: "a", Pool: "k80", Entitlement: 8 * cluster.WholeGPU})
	for i, on := range []string{"n00", "n01", ""} {
		c := w.add("a", 8, on, 0)
		c.Job.Hints, c.Control = &cluster.Hints{Kind: "net"}, cluster.NoReclaim
		c.Job.Account = "a"
		if i == 2 {
			c.Job.Hints.Kind = "new"
		}
	}
	w.snap.Settings.Divide = "gandiva-fair"
	for kind, v100 := range map[cluster.Kind]float64{"a/net": 3, "a/new": 3} {
		slow := 1.0
		if kind == "a/new" {
			slow = 0
		}
		w.snap.Declared = append(w.snap.Declared, cluster.Profile{Kind: kind, Model: "v100", Gang: 8, Rate: v100, Source: cluster.Declared}, cluster.Profile{Kind: kind, Model: "k80", Gang: 8, Rate: slow, Source: cluster.Declared})
	}
	slices.SortFunc(w.snap.Declared, func(a, b cluster.Profile) int { return a.Compare(&b) })
	q := w.ask()
	q.Known[1], q.Known[2], q.Known[3] = 6*cluster.Hour, cluster.Hour, cluster.Hour
	f := w.forecast(t, q)
	near(t, "six hours of work on the fast model", f[1].End.P50, 2*cluster.Hour)
	near(t, "an hour on the slow one", f[2].End.P50, cluster.Hour)
	near(t, "what runs on the fast one only", f[3].Start.P50, 2*cluster.Hour)
}

// A tenant takes the GPUs of its virtual cluster back at once, whatever it had before, and not those of others.
func TestVirtualClusters(t *testing.T) {
	w := newWorld(2, "a", "b")
	w.snap.Cells = &cluster.Cells{}
	w.add("a", 8, "n00", 2*cluster.Hour)
	w.add("a", 8, "n01", cluster.Minute) // lent, since b had no jobs; it cannot be stopped at the end of a term so soon
	w.add("b", 8, "", 0)
	w.add("b", 8, "", 0)
	w.plan.State.Ledger.Tenants[1].Deficit = -cluster.Times(8, 10*cluster.Hour)
	w.snap.Settings.MinLease = 10 * cluster.Hour
	q := w.ask()
	for key := range cluster.JobKey(4) {
		q.Known[key+1] = 5 * cluster.Hour
	}
	f := w.forecast(t, q)
	near(t, "b has its cell", f[3].Start.P50, 0)
	if first, second := f[1].End.P50, f[2].End.P50; first.Sub(begin) > 3*cluster.Hour+10*cluster.Minute || second.Sub(begin) < 7*cluster.Hour {
		t.Errorf("the jobs of a end after %v and %v", first.Sub(begin), second.Sub(begin))
	}
	if start := f[4].Start.P50.Sub(begin); start < 3*cluster.Hour-15*cluster.Minute {
		t.Errorf("b takes GPUs of a after %v", start)
	}
	// Without cells, b is far ahead of its due and waits for the end of a term.
	w.snap.Cells = nil
	if start := w.forecast(t, q)[3].Start.P50.Sub(begin); start < 2*cluster.Hour {
		t.Errorf("without cells b starts after %v", start)
	}
}

// A gang that is larger than the virtual cluster of its tenant starts only on GPUs that are idle, whatever its tenant is owed: it stops no jobs
// of others.
func TestAGangLargerThanItsVirtualCluster(t *testing.T) {
	w := newWorld(3, "a", "b", "c")
	w.snap.Cells = &cluster.Cells{}
	w.add("a", 16, "", 30*cluster.Hour)
	for n, ago := range []cluster.Span{3 * cluster.Hour, 2 * cluster.Hour, cluster.Hour} { // the last two are lent
		w.add("b", 8, fmt.Sprintf("n%02d", n), ago)
	}
	w.snap.Cases[0].Record.Due = cluster.Times(16, 20*cluster.Hour)
	of := &w.plan.State.Ledger.Tenants[0]
	of.Repays = 8 * cluster.WholeGPU
	of.Entitlement += of.Repays
	q := w.ask()
	for key := range cluster.JobKey(4) {
		q.Known[key+1] = 6 * cluster.Hour
	}
	near(t, "the gang starts when two jobs of b have ended", w.forecast(t, q)[1].Start.P50, 4*cluster.Hour)
}

// Jobs that have no forecast say why; the others are not affected.
func TestNone(t *testing.T) {
	w := newWorld(1, "a")
	w.add("a", 8, "", 0).Job.Inactive = "held"
	w.add("a", 16, "", 0)
	w.add("a", 1, "", 0).Job.Partitions = []string{"cpu"}
	w.add("a", 1, "", 0).Control = cluster.Unmanaged
	w.add("a", 1, "", 0)
	w.add("a", 1, "", 0)
	w.snap.Overrides = []cluster.Override{{Kind: cluster.Freeze, Scope: "job", Name: "6", Until: w.snap.Now.Add(cluster.Hour)}}
	w.add("a", 1, "", 0)
	w.plan.Statuses = []cluster.JobStatus{{Job: 7, Reason: cluster.Reason{Code: cluster.ReasonRule, Note: "account a is at GrpTRES=gres/gpu=1; 1 in use"}}}
	q := w.ask()
	q.Known[5] = cluster.Hour
	f := w.forecast(t, q)
	for key, why := range map[cluster.JobKey]string{1: "it waits for something else than GPUs: held", 3: "no node in use can serve it", 4: "fairlease leaves it alone", 5: "", 6: "an administrator has frozen it",
		7: "not before jobs of account a end, or its limit changes: account a is at GrpTRES=gres/gpu=1; 1 in use"} {
		if f[key].Why != why {
			t.Errorf("job %d: %q, want %q", key, f[key].Why, why)
		}
	}
	if f[2].Start.P10 != 0 || f[2].End.P10 != 0 {
		t.Errorf("a job that fits nowhere starts: %+v", f[2])
	}
	near(t, "the last starts", f[5].Start.P90, 0)
	near(t, "the last ends", f[5].End.P90, cluster.Hour)
	w.snap.Nodes[0].Bad = "down"
	if _, err := Make(t.Context(), q); err == nil {
		t.Error("a forecast without nodes")
	}
}

// Jobs at a limit of Slurm's start when others leave room, and take no idle GPUs before. Their tenant is due no more than the limit:
// another one has the rest.
func TestLimits(t *testing.T) {
	gpus := cluster.Cap{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: 8}
	for name, limits := range map[string]cluster.Limits{
		"GPUs of an account": {Associations: []cluster.Association{{Account: "a", Caps: []cluster.Cap{gpus}}}},
		"GPUs of a model":    {Associations: []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu:v100", Max: 8}}}}},
		"jobs of an account": {Associations: []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 1}}}}},
		"a user's jobs":      {Associations: []cluster.Association{{Account: "a", User: "a_u", Caps: []cluster.Cap{{Rule: cluster.MaxJobs, Max: 1}}}}},
		"GPUs in a QOS":      {QOS: []cluster.QOS{{Name: "high", Caps: []cluster.Cap{gpus}}}},
		"a user's in a QOS":  {QOS: []cluster.QOS{{Name: "high", Caps: []cluster.Cap{{Rule: cluster.MaxTRESPerUser, TRES: "gres/gpu", Max: 8}}}}},
		"beside others":      {Associations: []cluster.Association{{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: 3}}}}, Others: []cluster.Use{{Account: "a", Partition: "cpu", Jobs: 2}}},
	} {
		w := newWorld(3, "a", "b")
		w.snap.Admission = &cluster.Admission{Limits: limits}
		w.add("a", 8, "n00", cluster.Hour)
		w.add("a", 8, "", cluster.Minute)
		w.add("b", 8, "", 0)
		w.add("b", 8, "", 0)
		w.add("b", 8, "", 0)
		for i := range w.snap.Cases {
			c := &w.snap.Cases[i]
			c.Control = cluster.NoReclaim
			if c.Job.Account, c.Job.QOS = c.Record.Tenant, "high"; c.Job.Account == "b" {
				c.Job.QOS = ""
			}
			c.Job.Request.Model = "v100" // else a limit of a model's GPUs does not know of it
		}
		q := w.ask()
		q.Known[1], q.Known[2], q.Known[3], q.Known[4], q.Known[5] = 3*cluster.Hour, cluster.Hour, cluster.Hour, 9*cluster.Hour, cluster.Hour
		f := w.forecast(t, q)
		near(t, name+": the other tenant's", f[3].Start.P90, 0)
		near(t, name+": another of its", f[4].Start.P90, 0)
		near(t, name+": the third of its", f[5].Start.P90, cluster.Hour)
		near(t, name+": at the limit", f[2].Start.P50, 2*cluster.Hour)
	}
}

// A closed node stops its job, which goes on elsewhere or after it.
func TestClosed(t *testing.T) {
	w := newWorld(1, "a")
	w.add("a", 8, "n00", cluster.Hour)
	q := w.ask()
	q.Known[1] = 3 * cluster.Hour
	q.Closed = []Closed{{Nodes: []string{"n00"}, From: begin.Add(cluster.Hour), Until: begin.Add(5 * cluster.Hour)}}
	near(t, "it ends", w.forecast(t, q)[1].End.P50, 6*cluster.Hour+cluster.Minute)
	w.snap.Reservations = []cluster.Reservation{{Name: "maintenance", Nodes: []string{"n00"}, Start: begin.Add(cluster.Hour), End: begin.Add(7 * cluster.Hour)}}
	q.Closed = nil
	near(t, "it ends after the maintenance", w.forecast(t, q)[1].End.P50, 8*cluster.Hour+cluster.Minute)
	w.snap.Reservations[0].Parts = []cluster.ReservedPart{{Node: "n00", CPUs: 1}}
	near(t, "it runs on beside a few reserved CPUs", w.forecast(t, q)[1].End.P50, 2*cluster.Hour)
}

// crowd is a drawn world and its past.
func crowd(rng *rand.Rand, nodes, jobs int) (*world, Past) {
	w := newWorld(nodes, "a", "b", "c")
	free := slices.Repeat([]int{8}, nodes)
	p := Past{From: begin.Add(-5 * cluster.Day)}
	for i := range jobs {
		tenant, gpus := string(rune('a'+rng.IntN(3))), []int{1, 1, 2, 4, 8, 16}[rng.IntN(6)]
		on := ""
		if n := rng.IntN(nodes); free[n] >= gpus && i%2 == 0 {
			free[n] -= gpus
			on = w.snap.Nodes[n].Name
		}
		c := w.add(tenant, gpus, on, cluster.Span(rng.IntN(600))*cluster.Minute)
		c.Job.Limit = cluster.Span(rng.IntN(3)) * cluster.Day
		p.Jobs = append(p.Jobs, PastJob{Job: c.Job, Tenant: tenant, Submit: c.Record.First, Ran: cluster.Span(c.Record.Alloc) / cluster.Span(gpus)})
		p.Jobs = append(p.Jobs, PastJob{Job: c.Job, Tenant: tenant, Submit: begin.Add(-cluster.Span(rng.IntN(5*24*60)) * cluster.Minute),
			Ran: cluster.Minute + cluster.Span(rng.ExpFloat64()*float64(2*cluster.Hour)), Ended: true})
	}
	return w, p
}

// mayTakeTurns has jobs of one GPU take turns, so many on one; some that run do.
func (w *world) mayTakeTurns(jobs int) {
	w.snap.Settings.Slices = &cluster.Slices{Quantum: cluster.Minute, Jobs: jobs, Memory: []cluster.GPUMemory{{Model: w.snap.Nodes[0].GPUs[0].Model, Bytes: 32 << 30}}}
	for i := range w.snap.Nodes {
		w.snap.Nodes[i].Shards = jobs
	}
	on := map[string]int{}
	for i := range w.snap.Cases {
		c := &w.snap.Cases[i]
		j := &c.Job
		if j.Request.Size != cluster.Whole(1) {
			continue
		}
		j.Ask, j.Batch, j.Hints = "gres/gpu:1", true, &cluster.Hints{Share: true, Memory: []cluster.GPUMemory{{Model: w.snap.Settings.Slices.Memory[0].Model, Bytes: 1 << 30}}}
		if len(j.Holds) > 0 {
			c.Record.Slice = &cluster.Slice{Ask: j.Ask, Request: j.Request, Shards: 1}
			j.Request = cluster.SliceOf(j.Request, 1, w.snap.Settings.Slices.Part())
			j.Holds[0].Size, j.Holds[0].Index = j.Request.Size, []int{on[j.Holds[0].Node] / jobs}
			on[j.Holds[0].Node]++
		}
	}
}

// Equal questions have equal answers, whatever the number of workers and the order of the past. Other seeds have others.
func TestDeterminism(t *testing.T) {
	w, p := crowd(rand.New(rand.NewPCG(1, 1)), 6, 120)
	q := w.ask()
	q.Past, q.Workers = p, 1
	first, err := Make(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	q.Workers = 3
	again, err := Make(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again); d != "" {
		t.Error(d)
	}
	q.Seed = 2
	other, err := Make(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed changes nothing")
	}
	for _, j := range first.Jobs {
		if !j.Start.ascend() || !j.End.ascend() {
			t.Errorf("%+v", j)
		}
	}
}

// In every run no node has more GPUs in use than it has, all counts agree with the jobs on the nodes, jobs end within
// their limits, and no job has more than one place.
func TestRunsKeepTheirBooks(t *testing.T) {
	all := 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w, p := crowd(rng, rapid.IntRange(1, 8).Draw(t, "nodes"), rapid.IntRange(1, 80).Draw(t, "jobs"))
		w.snap.Settings.RecallFirst = rapid.Bool().Draw(t, "recall")
		if rapid.Bool().Draw(t, "cells") {
			w.snap.Cells = &cluster.Cells{}
		}
		w.snap.Settings.NewSharePercent, w.snap.Settings.Patience = 50, rapid.SampledFrom([]cluster.Span{0, cluster.Hour}).Draw(t, "patience")
		gpus, jobs := rapid.IntRange(1, 40).Draw(t, "GPUs of a"), rapid.IntRange(1, 9).Draw(t, "jobs of b")
		if rapid.Bool().Draw(t, "limits") {
			w.snap.Admission = &cluster.Admission{Limits: cluster.Limits{Associations: []cluster.Association{
				{Account: "a", Caps: []cluster.Cap{{Rule: cluster.GrpTRES, TRES: "gres/gpu", Max: int64(gpus)}}},
				{Account: "b", Caps: []cluster.Cap{{Rule: cluster.GrpJobs, Max: int64(jobs)}}}}}}
			for i := range w.snap.Cases {
				w.snap.Cases[i].Job.Account = w.snap.Cases[i].Record.Tenant
			}
		}
		paired := 0
		if w.snap.Cells == nil && rapid.Bool().Draw(t, "slices") {
			w.mayTakeTurns(rapid.IntRange(2, 3).Draw(t, "jobs on a GPU"))
			w.snap.Tenants[0].Weight = rapid.Int64Range(1, 4).Draw(t, "weight")
			w.snap.Settings.Across = cluster.AnyUser
		}
		w.snap.Settings.StopAllowance = rapid.SampledFrom([]cluster.Span{0, 15 * cluster.Minute}).Draw(t, "allowance")
		s, h := survey(&w.snap, &w.plan), learn(&p)
		s.addJobs(&w.snap, &cluster.Plan{}, h)
		h.arrive(&p, s)
		s.countUse()
		closed := s.closures([]Closed{{Nodes: []string{"n00"}, From: begin.Add(cluster.Hour), Until: begin.Add(3 * cluster.Hour)}})
		r := newRun(s, h, 3, 5, 12*cluster.Hour, closed)
		last := slices.Clone(r.inUse)
		r.check = func() {
			inUse := slices.Clone(s.inUse)
			most := make([]int64, len(inUse))
			for _, l := range r.lives {
				for _, n := range r.quotas[l.quota] {
					if most[n.Limit] = n.Most; l.phase == runs {
						inUse[n.Limit] += n.Count
					}
				}
			}
			for i := range inUse {
				if inUse[i] != r.inUse[i] || inUse[i] > max(most[i], last[i]) {
					t.Fatalf("of limit %d, %d, there are %d in use, %d before, %d by the books", i, most[i], inUse[i], last[i], r.inUse[i])
				}
			}
			last = inUse
			used, holds := make([]int32, len(r.nodes)), make([]float64, len(r.tenants))
			for _, l := range r.lives {
				if l.phase != runs {
					if len(l.holds) > 0 {
						t.Fatalf("job %d holds GPUs and does not run", l.id)
					}
					continue
				}
				sum := int32(0)
				for _, o := range l.holds {
					used[o.node] += o.gpus
					sum += o.gpus
				}
				if sum != l.gpus {
					t.Fatalf("job %d of %d GPUs holds %d", l.id, l.gpus, sum)
				}
				if l.mate >= 0 {
					paired++
					all := ring(r, l)
					o, n := r.lives[l.mate], len(all)
					if n < 2 || n > r.set.Slices.Most() || all[n-1].mate != l.id || o.phase != runs || o.holds[0].node != l.holds[0].node || l.gpus > r.sharing.unit/int32(n) || l.speed != timeOf(r, all) {
						t.Fatalf("job %d takes turns with job %d: %+v, %+v", l.id, o.id, l, o)
					}
					parts := int32(0)
					for _, o := range all {
						parts += o.gpus
					}
					if want := timeOf(r, all) * float64(parts); timeOf(r, all) != 1/float64(n) && math.Abs(l.counts()-want) > 0.001 {
						t.Fatalf("job %d counts %v of %d units, want %v", l.id, l.counts(), parts, want)
					}
				} else if l.speed != 1 || l.turn != 0 {
					t.Fatalf("job %d, which takes no turns, goes on at a pace of %v", l.id, l.speed)
				}
				holds[l.tenant] += float64(sum) + l.turn
			}
			for n := range used {
				size := r.nodes[n].size
				if r.closed[n] {
					size = 0
				}
				if used[n] > size || r.free[n] != size-used[n] || r.soft[n] != 0 {
					t.Fatalf("node %d of %d GPUs has %d in use, %d free and %d undecided", n, size, used[n], r.free[n], r.soft[n])
				}
			}
			for i := range holds {
				if got := r.account(int32(i), 0).holds; got != holds[i] {
					t.Fatalf("tenant %d holds %v GPUs by its account, and %v", i, got, holds[i])
				}
			}
		}
		r.do()
		for i := range s.jobs {
			if r.endAt[i] < r.startAt[i] {
				t.Fatalf("job %d ends at %d before it starts at %d", i, r.endAt[i], r.startAt[i])
			}
		}
		all += paired
	})
	t.Logf("%d jobs took turns, by looks", all)
}

// A parsed forecast is the written one; others are refused.
func TestParse(t *testing.T) {
	if _, err := Parse([]byte(`{"at_ms":5,"round":1,"jobs":[{"job":1,"end":{"p10_ms":5,"p50_ms":4,"p90_ms":0}}]}`)); err == nil {
		t.Error("quantiles that do not ascend")
	}
	for _, text := range []string{"", "{}", `{"at_ms":5}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is a forecast", text)
		}
	}
	f, err := Parse([]byte(`{"at_ms":5,"round":1,"jobs":[{"job":1,"end":{"p10_ms":5,"p50_ms":6,"p90_ms":0}}]}`))
	if err != nil || f.Jobs[0].End.P50 != 6 {
		t.Errorf("%+v, %v", f, err)
	}
}
