package score

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// zero is the start of the tests' runs; at gives a moment so many minutes later.
const zero = cluster.Instant(1_700_000_000_000)

func at(minutes int) cluster.Instant { return zero.Add(cluster.Span(minutes) * cluster.Minute) }

func minutes(n int) cluster.Span { return cluster.Span(n) * cluster.Minute }

func gpuMinutes(n int) cluster.GPUTime { return cluster.Times(n, cluster.Minute) }

// scored gives the scores of a run that is in memory.
func scored(run Run, opt Options) (Scores, error) {
	m := NewMeter(run.Setting, opt)
	for _, j := range run.Jobs {
		if err := m.Job(j); err != nil {
			return Scores{}, err
		}
	}
	for _, s := range run.Samples {
		if err := m.Sample(s); err != nil {
			return Scores{}, err
		}
	}
	return m.Scores(run.To)
}

func of(t *testing.T, run Run, opt Options) Scores {
	t.Helper()
	if run.From == 0 {
		run.From = zero
	}
	s, err := scored(run, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// held gives the samples of tenants of a 6-GPU cluster that are due two GPUs each and hold, in
// each step, the GPUs in a row.
func held(step int, names []string, rows ...[]int) []Sample {
	sums := make([]cluster.GPUTime, len(names))
	var out []Sample
	for i, row := range append(rows, make([]int, len(names))) {
		s := Sample{At: at(i * step), Capacity: 6}
		for k, name := range names {
			s.Used += row[k]
			s.Tenants = append(s.Tenants, TenantSample{Tenant: name, Holds: cluster.Micro(row[k]), Due: 2 * cluster.WholeGPU,
				Alloc: sums[k], DueTotal: gpuMinutes(2 * i * step)})
			sums[k] += gpuMinutes(row[k] * step)
		}
		out = append(out, s)
	}
	return out
}

// ASTRAEA Fig. 6: 6 GPUs, job 1 wants 6, jobs 2 and 3 want 3 each, rounds of ten
// minutes. Each job stands for a tenant here: a period's rho is a job's rho over it.
func TestFigure6(t *testing.T) {
	names := []string{"job1", "job2", "job3"}
	first, rest := []int{6, 0, 0}, []int{0, 3, 3}
	for _, c := range []struct {
		name    string
		minutes int
		rows    [][]int
		want    [3]float64
	}{
		// (b): "for each period of 20 minutes, Job1 gets 1/2 of the" GPU time, the others 1/4 each.
		{"finish-time fairness", 20, [][]int{first, rest, first, rest}, [3]float64{1.5, 0.75, 0.75}},
		// (c): "one round for Job1 and two rounds for Job2 and Job3": equal in any half hour.
		{"long-term GPU-time fairness", 30, [][]int{first, rest, rest, first, rest, rest}, [3]float64{1, 1, 1}},
		// (a): two GPUs each at any time, if jobs could shrink.
		{"instantaneous fairness", 10, [][]int{{2, 2, 2}, {2, 2, 2}}, [3]float64{1, 1, 1}},
	} {
		run := Run{Samples: held(10, names, c.rows...), To: at(10 * len(c.rows))}
		s := of(t, run, Options{Periods: []cluster.Span{minutes(c.minutes)}})
		for i, tenant := range s.Tenants {
			same(t, c.name+" min of "+tenant.Tenant, tenant.Periods[0].Rho.Min, c.want[i])
			same(t, c.name+" max of "+tenant.Tenant, tenant.Periods[0].Rho.Max, c.want[i])
			same(t, c.name+" over all of "+tenant.Tenant, tenant.Rho, c.want[i])
		}
		same(t, c.name+" utilisation", s.Utilisation, 1)
	}
}

func TestPeriods(t *testing.T) {
	// Three periods of ten minutes and one of five: the tenant is due 4 GPUs and
	// holds 4, then 2, then is due nothing, then 4 and holds none at all.
	due, alloc := []int{0, 40, 80, 80, 100}, []int{0, 40, 60, 60, 60}
	var run Run
	for i, m := range []int{0, 10, 20, 30, 35} {
		run.Samples = append(run.Samples, Sample{At: at(m), Tenants: []TenantSample{
			{Tenant: "a", Alloc: gpuMinutes(alloc[i]), DueTotal: gpuMinutes(due[i])}}})
	}
	run.To = at(35)
	opt := Options{Periods: []cluster.Span{minutes(10), minutes(60)}, Tolerance: 10_000}
	p := of(t, run, opt).Periods
	want := Stats{Count: 3, Mean: 0.5, Min: 0, Q1: 0, Median: 0.5, Q3: 1, P95: 1, P99: 1, Max: 1}
	if p[0].Rho != want {
		t.Errorf("rho of ten minutes: %+v, want %+v", p[0].Rho, want)
	}
	if p[0].Unfair != 2 || p[0].Below != 2 || p[0].NoDue != 1 {
		t.Errorf("unfair %d, below one %d, due nothing %d; want 2, 2, 1", p[0].Unfair, p[0].Below, p[0].NoDue)
	}
	same(t, "ratio", p[0].Ratio(), 2./3)
	same(t, "one long period, cut off", p[1].Rho.Mean, 0.6)
}

func TestToleranceOfPeriods(t *testing.T) {
	for _, c := range []struct {
		alloc         int
		unfair, below int
	}{{990, 0, 1}, {989, 1, 1}, {1000, 0, 0}} {
		run := Run{To: at(10), Samples: []Sample{{At: zero}, {At: at(10), Tenants: []TenantSample{
			{Tenant: "a", Alloc: gpuMinutes(c.alloc), DueTotal: gpuMinutes(1000)}}}}}
		p := of(t, run, Standard()).Periods[0]
		if p.Unfair != c.unfair || p.Below != c.below {
			t.Errorf("rho %d/1000: unfair %d, below one %d; want %d, %d", c.alloc, p.Unfair, p.Below, c.unfair, c.below)
		}
	}
}

// Unfair periods in which a tenant lacked no more than it repaid are counted separately.
func TestPeriodsOfRepayment(t *testing.T) {
	for _, c := range []struct{ alloc, repaid, unfair, repaying int }{{50, 50, 1, 1}, {49, 50, 1, 0}, {100, 50, 0, 0}, {50, 0, 1, 0}, {0, 100, 1, 1}} {
		run := Run{To: at(10), Samples: []Sample{{At: zero}, {At: at(10), Tenants: []TenantSample{
			{Tenant: "a", Alloc: gpuMinutes(c.alloc), DueTotal: gpuMinutes(100), Repaid: gpuMinutes(c.repaid)}}}}}
		if p := of(t, run, Standard()).Periods[0]; p.Unfair != c.unfair || p.Repaying != c.repaying {
			t.Errorf("%d of 100, %d repaid: %d unfair, %d of them by repaying; want %d, %d", c.alloc, c.repaid, p.Unfair, p.Repaying, c.unfair, c.repaying)
		}
	}
}

// A period may end between two samples, and a tenant may come late or go early.
func TestPeriodsBetweenSamples(t *testing.T) {
	run := Run{To: at(60), Samples: []Sample{
		{At: zero, Tenants: []TenantSample{{Tenant: "a", Holds: cluster.Micro(1), Due: 2 * cluster.WholeGPU}}},
		{At: at(30), Tenants: []TenantSample{
			{Tenant: "a", Alloc: gpuMinutes(30), DueTotal: gpuMinutes(60)},
			{Tenant: "b", Holds: cluster.Micro(3), Due: cluster.WholeGPU}}},
		{At: at(50), Tenants: []TenantSample{
			{Tenant: "b", Holds: cluster.Micro(3), Due: cluster.WholeGPU, Alloc: gpuMinutes(60), DueTotal: gpuMinutes(20)},
			{Tenant: "c", Holds: cluster.Micro(1), Due: cluster.WholeGPU}}},
	}}
	s := of(t, run, Options{Periods: []cluster.Span{minutes(20)}})
	a, b := s.Tenants[0].Periods[0], s.Tenants[1].Periods[0]
	if a.Rho.Count != 2 || a.NoDue != 1 || a.Rho.Min != 0.5 || a.Rho.Max != 0.5 {
		t.Errorf("a was due two GPUs and held one for 30 of 60 minutes: %+v", a)
	}
	if b.Rho.Count != 2 || b.NoDue != 1 || b.Rho.Min != 3 || b.Rho.Max != 3 {
		t.Errorf("b was due one GPU and held three for the last 30 of 60 minutes: %+v", b)
	}
	if c := s.Tenants[2].Periods[0]; c.Rho.Count != 1 || c.NoDue != 2 || c.Rho.Mean != 1 {
		t.Errorf("c came for the last ten minutes, after two periods: %+v", c)
	}
	same(t, "b's GPU-hours", s.Tenants[1].Alloc, 1.5)
}

// Sums from before the run are ignored.
func TestSumsFromBefore(t *testing.T) {
	run := Run{To: at(10), Samples: []Sample{
		{At: zero, Tenants: []TenantSample{{Tenant: "a", Alloc: gpuMinutes(500), DueTotal: gpuMinutes(100)}}},
		{At: at(10), Tenants: []TenantSample{{Tenant: "a", Alloc: gpuMinutes(510), DueTotal: gpuMinutes(120)}}}}}
	s := of(t, run, Standard())
	same(t, "period", s.Periods[0].Rho.Mean, 0.5)
	same(t, "cumulative", s.Tenants[0].Rho, 0.5)
}

// jobs: one that ran at once, one that waited ten minutes and was preempted for
// ten, one of length zero, one that was withdrawn, two that are not done.
func jobs() []Job {
	return []Job{
		{ID: "1", Tenant: "a", GPUs: 2, Submit: at(0), Start: at(0), End: at(40), Runs: minutes(40), Held: minutes(40),
			Alloc: gpuMinutes(80), Due: gpuMinutes(80)},
		{ID: "2", Tenant: "a", GPUs: 4, Submit: at(10), Start: at(20), End: at(75), Runs: minutes(40), Held: minutes(45),
			Overhead: minutes(5), Lost: minutes(2), Alloc: gpuMinutes(180), Due: gpuMinutes(200), Preemptions: 2},
		{ID: "3", Tenant: "b", GPUs: 1, Submit: at(20), Start: at(25), End: at(25)},
		{ID: "4", Tenant: "b", GPUs: 1, Submit: at(30), End: at(50), Runs: minutes(5), Due: gpuMinutes(20), Outcome: "CANCELLED"},
		{ID: "5", Tenant: "b", GPUs: 1, Submit: at(40), Start: at(50), Held: minutes(30), Alloc: gpuMinutes(30), Due: gpuMinutes(40)},
		{ID: "6", Tenant: "b", GPUs: 1, Submit: at(70), Due: gpuMinutes(10)},
	}
}

func TestJobs(t *testing.T) {
	s := of(t, Run{Jobs: jobs(), To: at(80)}, Standard())
	if want := (Counts{All: 6, Finished: 3, Withdrawn: 1, Unfinished: 2, Unstarted: 1, NoRun: 1, NoDue: 1}); s.Jobs != want {
		t.Errorf("counts %+v, want %+v", s.Jobs, want)
	}
	same(t, "mean completion", s.Completion.Mean, (40+65+5)*60./3)
	same(t, "median completion", s.Completion.Median, 40*60)
	same(t, "longest completion", s.Completion.P99, 65*60)
	same(t, "mean wait", s.Wait.Mean, (0+20+5+20)*60./4)
	same(t, "mean first wait", s.FirstWait.Mean, (0+10+5)*60./3)
	same(t, "mean slowdown", s.Slowdown.Mean, (1+1.625)/2)
	if s.Slowdown.Count != 2 || s.JobRho.Count != 3 {
		t.Errorf("%d slowdowns and %d rhos, want 2 and 3", s.Slowdown.Count, s.JobRho.Count)
	}
	same(t, "mean rho", s.JobRho.Mean, (1+0.9+0)/3)
	if want := (Loss{Below: 0.95, Jobs: 2, Share: 2. / 3, Unfinished: 2}); s.Loss != want {
		t.Errorf("sharing loss %+v, want %+v", s.Loss, want)
	}
	same(t, "overhead of run time", s.Overhead.OfRun, 5./80)
	same(t, "overhead of completion time", s.Overhead.OfCompletion, 5./110)
	same(t, "overhead in GPU-hours", s.Overhead.GPUHours, 20./60)
	same(t, "work lost of run time", s.Overhead.Lost.OfRun, 2./80)
	same(t, "work lost in GPU-hours", s.Overhead.Lost.GPUHours, 8./60)
	if s.Overhead.Lost.Jobs != 1 {
		t.Errorf("%d jobs lost work, want 1", s.Overhead.Lost.Jobs)
	}
	same(t, "makespan", s.Makespan, 75*60)
	if s.Preemptions != 2 || s.Preempted != 1 {
		t.Errorf("%d preemptions of %d jobs, want 2 of 1", s.Preemptions, s.Preempted)
	}
	if b := s.Tenants[1]; b.Tenant != "b" || b.Jobs.All != 4 || b.Wait.Mean != 750 || b.Loss.Jobs != 1 {
		t.Errorf("tenant b: %+v", b)
	}
	if n := len(s.Arrivals.Jobs); s.Arrivals.Step != 60 || n != 31 || s.Arrivals.Jobs[30] != 1 || s.Arrivals.Wait[10] != 1200 {
		t.Errorf("arrivals: %+v", s.Arrivals)
	}
}

func TestBoundOfSharingLoss(t *testing.T) {
	for alloc, want := range map[int]int{94: 1, 95: 0} {
		j := Job{ID: "1", Tenant: "a", Submit: at(0), Start: at(0), End: at(100), Alloc: gpuMinutes(alloc), Due: gpuMinutes(100)}
		if got := of(t, Run{Jobs: []Job{j}, To: at(100)}, Standard()).Loss.Jobs; got != want {
			t.Errorf("rho %d/100: %d sharing losses, want %d", alloc, got, want)
		}
	}
}

func TestUse(t *testing.T) {
	run := Run{To: at(3).Add(30 * cluster.Second), Samples: []Sample{
		{At: zero, Capacity: 8, Used: 4, Tenants: []TenantSample{{Tenant: "b", Holds: cluster.Micro(4)}}},
		{At: zero.Add(90 * cluster.Second), Capacity: 8, Used: 6, Fragmented: 2, Tenants: []TenantSample{
			{Tenant: "a", Holds: cluster.Micro(6), Alloc: 0}, {Tenant: "b", Alloc: gpuMinutes(6)}}},
		{At: at(3), Capacity: 4}}}
	s := of(t, run, Standard())
	want := Use{Step: 60, Capacity: []float64{8, 8, 8, 4}, Used: []float64{4, 5, 6, 0}, Fragmented: []float64{0, 1, 2, 0},
		Tenants: []Line{{"a", []float64{0, 3, 6, 0}}, {"b", []float64{4, 2, 0, 0}}}}
	if !reflect.DeepEqual(s.Use, want) {
		t.Errorf("use: %+v\nwant %+v", s.Use, want)
	}
	same(t, "utilisation", s.Utilisation, 15./26)
	same(t, "fragmentation", s.Fragmented, 3./26)
}

// With several GPU models, use is known by model.
func TestUseByModel(t *testing.T) {
	run := Run{Setting: Setting{Models: []Model{{"k80", 4}, {"v100", 4}}}, To: at(2), Samples: []Sample{
		{At: zero, Capacity: 8, Used: 5, Tenants: []TenantSample{{Tenant: "a", Holds: cluster.Micro(4), On: []cluster.MicroGPU{cluster.Micro(3), cluster.Micro(1)}}, {Tenant: "b", Holds: cluster.Micro(1), On: []cluster.MicroGPU{cluster.Micro(0), cluster.Micro(1)}}}},
		{At: at(1), Capacity: 8, Used: 2, Tenants: []TenantSample{{Tenant: "a", Holds: cluster.Micro(2), On: []cluster.MicroGPU{cluster.Micro(0), cluster.Micro(2)}, Alloc: gpuMinutes(4)}}}}}
	s := of(t, run, Standard())
	want := []ModelUse{
		{"k80", []float64{3, 0}, []Line{{"a", []float64{3, 0}}, {"b", []float64{0, 0}}}},
		{"v100", []float64{2, 2}, []Line{{"a", []float64{1, 2}}, {"b", []float64{1, 0}}}}}
	if !reflect.DeepEqual(s.Use.Models, want) {
		t.Errorf("use: %+v\nwant %+v", s.Use.Models, want)
	}
	for i, held := range [][]float64{{3. / 60, 3. / 60}, {0, 1. / 60}} {
		for m, on := range s.Tenants[i].On {
			same(t, s.Tenants[i].Tenant+" on "+on.Model, on.Held, held[m])
		}
	}
}

func TestNothingHappened(t *testing.T) {
	s := of(t, Run{To: at(10)}, Standard())
	if s.Completion != (Stats{}) || s.Makespan != 0 || s.Utilisation != 0 || len(s.Tenants) != 0 || s.JobRhoCDF != nil {
		t.Errorf("an empty run has scores: %+v", s)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

func TestContradictions(t *testing.T) {
	for name, c := range map[string]struct {
		run  Run
		want string
	}{
		"end before submission": {Run{Jobs: []Job{{ID: "7", Submit: at(5), Start: at(5), End: at(4)}}}, "job 7: ends at"},
		"start before it":       {Run{Jobs: []Job{{ID: "7", Submit: at(5), Start: at(4)}}}, "job 7: starts at"},
		"negative time":         {Run{Jobs: []Job{{ID: "7", Submit: at(5), Held: -1}}}, "below zero"},
		"before the run":        {Run{Jobs: []Job{{ID: "7", Submit: at(-1)}}}, "before the run began"},
		"samples in disorder":   {Run{Samples: []Sample{{At: at(2)}, {At: at(1)}}}, "comes after one of"},
		"an end too early":      {Run{Samples: []Sample{{At: at(20)}}}, "comes after one of"},
		"shrinking sums": {Run{Samples: []Sample{{At: at(1), Tenants: []TenantSample{{Tenant: "a", Alloc: 5}}},
			{At: at(2), Tenants: []TenantSample{{Tenant: "a", Alloc: 4}}}}}, "has shrunk"},
	} {
		c.run.From, c.run.To = zero, at(10)
		if _, err := scored(c.run, Standard()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestPercentilesByHand(t *testing.T) {
	var s spread
	for _, v := range []int64{50, 15, 40, 35, 20} { // nearest rank: the textbook's example
		s.add(v)
	}
	if got := s.at([]int64{s.rank(50), s.rank(300), s.rank(400), s.rank(500), s.rank(1000)}); !slices.Equal(got, []int64{15, 20, 20, 35, 50}) {
		t.Errorf("5th, 30th, 40th, 50th and 100th percentile: %v", got)
	}
}

func TestBinsAreNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Min(0).Draw(t, "v")
		m := middle(binOf(v))
		if off := math.Abs(float64(m - v)); off > float64(v)/2000 {
			t.Fatalf("%d stands in a bin for %d", v, m)
		}
	})
}

// A spread in bins agrees with one that keeps every value.
func TestFoldedSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 1<<50), 1, 300).Draw(t, "values")
		var exact, folded, left, right spread
		folded.fold()
		right.fold()
		for i, v := range values {
			exact.add(v)
			folded.add(v)
			if i%2 == 0 {
				left.add(v)
			} else {
				right.add(v)
			}
		}
		left.join(&right)
		want, got, joined := exact.stats(1), folded.stats(1), left.stats(1)
		if len(values) > 1 && got != joined {
			t.Fatalf("joined %+v, in one %+v", joined, got)
		}
		if want.Count != got.Count || want.Mean != got.Mean || want.Min != got.Min || want.Max != got.Max {
			t.Fatalf("exact %+v, folded %+v", want, got)
		}
		for _, p := range [][2]float64{{want.Q1, got.Q1}, {want.Median, got.Median}, {want.Q3, got.Q3}, {want.P95, got.P95}, {want.P99, got.P99}} {
			if math.Abs(p[0]-p[1]) > p[0]/2000 {
				t.Fatalf("exact %+v, folded %+v", want, got)
			}
		}
	})
}

func TestManyValuesFold(t *testing.T) {
	var s spread
	for i := range int64(200_000) {
		s.add(i * 1000)
	}
	if s.exact != nil || len(s.bins) > 20_000 {
		t.Errorf("%d values kept and %d bins", len(s.exact), len(s.bins))
	}
	if st := s.stats(1); math.Abs(st.Median-99_999_000) > 50_000 || st.Mean != 99_999_500 {
		t.Errorf("%+v", st)
	}
}

func TestSumsBeyond64Bits(t *testing.T) {
	var a, b spread
	a.fold()
	b.fold()
	for range 8 {
		a.add(1 << 62)
		b.add(1 << 62)
	}
	a.join(&b)
	same(t, "mean", a.stats(1<<62).Mean, 1)
}

// drawRun gives a run with a few tenants, jobs in every state and uneven samples.
func drawRun(t *rapid.T) Run {
	run := Run{Setting: Setting{From: zero}, To: at(5000)}
	names := []string{"a", "b", "c"}
	span := func(limit int, name string) cluster.Span {
		return cluster.Span(rapid.IntRange(0, limit*60_000).Draw(t, name))
	}
	for i := range rapid.IntRange(0, 30).Draw(t, "jobs") {
		j := Job{ID: string(rune('A' + i)), Tenant: rapid.SampledFrom(names).Draw(t, "tenant"), GPUs: 1, Submit: zero.Add(span(4000, "submit"))}
		if rapid.Bool().Draw(t, "starts") {
			j.Start = j.Submit.Add(span(500, "waits"))
			j.Runs, j.Overhead = span(200, "runs"), span(20, "overhead")
			j.Held = j.Runs + j.Overhead
		}
		if rapid.Bool().Draw(t, "ends") {
			j.End = max(j.Start, j.Submit).Add(j.Held)
		}
		j.Alloc, j.Due = cluster.Times(1, j.Held), cluster.GPUTime(span(300, "due"))
		run.Jobs = append(run.Jobs, j)
	}
	now, sums := zero, make([][2]cluster.GPUTime, len(names))
	for range rapid.IntRange(1, 20).Draw(t, "samples") {
		s := Sample{At: now, Capacity: 24}
		step := span(240, "step")
		for i, name := range names {
			x := TenantSample{Tenant: name, Holds: cluster.Micro(rapid.IntRange(0, 8).Draw(t, "holds")), Alloc: sums[i][0], DueTotal: sums[i][1]}
			x.Due = cluster.MicroGPU(rapid.IntRange(0, 8).Draw(t, "rate")) * cluster.WholeGPU
			sums[i][0] += x.Holds.Over(step)
			sums[i][1] += cluster.Times(int(x.Due/cluster.WholeGPU), step)
			s.Used += x.Holds.Devices()
			s.Tenants = append(s.Tenants, x)
		}
		run.Samples = append(run.Samples, s)
		now = now.Add(step)
	}
	return run
}

func scoresOf(t *rapid.T, run Run) Scores {
	s, err := scored(run, Standard())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPercentilesLieBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scoresOf(t, drawRun(t))
		for name, x := range map[string]Stats{"completion": s.Completion, "wait": s.Wait, "slowdown": s.Slowdown, "rho": s.JobRho, "period": s.Periods[0].Rho} {
			if v := []float64{x.Min, x.Q1, x.Median, x.Q3, x.P95, x.P99, x.Max}; !slices.IsSorted(v) || x.Mean < x.Min || x.Mean > x.Max {
				t.Fatalf("%s: %+v", name, x)
			}
		}
		for _, cdf := range [][]float64{s.JobRhoCDF, s.SlowdownCDF} {
			if cdf != nil && (!slices.IsSorted(cdf) || len(cdf) != cdfSteps+1) {
				t.Fatalf("cdf %v", cdf)
			}
		}
	})
}

func TestShuffledJobsScoreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawRun(t)
		want, _ := json.Marshal(scoresOf(t, run))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(run.Jobs), func(i, k int) { run.Jobs[i], run.Jobs[k] = run.Jobs[k], run.Jobs[i] })
		got, _ := json.Marshal(scoresOf(t, run))
		if string(got) != string(want) {
			t.Fatalf("in another order:\n%s\n%s", got, want)
		}
	})
}

// No job and no tenant period is lost: each is counted exactly once.
func TestEverythingIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawRun(t)
		s := scoresOf(t, run)
		c := s.Jobs
		if c.All != len(run.Jobs) || c.All != c.Finished+c.Withdrawn+c.Unfinished || c.Unstarted > c.Unfinished {
			t.Fatalf("%d jobs: %+v", len(run.Jobs), c)
		}
		if int(s.Completion.Count) != c.Finished || int(s.Slowdown.Count) != c.Finished-c.NoRun ||
			int(s.Wait.Count) != c.Finished+c.Withdrawn || int(s.JobRho.Count) != c.Finished+c.Withdrawn-c.NoDue {
			t.Fatalf("%+v against %d, %d, %d, %d", c, s.Completion.Count, s.Slowdown.Count, s.Wait.Count, s.JobRho.Count)
		}
		for i, length := range Standard().Periods {
			n := int((run.To.Sub(zero) + length - 1) / length)
			if p := s.Periods[i]; int(p.Rho.Count)+p.NoDue != n*len(s.Tenants) || p.Unfair > p.Below {
				t.Fatalf("%d periods of %d tenants: %+v", n, len(s.Tenants), p)
			}
		}
		if s.Utilisation < 0 || s.Utilisation > 1 {
			t.Fatalf("utilisation %v", s.Utilisation)
		}
	})
}

// More samples of the same states change nothing: rho does not depend on the sampling.
func TestMoreSamplesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := drawRun(t)
		want := scoresOf(t, run)
		var dense []Sample
		for i, s := range run.Samples {
			end := run.To
			if i+1 < len(run.Samples) {
				end = run.Samples[i+1].At
			}
			for now := s.At; ; {
				more := s
				more.At, more.Tenants = now, slices.Clone(s.Tenants)
				for k := range more.Tenants {
					x := &more.Tenants[k]
					x.Alloc += x.Holds.Over(now.Sub(s.At))
					x.DueTotal += cluster.Times(int(x.Due/cluster.WholeGPU), now.Sub(s.At))
				}
				dense = append(dense, more)
				if now = now.Add(17 * cluster.Minute); now >= end {
					break
				}
			}
		}
		run.Samples = dense
		got := scoresOf(t, run)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("with more samples:\n%+v\n%+v", got, want)
		}
	})
}

func TestAudit(t *testing.T) {
	job := func(id, tenant string, wait, runs int) Job {
		return Job{ID: id, Tenant: tenant, GPUs: 8, Submit: at(0), Start: at(wait), End: at(wait + runs), Held: minutes(runs)}
	}
	waiting := Job{ID: "b3", Tenant: "b", GPUs: 8, Submit: at(0)}
	shared := Run{To: at(600), Jobs: []Job{
		job("a1", "a", 60, 10), job("a2", "a", 0, 10), job("a3", "a", 0, 10),
		job("b1", "b", 30, 10), job("b2", "b", 60, 10), waiting, job("b4", "b", 0, 10),
		job("c1", "c", 5, 10),
	}}
	private := []Run{
		{To: at(600), Jobs: []Job{job("a1", "a", 0, 10), job("a2", "a", 120, 10), {ID: "a3", Tenant: "a", Submit: at(0)}}},
		{To: at(900), Jobs: []Job{job("b1", "b", 0, 10), job("b2", "b", 0, 10), job("b3", "b", 120, 10)}},
		{To: at(600), Jobs: []Job{job("c1", "c", 0, 10)}},
	}
	want := []Audited{
		{Tenant: "b", Longer: true, Jobs: 3, LeftOut: 1, Shared: 11.5, Private: 2, Worse: 3, Lost: 9.5, Worst: []Anomaly{
			{Job: "b3", GPUs: 8, Shared: 10, Private: 2, Unfinished: true},
			{Job: "b2", GPUs: 8, Shared: 1}, {Job: "b1", GPUs: 8, Shared: 0.5}}},
		{Tenant: "c", Jobs: 1, Shared: 5. / 60},
		{Tenant: "a", Jobs: 2, LeftOut: 1, Shared: 1, Private: 2, Worse: 1, Lost: 1, Worst: []Anomaly{{Job: "a1", GPUs: 8, Shared: 1}}},
	}
	if got := Audit(shared, private, 5*cluster.Minute); !reflect.DeepEqual(got, want) {
		t.Errorf("audit:\n%+v\nwant\n%+v", got, want)
	}
}

func BenchmarkMeter(b *testing.B) {
	m := NewMeter(Setting{From: zero}, Standard())
	tenants := make([]TenantSample, 18)
	for i := range tenants {
		tenants[i] = TenantSample{Tenant: string(rune('a' + i)), Holds: cluster.Micro(8), Due: 8 * cluster.WholeGPU}
	}
	now := zero
	for b.Loop() {
		if err := m.Sample(Sample{At: now, Capacity: 144, Used: 144, Tenants: tenants}); err != nil {
			b.Fatal(err)
		}
		if err := m.Job(Job{Tenant: "a", Submit: now, Start: now, End: now.Add(cluster.Hour), Runs: cluster.Hour, Held: cluster.Hour, Alloc: 1, Due: 1}); err != nil {
			b.Fatal(err)
		}
		for i := range tenants {
			tenants[i].Alloc += 8 * 10_000
			tenants[i].DueTotal += 8 * 10_000
		}
		now = now.Add(10 * cluster.Second)
	}
}
