package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/fairlease/fairlease/research/papers"
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/report"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

// ideal gives a setup as in the papers' examples: leases cost nothing, no threshold, no minimum
// lease, no recall.
func ideal(t testing.TB, fleet string, term cluster.Span, jobs ...trace.Job) Setup {
	t.Helper()
	s := Default()
	s.Load = Load{Name: "example", Jobs: slices.Values(jobs)}
	s.Costs, s.Saves = sim.Costs{}, Only(sim.Always)
	s.Settings.Term, s.Settings.MinLease, s.Settings.Notice, s.Settings.Threshold = term, 0, 0, 0
	s.Settings.JobOrder, s.Settings.NewFirst, s.Settings.RecallFirst = cluster.ByRho, false, false
	return on(t, s, fleet)
}

// on gives a setup on another fleet, with equal weights.
func on(t testing.TB, s Setup, fleet string) Setup {
	t.Helper()
	f, err := ParseFleet(fleet)
	if err != nil {
		t.Fatal(err)
	}
	s.Fleet, s.Weights = f, EqualWeights(Survey(s.Load))
	return s
}

func run1(t testing.TB, s Setup) Result {
	t.Helper()
	r, err := Run(context.Background(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func job(id, tenant string, submit cluster.Span, gpus int, runs cluster.Span) trace.Job {
	return trace.Job{ID: id, Tenant: tenant, User: tenant + "-u", Submit: submit, Runs: runs, GPUs: gpus, Outcome: trace.Completed}
}

// "job1 is trained in one round while jobs 2 and 3 are trained in two": ASTRAEA Fig. 6, one
// job of 6 GPUs and two of 3 on 6 GPUs, 40 minutes each, rounds of 10 minutes. Every
// job is due 2 GPUs. So after an hour jobs 2 and 3 have had four rounds and job 1 two, of 120 GPU-minutes each,
// and job 1 has its last two rounds alone.
func TestFigure6(t *testing.T) {
	r := run1(t, ideal(t, "1x6", 10*cluster.Minute,
		job("1", "a", 0, 6, 40*cluster.Minute), job("2", "a", 0, 3, 40*cluster.Minute), job("3", "a", 0, 3, 40*cluster.Minute)))
	const minute = 60.0
	if r.Completion.Mean != (80+60+60)*minute/3 || r.Completion.Max != 80*minute || r.Completion.Min != 60*minute || r.Makespan != 80*minute {
		t.Errorf("completion times %+v and a makespan of %v s; job 1 must end after 80 minutes, the others after 60", r.Completion, r.Makespan)
	}
	if r.JobRho.Min != 1 || r.JobRho.Max != 1 || r.Loss.Jobs != 0 {
		t.Errorf("rho of jobs %+v: all must have received what they were due", r.JobRho)
	}
	if r.Utilisation != 1 || r.Tenants[0].Rho != 1 || r.Tenants[0].Alloc != 8 || r.Overhead.GPUHours != 0 {
		t.Errorf("utilisation %v, tenant %+v, overhead %+v: 8 GPU-hours on 6 busy GPUs", r.Utilisation, r.Tenants[0], r.Overhead)
	}
	if r.Slowdown.Max != 2 || r.Wait.Max != 40*minute || r.Wait.Min != 20*minute {
		t.Errorf("slowdown %+v, wait %+v", r.Slowdown, r.Wait)
	}
}

// A run with Enough ends after the last job that can still end, and not before.
func TestEnough(t *testing.T) {
	s := ideal(t, "1x2", 10*cluster.Minute, job("endless", "a", 0, 1, 100*cluster.Day), job("short", "b", cluster.Hour, 1, 30*cluster.Minute),
		job("late", "b", 3*cluster.Hour, 1, 100*cluster.Day))
	s.Until = 10 * cluster.Day
	whole := run1(t, s)
	s.Enough = true
	r := run1(t, s)
	if end := r.To.Sub(Start); end < 3*cluster.Hour || end > 3*cluster.Hour+s.Settings.Term || r.CutShort {
		t.Errorf("it ends after %s, want 3 hours or a term more", end)
	}
	if end := whole.To.Sub(Start); end != s.Until || r.Jobs != whole.Jobs || r.Jobs.Finished != 1 || r.Jobs.Unfinished != 2 || r.Completion != whole.Completion {
		t.Errorf("%+v, %+v; to the end at %s %+v, %+v", r.Jobs, r.Completion, end, whole.Jobs, whole.Completion)
	}
	s = ideal(t, "1x2", 10*cluster.Minute, job("endless", "a", 0, 1, 100*cluster.Day), job("short", "b", cluster.Hour, 1, 30*cluster.Minute))
	s.Until, s.Enough = 10*cluster.Day, true
	if end := run1(t, s).To.Sub(Start); end < 90*cluster.Minute || end > 100*cluster.Minute {
		t.Errorf("it ends after %s, want 90 minutes or a term more", end)
	}
}

// The overhead is exactly the costs of leases: a job gets a notice at the end of its first term,
// saves, starts cold, loads, and continues.
func TestOverheadByHand(t *testing.T) {
	s := ideal(t, "1x1", 10*cluster.Minute, job("1", "a", 0, 1, 20*cluster.Minute), job("2", "b", cluster.Second, 1, 5*cluster.Minute))
	s.Settings.Notice, s.Settings.MinLease = cluster.Minute, cluster.Minute
	s.Costs = sim.Costs{Save: 2 * cluster.Second, Load: 3 * cluster.Second, ColdStart: 5 * cluster.Second, Completing: cluster.Second}
	s.Saves = Only(sim.AtEnd)
	r := run1(t, s)
	// Job 2 has its turn from 10:01 to 15:01; the next round, at 15:10, gives the GPU back to job 1,
	// which has worked for 9:58 and has 10:02 to do: it ends at 15:10 + 0:08 + 10:02.
	if got, want := r.Completion.Max, (15*60+10+8+602)*1.0; got != want {
		t.Errorf("job 1 took %v s, want %v", got, want)
	}
	if got, want := r.Completion.Min, 15*60.0; got != want {
		t.Errorf("job 2 took %v s, want %v", got, want)
	}
	if got, want := r.Overhead.OfRun, 10.0/1500; math.Abs(got-want) > 1e-12 || r.Preemptions != 1 || r.Preempted != 1 {
		t.Errorf("overhead %v of run time, want %v; %d preemptions", got, want, r.Preemptions)
	}
	if got, want := r.Utilisation*1520, 1509.0; math.Abs(got-want) > 1 {
		t.Errorf("the GPU was held for %.1f s, want %v", got, want)
	}
}

// busy gives a generated setup with tenants, failures and costs.
func busy(t testing.TB, seed uint64) Setup {
	t.Helper()
	recipe := trace.LikePhilly(seed, 6)
	recipe.Length, recipe.Tenants = 3*cluster.Day, trace.Shifts(20, 0.8)
	recipe.Durations = recipe.Durations[:4]
	recipe.Burst = trace.Burst{Every: 12 * cluster.Hour, Jobs: 10}
	jobs, err := trace.Generate(recipe)
	if err != nil {
		t.Fatal(err)
	}
	s := Default()
	s.Load = Load{Name: "generated", Jobs: jobs}
	s.Between, s.Repair, s.Seed = 4*cluster.Day, 2*cluster.Hour, seed
	return on(t, s, "2x8")
}

// With 20 tenants and failures no job is lost, GPU time is conserved, and equal seeds give equal
// bytes, alone or beside other runs; another seed does not.
func TestSameSeedSameBytes(t *testing.T) {
	s := busy(t, 1)
	first := run1(t, s)
	jobs := Survey(s.Load).Jobs
	if first.Jobs.Finished != jobs || first.Preemptions == 0 || first.Loss.Jobs == 0 {
		t.Errorf("%d of %d jobs finished, %d preemptions, %d sharing losses: the example is too quiet", first.Jobs.Finished, jobs, first.Preemptions, first.Loss.Jobs)
	}
	held, alloc := 0.0, 0.0
	capacity := 0.0
	for i, used := range first.Use.Used {
		step := min(first.Use.Step, first.To.Sub(first.From).Duration().Seconds()-float64(i)*first.Use.Step)
		held, capacity = held+used*step/3600, capacity+first.Use.Capacity[i]*step/3600
	}
	for _, x := range first.Tenants {
		alloc += x.Alloc
	}
	if math.Abs(held-alloc) > 1e-3*alloc {
		t.Errorf("GPUs were held for %.3f h, on the books are %.3f h", held, alloc)
	}
	if full := 16 * first.To.Sub(first.From).Duration().Hours(); capacity >= full-1 {
		t.Errorf("%.1f GPU-hours of %.1f were healthy: no node failed", capacity, full)
	}
	other := busy(t, 2)
	all, err := All(context.Background(), []Setup{s, other, s}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := written(t, first)
	for i, same := range []bool{true, false, true} {
		if got := written(t, all[i]); bytes.Equal(got, want) != same {
			t.Errorf("run %d beside others: equal bytes %v, want %v", i, !same, same)
		}
	}
}

func written(t *testing.T, r Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.JSON(&b, []score.Scores{r.Scores}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The daemon's engine makes the same plan, byte for byte, from a snapshot of the simulator in the
// journal's form.
func TestTheDaemonWouldDecideTheSame(t *testing.T) {
	for _, scheduler := range []string{"astraea", "hived"} {
		t.Run(scheduler, func(t *testing.T) { decidesTheSame(t, scheduler) })
	}
}

func decidesTheSame(t *testing.T, scheduler string) {
	s := busy(t, 3)
	s.Scheduler = scheduler
	s.Until = cluster.Day
	r, err := newRun(&s)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 0
	inside := r.loop.Decide
	r.loop.Decide = func(snap cluster.Snapshot) cluster.Plan {
		kept := marshal(t, snap)
		plan := inside(snap)
		if rounds++; rounds%7 != 0 {
			return plan
		}
		var read cluster.Snapshot
		if err := json.Unmarshal(kept, &read); err != nil {
			t.Fatal(err)
		}
		daemons := engine.Decide(read)
		if daemons.Cells != nil { // a brief plan does not list them
			daemons.Cells.Views, daemons.Cells.Bound = nil, nil
		}
		if got, want := marshal(t, daemons), marshal(t, plan); !bytes.Equal(got, want) {
			t.Fatalf("round %d differs:\n%s", snap.Round, cmp.Diff(string(want), string(got)))
		}
		return plan
	}
	defer r.world.Feed(s.arrivals(&r.result.Refused))()
	if _, err := r.run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if rounds < 100 {
		t.Errorf("only %d rounds", rounds)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An interrupted run gives the scores so far, with every job that had arrived, and is marked.
func TestCutShort(t *testing.T) {
	s := busy(t, 1)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := Run(ctx, s, func(over int) {
		if over >= 100 {
			stop()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.CutShort || r.Jobs.Finished < 100 || r.Jobs.Unfinished == 0 || r.Jobs.Finished > 150 {
		t.Errorf("cut short %v, %+v", r.CutShort, r.Jobs)
	}
	// The same run with that end gives the same scores without the mark.
	s.Until = r.To.Sub(Start)
	whole := run1(t, s)
	r.CutShort = false
	if d := cmp.Diff(whole.Scores, r.Scores); whole.CutShort || d != "" {
		t.Errorf("a run until %v gives other scores:\n%s", s.Until, d)
	}
	if results, err := All(ctx, []Setup{s, s}, 1, nil); err != nil || results[0].Scheduler != "" {
		t.Errorf("after the end of ctx: %v, %+v", err, results)
	}
}

// Tenant a borrows both GPUs; b, which is due one of them, waits for the end of a's term. Alone b
// would have started at once.
func TestAuditNamesWhoWaitsLonger(t *testing.T) {
	s := ideal(t, "2x1", 15*cluster.Minute,
		job("a1", "a", 0, 1, cluster.Hour), job("a2", "a", 0, 1, cluster.Hour), job("b1", "b", cluster.Minute, 1, 30*cluster.Minute))
	s.Audit = true
	results, err := All(context.Background(), []Setup{s}, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := results[0].Audit
	if len(got) != 2 || got[0].Tenant != "b" || !got[0].Longer || got[1].Tenant != "a" || got[1].Longer {
		t.Fatalf("%+v", got)
	}
	b := got[0]
	if math.Abs(b.Shared-14.0/60) > 1e-9 || b.Private != 0 || b.Jobs != 1 || b.Worse != 1 || b.GPUs != 1 || b.Share != 1 || len(b.Worst) != 1 || b.Worst[0].Job != "b1" {
		t.Errorf("b waits 14 minutes instead of none: %+v", b)
	}
	// Alone its two jobs alternate by terms: one ends after 105 minutes, the other after 120.
	if a := got[1]; a.Private != 1.75 || a.Shared != 0.5 {
		t.Errorf("a's jobs wait 45 and 60 minutes alone, and one of them the 30 of b's job where it may borrow: %+v", a)
	}
}

// A private fleet is the tenant's share of every model, or as much more as its gangs need.
func TestPrivateFleets(t *testing.T) {
	s := on(t, Setup{Load: Load{Jobs: slices.Values([]trace.Job{
		job("1", "small", 0, 12, 1), job("2", "large", 0, 1, 1), {ID: "3", Tenant: "k", GPUs: 8, Model: "K80", Runs: 1}})}}, "4x8:v100+4x4:k80")
	s.Weights = map[string]int64{"small": 1, "large": 30, "k": 1, "nobody": 0}
	var got []string
	for _, p := range s.privates() {
		got = append(got, p.tenant+" "+p.setup.Fleet.String())
	}
	// 32 V100 and 16 K80: a share of 1/32 is 1 and 0 (0.5 rounds to 1: half a GPU up).
	want := []string{"k 2x4:k80+1x1:v100", "large 3x4:k80+1x3:k80+3x8:v100+1x6:v100", "small 1x1:k80+1x8:v100+1x6:v100"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Memory grows with the live jobs, not with the trace.
func TestMemoryDoesNotGrowWithTheTrace(t *testing.T) {
	seeds.Slow(t)
	recipe := trace.Recipe{Seed: 1, Jobs: 50_000, PerHour: 900, Sizes: []trace.Size{{GPUs: 1, Share: 1}},
		Durations: []trace.Range{{From: 30 * cluster.Second, To: 2 * cluster.Minute, Share: 1}}, Tenants: trace.Shifts(3, 0)}
	jobs, err := trace.Generate(recipe)
	if err != nil {
		t.Fatal(err)
	}
	s := Default()
	s.Load = Load{Name: "long", Jobs: jobs}
	s.Settings.Interval = cluster.Minute
	s = on(t, s, "8x8")
	var early, late uint64
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	r, err := Run(context.Background(), s, func(over int) {
		switch {
		case early == 0 && over >= 5000:
			early = heap()
		case late == 0 && over >= 49_000:
			late = heap()
		}
	})
	if err != nil || r.Jobs.Finished != 50_000 {
		t.Fatal(err, r.Jobs)
	}
	// The scores keep up to 65,536 exact values of each of seven kinds of 8 bytes; a job alone
	// takes 200.
	if grown := int64(late) - int64(early); grown > 5<<20 || late > 24<<20 {
		t.Errorf("the heap grew by %d KiB to %d KiB over 44,000 jobs", grown>>10, late>>10)
	}
}

// The requests of jobs on a fleet, and jobs that can never run.
func TestGangs(t *testing.T) {
	for _, c := range []struct {
		fleet  string
		job    trace.Job
		mixed  bool
		nodes  int
		per    int
		refuse string
	}{
		{"4x8", trace.Job{GPUs: 1}, false, 1, 1, ""},
		{"4x8", trace.Job{GPUs: 12}, false, 2, 6, ""},
		{"4x8", trace.Job{GPUs: 32}, false, 4, 8, ""},
		{"4x8", trace.Job{GPUs: 9}, false, 2, 0, ""},
		{"4x8", trace.Job{GPUs: 33}, false, 0, 0, "more than the whole cluster"},
		{"4x8", trace.Job{GPUs: 8, Model: "V100"}, false, 1, 8, ""}, // the fleet names no model
		{"4x8:v100+2x4:k80", trace.Job{GPUs: 8, Model: "K80"}, false, 2, 4, ""},
		{"4x8:v100+2x4:k80", trace.Job{GPUs: 40}, false, 0, 0, "more than the whole cluster"},
		{"4x8:v100+2x4:k80", trace.Job{GPUs: 24}, false, 3, 8, ""},
		{"4x8:v100+2x8:k80", trace.Job{GPUs: 40}, false, 0, 0, "more than the whole cluster"},
		{"4x8:v100+2x8:k80", trace.Job{GPUs: 40}, true, 5, 8, ""},
		{"4x8:v100", trace.Job{GPUs: 1, Model: "H100"}, false, 0, 0, "model h100"},
	} {
		f, err := ParseFleet(c.fleet)
		if err != nil {
			t.Fatal(err)
		}
		r, why := f.gang(&c.job, c.mixed)
		if (c.refuse == "") != (why == "") || !strings.Contains(why, c.refuse) {
			t.Errorf("%s on %s: refused because it %q, want %q", c.job.Model, c.fleet, why, c.refuse)
			continue
		}
		if why == "" && (r.Nodes != c.nodes || r.PerNode != c.per || r.MaxNodes != c.nodes) {
			t.Errorf("%d GPUs on %s: %+v, want %d nodes with %d each", c.job.GPUs, c.fleet, r, c.nodes, c.per)
		}
	}
	f, _ := ParseFleet("2x8")
	f.CPUs, f.MemoryMB = 4, 1000
	if _, why := f.gang(&trace.Job{GPUs: 1, CPUs: 32, MemoryMB: 8000}, false); why != "" {
		t.Error("a job may take the CPUs of a whole node:", why)
	}
	if _, why := f.gang(&trace.Job{GPUs: 1, CPUs: 33}, false); why == "" {
		t.Error("no node has 33 CPUs")
	}
	if _, why := f.gang(&trace.Job{GPUs: 1, MemoryMB: 8001}, false); why == "" {
		t.Error("no node has 8001 MB")
	}
}

// Jobs that can never run are counted and named.
func TestRefused(t *testing.T) {
	s := ideal(t, "1x4", 10*cluster.Minute, job("1", "a", 0, 4, cluster.Minute), job("2", "a", 0, 8, cluster.Minute), job("3", "b", 0, 1, cluster.Minute))
	delete(s.Weights, "b")
	r := run1(t, s)
	if r.Jobs.Finished != 1 || r.Refused.Jobs != 2 || r.Refused.Demand != cluster.Times(9, cluster.Minute) || len(r.Refused.Named) != 2 {
		t.Fatalf("%+v, refused %+v", r.Jobs, r.Refused)
	}
	for i, want := range []string{"job 2 of a asks for more than", "job 3 of b has no weight"} {
		if got := r.Refused.Named[i].String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A tenant may have the name of Slurm's root account.
func TestTenantCalledRoot(t *testing.T) {
	r := run1(t, ideal(t, "1x1", 10*cluster.Minute, job("1", "root", 0, 1, cluster.Minute)))
	if r.Jobs.Finished != 1 || r.Tenants[0].Rho != 1 {
		t.Errorf("%+v", r.Tenants)
	}
}

// A time limit covers all attempts; jobs that reached it only because of leases are counted.
func TestLimits(t *testing.T) {
	long, short := job("1", "a", 0, 1, 10*cluster.Minute), job("2", "a", 0, 1, 10*cluster.Minute)
	long.Limit, short.Limit = 5*cluster.Minute, 20*cluster.Minute
	timed := job("3", "a", 0, 1, 10*cluster.Minute)
	timed.Limit, timed.Outcome = 5*cluster.Minute, trace.Timeout
	r := run1(t, ideal(t, "1x3", 30*cluster.Minute, long, short, timed))
	if r.TimedOut != 1 || r.Completion.Min != 300 || r.Completion.Max != 600 {
		t.Errorf("%d timed out here only, completion %+v", r.TimedOut, r.Completion)
	}
}

// GPUs are fragmented while they are idle and their sum suffices for a waiting job that fits
// nowhere.
func TestFragmented(t *testing.T) {
	// 2 nodes of 4: three GPUs of each are held, so two are idle, but the job of two wants them on one node.
	s := ideal(t, "2x4", cluster.Hour, job("1", "a", 0, 3, 30*cluster.Minute), job("2", "a", 0, 3, 30*cluster.Minute), job("3", "a", cluster.Minute, 2, 30*cluster.Minute))
	r := run1(t, s)
	if got, want := r.Fragmented*8*60, 2*29.0; math.Abs(got-want) > 0.5 {
		t.Errorf("%.2f GPU-minutes fragmented, want %v", got, want)
	}
}

func TestParseFleet(t *testing.T) {
	for text, want := range map[string]string{"64x8": "64x8", "20x8:V100,20x4:k80": "20x8:v100+20x4:k80", " 1x1 + 2x2": "1x1+2x2"} {
		if f, err := ParseFleet(text); err != nil || f.String() != want {
			t.Errorf("%q: %s, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "8", "x8", "0x8", "8x0", "8x8:", "8x8,4x4:k80", "a", "-1x8", "1000000x8", "8x8x8"} {
		if f, err := ParseFleet(text); err == nil {
			t.Errorf("%q is taken for %s", text, f)
		}
	}
}

func TestReadWeights(t *testing.T) {
	got, err := ReadWeights(strings.NewReader("\xef\xbb\xbftenant,gpus\n# ours\nvision,64\nnlp: 32\nidle 0\n"), "w.csv")
	if d := cmp.Diff(map[string]int64{"vision": 64, "nlp": 32, "idle": 0}, got); err != nil || d != "" {
		t.Error(err, d)
	}
	for text, want := range map[string]string{
		"":           "w.csv: names no tenant",
		"a,1\nb,x\n": "w.csv: line 2: ",
		"a,1\na,2\n": "w.csv: line 2: tenant a has a weight already",
		"a,-1\n":     "w.csv: line 1: ",
		"a,1,2\n":    "w.csv: line 1: ",
	} {
		if _, err := ReadWeights(strings.NewReader(text), "w.csv"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	census := Census{Tenants: []Resident{{Tenant: "a", Demand: cluster.Times(1, cluster.Hour)}, {Tenant: "z"}}}
	if d := cmp.Diff(map[string]int64{"a": 61, "z": 1}, DemandWeights(census)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"z"}, Missing(census, map[string]int64{"a": 1})); d != "" {
		t.Error(d)
	}
}

// Errors in a setup are reported before anything runs.
func TestSetupsThatCannotRun(t *testing.T) {
	good := ideal(t, "1x1", 10*cluster.Minute, job("1", "a", 0, 1, cluster.Minute))
	for want, change := range map[string]func(*Setup){
		"a load is missing":             func(s *Setup) { s.Load.Jobs = nil },
		"a fleet is missing":            func(s *Setup) { s.Fleet.Racks = nil },
		"a term is no shorter":          func(s *Setup) { s.Settings.Interval = cluster.Hour },
		"shortest lease of 1 h":         func(s *Setup) { s.Settings.MinLease = cluster.Hour },
		"repaired":                      func(s *Setup) { s.Between, s.Repair = cluster.Day, 0 },
		"between two saves":             func(s *Setup) { s.Saves = Only(sim.Periodic) },
		"before it begins":              func(s *Setup) { s.Until = -1 },
		"no scheduler \"x\"; there are": func(s *Setup) { s.Scheduler = "x" },
	} {
		s := good
		change(&s)
		if _, err := Run(context.Background(), s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// A job that cannot start, because all usable nodes are down for good.
	s := good
	s.Between, s.Repair = 1, 200*365*cluster.Day
	if _, err := Run(context.Background(), s, nil); err == nil || !strings.Contains(err.Error(), "wait for ever, the first of them 1 of a") {
		t.Errorf("%v", err)
	}
}

// Two jobs of 20 minutes that take turns on one GPU both end after 40 minutes; in terms of 10 minutes one ends after 30.
func TestSlices(t *testing.T) {
	s := ideal(t, "1x1", 10*cluster.Minute, job("1", "a", 0, 1, 20*cluster.Minute), job("2", "b", 0, 1, 20*cluster.Minute))
	if r := run1(t, s); r.Completion.Min > 30.2*60 || r.Makespan > 40.5*60 {
		t.Errorf("without turns: completion %+v s, makespan %v s", r.Completion, r.Makespan)
	}
	s.Settings.Slices = &cluster.Slices{Quantum: cluster.Minute}
	r := run1(t, s)
	if r.Completion.Min < 38*60 || r.Completion.Max > 40.5*60 || math.Abs(r.Utilisation-1) > 0.01 {
		t.Errorf("in turns: completion %+v s, utilisation %v", r.Completion, r.Utilisation)
	}
}
