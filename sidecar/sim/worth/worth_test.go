package worth

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/backtest"
	"github.com/fairlease/fairlease/sidecar/sim/experiment"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// window is a day of jobs on two nodes of four GPUs, of two tenants.
func window(lives ...backtest.Life) *backtest.Window {
	w := &backtest.Window{Setup: experiment.Default(), Lives: lives}
	w.Setup.Fleet = experiment.Fleet{Racks: []experiment.Rack{{Nodes: 2, GPUs: 4, Model: "v100"}}}
	w.Setup.Weights, w.Setup.Until = map[string]int64{"a": 1, "b": 1}, cluster.Day
	w.Was.From, w.Was.To = experiment.Start, experiment.Start.Add(cluster.Day)
	return w
}

func life(id, tenant string, gpus int, submit, runs cluster.Span) backtest.Life {
	return backtest.Life{Job: trace.Job{ID: id, Tenant: tenant, User: tenant, GPUs: gpus, Submit: submit, Runs: runs}, Ended: true}
}

// outcomes runs replays.
func outcomes(t rapid.TB, w *backtest.Window, n int) []Outcome {
	t.Helper()
	results, err := experiment.All(context.Background(), Replays(w, n, 1), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []Outcome
	for i := range results {
		out = append(out, Would(&results[i]))
	}
	return out
}

func noPrices(string) map[string]float64 { return nil }

// A job that had GPUs when the period began has them first in a replay, whoever is due them; the others come in their order. The one that
// waited got the 4 GPUs that its tenant was due 3 hours late, and the
// next one after it.
func TestAReplayGoesOnFromTheBegin(t *testing.T) {
	runs := life("9", "a", 4, 0, 3*cluster.Hour)
	runs.Held, runs.Before = true, cluster.Hour
	also := life("8", "a", 4, 0, 20*cluster.Hour)
	also.Held = true
	w := window(life("1", "b", 4, 0, cluster.Hour), life("2", "b", 1, cluster.Hour, cluster.Hour), also, runs)
	jobs := slices.Collect(Replays(w, 1, 1)[0].Load.Jobs)
	var order []string
	for _, j := range jobs {
		order = append(order, j.ID)
	}
	if d := cmp.Diff([]string{"8", "9", "1", "2"}, order); d != "" {
		t.Error(d)
	}
	for _, o := range outcomes(t, w, 2) {
		if math.Abs(o.Tenants["b"]-12) > 0.1 || o.Tenants["a"] > 0.1 || math.Abs(o.Below-12) > 0.2 || math.Abs(o.Wait-6) > 0.1 {
			t.Errorf("%+v", o)
		}
	}
}

// A job that has ended has a known run time, also if it ended after the period. Starts after its stops are no work, unless these destroyed work.
func TestRunTimesThatAreKnown(t *testing.T) {
	for _, x := range []struct {
		runs, after cluster.Span
		stops       int
		lost        bool
		want        cluster.Span
	}{
		{2 * cluster.Hour, 0, 0, false, 2 * cluster.Hour},
		{2 * cluster.Hour, cluster.Hour, 0, false, 3 * cluster.Hour},
		{2 * cluster.Hour, 0, 3, false, 2*cluster.Hour - 3*cluster.Minute},
		{2 * cluster.Hour, 0, 3, true, 2 * cluster.Hour},
		{4 * cluster.Minute, 0, 3, false, 2 * cluster.Minute}, // half of it at least
	} {
		l := life("1", "a", 1, 0, x.runs)
		l.After, l.Stops, l.Lost = x.after, x.stops, x.lost
		w := window(l)
		w.Setup.Settings.StartCost = cluster.Minute
		for j := range Replays(w, 1, 1)[0].Load.Jobs {
			if j.Runs != x.want {
				t.Errorf("%+v: runs for %s", x, j.Runs)
			}
		}
	}
}

// Where every job ends at a constant rate, a job that has not ended goes on for as long as a new one runs: jobs that are seen late, or only
// for a while, change nothing.
func TestRunTimesThatAreDrawn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	const mean = 6 * cluster.Hour
	var lives []backtest.Life
	for i := range 4000 {
		all := cluster.Span(random.ExpFloat64() * float64(mean))
		l := life(fmt.Sprint(i), "a", 1, 0, all)
		if late := cluster.Span(random.Int64N(int64(mean))); i%3 == 1 && late < all {
			l.Before, l.Runs = late, all-late
		}
		if until := cluster.Span(random.Int64N(int64(2 * mean))); i%3 == 2 && until < all {
			l.Runs, l.Ended = until, false
		}
		lives = append(lives, l)
	}
	known := lengthsOf(lives)
	for _, ran := range []cluster.Span{cluster.Minute, cluster.Hour, 5 * cluster.Hour, 12 * cluster.Hour} {
		l := life("x", "a", 1, 0, ran)
		l.Ended = false
		sum := 0.0
		for range 4000 {
			sum += float64(known.draw(&l, random) - ran)
		}
		if ratio := sum / 4000 / float64(mean); ratio < 0.85 || ratio > 1.15 {
			t.Errorf("a job that ran for %s goes on for %.2f of the mean", ran, ratio)
		}
	}
}

// A run time that is drawn is longer than the job has run, whatever is known.
func TestDrawnRunTimesAreLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Int64Range(0, int64(400*cluster.Day))
		lives := make([]backtest.Life, rapid.IntRange(1, 8).Draw(t, "jobs"))
		for i := range lives {
			lives[i] = life(fmt.Sprint(i), "a", 1+i%2, 0, cluster.Span(span.Draw(t, "ran")))
			lives[i].Before, lives[i].Ended = cluster.Span(span.Draw(t, "before")), rapid.Bool().Draw(t, "ended")
		}
		known, random := lengthsOf(lives), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for i := range lives {
			if got := known.runs(&lives[i], random); !lives[i].Ended && got <= lives[i].Runs || got < lives[i].Runs {
				t.Fatalf("%+v goes on for %s", lives[i], got)
			}
		}
	})
}

// Where all jobs fit at once, plain Slurm does as well as anything: nothing is gained, and the range says so. Nor is it without jobs.
func TestNothingIsGainedWithoutContention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lives []backtest.Life
		for i := range rapid.IntRange(0, 8).Draw(t, "jobs") { // of one GPU each, on eight
			l := life(fmt.Sprint(i), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), 1, 0, cluster.Span(rapid.Int64Range(1, int64(2*cluster.Day)).Draw(t, "runs")))
			l.Submit = cluster.Span(rapid.Int64Range(0, int64(cluster.Hour)).Draw(t, "submit"))
			l.Ended = rapid.Bool().Draw(t, "ended")
			lives = append(lives, l)
		}
		slices.SortFunc(lives, func(x, y backtest.Life) int { return int(x.Submit - y.Submit) })
		w := window(lives...)
		would := outcomes(t, w, 3)
		// The best that any scheduler could do.
		got := Of(w, &Outcome{}, would, store.Ends{}, noPrices)
		for _, m := range got.Measures[:3] {
			if m.Gained.Mean < 0 || m.Gained.High > 0.2 {
				t.Errorf("%s: %+v", m.Name, m.Gained)
			}
		}
	})
}

// A replay keeps to time limits, which backfill goes by. After a stop, Slurm shows what is left.
func TestTimeLimitsInReplays(t *testing.T) {
	const h = cluster.Hour
	for _, x := range []struct {
		name                       string
		limit, before, runs, after cluster.Span
		stops                      int
		ended                      bool
		want                       cluster.Span // the limit; 0 = none
	}{
		{"none", 0, 0, 2 * h, 0, 0, true, 0},
		{"longer than it ran", 5 * h, 0, 2 * h, 0, 0, true, 5 * h},
		{"begun before", 5 * h, h, 2 * h, h, 0, true, 4 * h},
		{"shortened by its user below what it ran", h, 0, 2 * h, 0, 0, true, 2 * h},
		{"of what is left after a stop", 3 * h, h, 2 * h, 0, 1, false, 5 * h},
		{"of a drawn run time", 3 * h, 0, 2 * h, 0, 0, false, 3 * h},
	} {
		l := life("1", "a", 1, 0, x.runs)
		l.Limit, l.Before, l.After, l.Stops, l.Ended = x.limit, x.before, x.after, x.stops, x.ended
		w := window(l)
		w.Setup.Settings.StartCost = 0
		for j := range Replays(w, 1, 1)[0].Load.Jobs {
			if j.Limit != x.want || x.want > 0 && j.Runs > x.want || x.ended && j.Runs != x.runs+x.after {
				t.Errorf("%s: a limit of %s, runs for %s", x.name, j.Limit, j.Runs)
			}
		}
	}
}

func TestStirKeepsTheOrder(t *testing.T) {
	var jobs []trace.Job
	for i := range 200 {
		jobs = append(jobs, trace.Job{ID: fmt.Sprint(i), Submit: cluster.Span(i/3) * 5 * cluster.Second})
	}
	was := slices.Clone(jobs)
	moved := 0
	for i, j := range Stir(jobs, rand.New(rand.NewPCG(1, 1))) {
		if j.ID != was[i].ID || i > 0 && j.Submit < jobs[i-1].Submit || j.Submit < was[i].Submit || j.Submit >= was[i].Submit+Jitter || was[i].Submit == 0 && j.Submit != 0 {
			t.Errorf("%+v was %+v", j, was[i])
		}
		if j.Submit != was[i].Submit {
			moved++
		}
	}
	if moved < 150 {
		t.Errorf("%d jobs were moved", moved)
	}
}

// The range of three values by Student's distribution: 2.92 standard deviations, and a third more variance for a further value.
func TestRange(t *testing.T) {
	got := RangeOf([]float64{1, 2, 3})
	want := 2.92 * math.Sqrt(4./3)
	if got.Mean != 2 || math.Abs(got.High-2-want) > 0.2*want || math.Abs(got.High+got.Low-4) > 1e-9 {
		t.Errorf("%+v, want 2 and %.2f to each side", got, want)
	}
}

// Measures, and money by tenant: at the price of its models, and at 1 of one that is not named.
func TestWorthOfOutcomes(t *testing.T) {
	l := life("1", "a", 1, 0, cluster.Hour)
	l.Ended = false
	w := window(l, life("2", "a", 1, 0, cluster.Hour))
	w.Setup.Fleet.Racks = append(w.Setup.Fleet.Racks, experiment.Rack{Nodes: 1, GPUs: 8, Model: "k80"})
	was := Outcome{Below: 3, Tenants: map[string]float64{"a": 1, "b": 2}, Wait: 5, Queued: 6, Work: 100, Lost: 4}
	would := Outcome{Below: 13, Tenants: map[string]float64{"a": 11, "b": 2}, Wait: 4, Queued: 9, Work: 90}
	got := Of(w, &was, []Outcome{would, would}, store.Ends{Recalled: 7}, func(tenant string) map[string]float64 {
		return map[string]map[string]float64{"a": {"V100": 5}}[tenant]
	})
	flat := func(x float64) Range { return Range{x, x, x} }
	price := 3.
	want := Worth{From: time.UnixMilli(int64(experiment.Start)).UTC(), Until: time.UnixMilli(int64(experiment.Start)).Add(24 * time.Hour).UTC(), GPUs: 16, Jobs: 2, Drawn: 1, Replays: 2, Lost: 4,
		Measures: []Measure{{"below_share", "gpu_h", 3, flat(13), flat(10)}, {"waits", "h", 5, flat(4), flat(-1)}, {"waits_times_gpus", "gpu_h", 6, flat(9), flat(3)}, {"work_done", "gpu_h", 100, flat(90), flat(10)}},
		Tenants:  []Tenant{{"a", 1, flat(11), flat(10), &price}, {"b", 2, flat(2), flat(0), nil}}, Leases: store.Ends{Recalled: 7}}
	money := flat(30)
	want.Money = &money
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); d != "" {
		t.Error(d)
	}
}
