package profile

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

const began = cluster.Instant(1_700_000_000_000)

// at gives s seconds after the beginning.
func at(s float64) cluster.Instant { return began + cluster.Instant(s*1000) }

func run() Run {
	return Run{Key: 1, Kind: "ml/a", Model: "v100", Gang: 2, Since: began}
}

// reported gives a book that heard reports of one run: seconds and steps.
func reported(t *testing.T, r Run, reports ...[2]float64) *Book {
	t.Helper()
	b := New(Default(), nil, nil)
	for _, x := range reports {
		if _, err := b.Report(r, cluster.Progress{Job: cluster.JobID{ID: 1}, Steps: x[1], At: at(x[0])}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestReportsBecomeSamples(t *testing.T) {
	for _, x := range []struct {
		what    string
		reports [][2]float64
		samples int
		rate    float64
	}{
		{"the first says nothing of the rate", [][2]float64{{60, 1000}}, 0, 0},
		{"two make a sample", [][2]float64{{0, 0}, {60, 600}}, 1, 10},
		{"the average is in the logarithm", [][2]float64{{0, 0}, {60, 300}, {120, 1500}}, 2, 10},
		{"too soon counts in the next", [][2]float64{{0, 0}, {5, 0}, {9.999, 100}, {20, 200}}, 1, 10},
		{"at the same moment", [][2]float64{{0, 0}, {60, 600}, {60, 700}}, 1, 10},
		{"no step is no sample, and its time counts", [][2]float64{{0, 0}, {60, 0}, {120, 600}}, 1, 5},
		{"a counter that restarts", [][2]float64{{0, 0}, {60, 600}, {120, 50}, {180, 650}}, 2, 10},
	} {
		b := reported(t, run(), x.reports...)
		p := b.facts.look("ml/a", "", "v100", 2, cluster.Observed)
		switch {
		case x.samples == 0 && p != nil:
			t.Errorf("%s: %+v, want no entry", x.what, p)
		case x.samples > 0 && (p == nil || p.Samples != x.samples || math.Abs(p.Rate-x.rate) > 1e-9*x.rate):
			t.Errorf("%s: %+v, want %d samples of %g", x.what, p, x.samples, x.rate)
		}
	}
}

// Time that the job waited, or ran elsewhere, is no time of its run here.
func TestOnlyOneStretchMakesASample(t *testing.T) {
	b := reported(t, run(), [2]float64{0, 0}, [2]float64{60, 600})
	again := run()
	again.Since = at(1000)
	hear := func(r Run, s, steps float64) {
		t.Helper()
		if _, err := b.Report(r, cluster.Progress{Steps: steps, At: at(s)}); err != nil {
			t.Fatal(err)
		}
	}
	hear(again, 1060, 700)
	hear(again, 1120, 1300)
	moved := again
	moved.Model, moved.Since = "k80", at(2000)
	hear(moved, 2060, 1400)
	hear(moved, 2120, 1460)
	var got []float64
	for _, e := range b.Entries() {
		got = append(got, e.Rate, float64(e.Samples))
	}
	if want := []float64{1, 1, 10, 2}; cmp.Diff(want, got) != "" { // k80, v100
		t.Errorf("rates and samples %v, want %v", got, want)
	}
}

// Time for which the job was suspended is none in which it ran.
func TestSuspendedTimeDoesNotCount(t *testing.T) {
	b := New(Default(), nil, nil)
	r := run()
	for _, x := range []struct{ at, steps, suspended float64 }{
		{10, 100, 0}, {70, 700, 0}, {730, 1300, 600}, // suspended for ten minutes
		{790, 1900, 600}, {900, 2500, 650},
	} {
		r.Suspended = cluster.Span(x.suspended) * cluster.Second
		if _, err := b.Report(r, cluster.Progress{Steps: x.steps, At: at(x.at)}); err != nil {
			t.Fatal(err)
		}
	}
	if p, _ := b.Rate("ml/a", "v100", 2); p.Rate != 10 || p.Samples != 4 || p.Spread != 0 {
		t.Errorf("%+v, want four samples of 10", p)
	}
	// another attempt has its own suspension
	r.Since, r.Suspended = at(1000), 30*cluster.Second
	for _, x := range [][2]float64{{1040, 2600}, {1100, 3200}} {
		if _, err := b.Report(r, cluster.Progress{Steps: x[1], At: at(x[0])}); err != nil {
			t.Fatal(err)
		}
	}
	if p, _ := b.Rate("ml/a", "v100", 2); p.Rate != 10 || p.Samples != 5 {
		t.Errorf("%+v, want five samples of 10", p)
	}
}

func TestReportsThatCannotBe(t *testing.T) {
	for _, x := range []struct {
		what string
		run  func(*Run)
		r    cluster.Progress
		want string
	}{
		{"NaN", nil, cluster.Progress{Steps: math.NaN(), At: at(60)}, "steps: NaN cannot be"},
		{"infinite", nil, cluster.Progress{Steps: math.Inf(1), At: at(60)}, "steps: +Inf cannot be"},
		{"negative", nil, cluster.Progress{Steps: -1, At: at(60)}, "steps: -1 cannot be"},
		{"too many", nil, cluster.Progress{Steps: 1e17, At: at(60)}, "steps: 1e+17 cannot be"},
		{"too many a second", nil, cluster.Progress{Steps: 1e12, At: at(60)}, "1e+12 steps in 1 min cannot be"},
		{"total", nil, cluster.Progress{Steps: 1, Total: math.NaN(), At: at(60)}, "total: NaN cannot be"},
		{"older", nil, cluster.Progress{Steps: 100, At: at(-1)}, "is older than that of"},
		{"of no tenant", func(r *Run) { r.Kind = "a" }, cluster.Progress{Steps: 1, At: at(60)}, "is of no tenant"},
		{"no kind", func(r *Run) { r.Kind = "ml/" }, cluster.Progress{Steps: 1, At: at(60)}, "is no kind"},
		{"no GPUs", func(r *Run) { r.Gang = 0 }, cluster.Progress{Steps: 1, At: at(60)}, "a gang of 0 GPUs cannot be"},
		{"no model", func(r *Run) { r.Model = "" }, cluster.Progress{Steps: 1, At: at(60)}, "no GPU model is named"},
	} {
		b := reported(t, run(), [2]float64{0, 0})
		r := run()
		if x.run != nil {
			x.run(&r)
		}
		if _, err := b.Report(r, x.r); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %q", x.what, err, x.want)
		}
		if got := b.Entries(); len(got) > 0 {
			t.Errorf("%s: left %+v in the book", x.what, got)
		}
	}
}

// A single sample that is far off moves an average by a part of its spread only; the average
// follows what lasts.
func TestTheAverageIsOfTheLastSamples(t *testing.T) {
	b := New(Default(), nil, nil)
	steps, s := 0.0, 0.0
	hear := func(rate float64) float64 {
		t.Helper()
		steps, s = steps+60*rate, s+60
		if _, err := b.Report(run(), cluster.Progress{Steps: steps, At: at(s)}); err != nil {
			t.Fatal(err)
		}
		p, _ := b.Rate("ml/a", "v100", 2)
		return p.Rate
	}
	for range 30 {
		hear(10)
	}
	if got := hear(1e8); got > 10.5 {
		t.Errorf("after one sample of 1e8: %g steps/s, want hardly more than 10", got)
	}
	for range 60 {
		hear(20)
	}
	if got := hear(20); math.Abs(got-20) > 1 {
		t.Errorf("after 60 samples of 20: %g steps/s", got)
	}
}

func TestAChangeInMidTrainingIsTold(t *testing.T) {
	b := New(Default(), nil, nil)
	steps := 0.0
	for i := range 120 {
		rate := 10 + 0.2*math.Sin(float64(i))
		if i >= 80 {
			rate /= 2
		}
		steps += 60 * rate
		change, err := b.Report(run(), cluster.Progress{Steps: steps, At: at(60 * float64(i))})
		if err != nil {
			t.Fatal(err)
		}
		if change == nil {
			continue
		}
		if i < 80 || i > 86 || math.Abs(change.Before-10) > 0.5 || math.Abs(change.After-5) > 0.5 || change.Key != 1 {
			t.Errorf("report %d: %+v, want a change from 10 to 5 at 80 to 86", i, change)
		}
		if p, _ := b.Rate("ml/a", "v100", 2); math.Abs(p.Rate-5) > 2.2 {
			t.Errorf("just after: %g steps/s, want to be nearly at 5", p.Rate)
		}
		return
	}
	t.Error("nobody noticed that the rate was halved")
}

// An observation stays trusted when a job's speed changes: no declaration counts again, although
// the next samples are the first of their kind.
func TestAChangeBringsNoWordBack(t *testing.T) {
	b := New(Default(), nil, nil)
	declare(t, b, "ml/a", "", 2, map[string]float64{"v100": 1000})
	steps, changes := 0.0, 0
	for i := range 200 {
		rate := 10.0
		if i/50%2 == 1 {
			rate = 4
		}
		steps += 60 * rate
		change, err := b.Report(run(), cluster.Progress{Steps: steps, At: at(60 * float64(i))})
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			changes++
		}
		if p, _ := b.Rate("ml/a", "v100", 2); i > 3 && (p.Source != cluster.Observed || p.Rate > 11) {
			t.Fatalf("report %d, after %d changes: it is believed to do %+v", i, changes, p)
		}
	}
	if changes < 2 {
		t.Errorf("%d changes were noticed, of three", changes)
	}
}

// One job that changes does not make what the others of its kind report count for nothing.
func TestAChangeIsOfOneJob(t *testing.T) {
	const jobs = 8
	b := New(Default(), nil, nil)
	var steps [jobs]float64
	changes, least := 0, 16
	for i := range 120 {
		for j := range jobs {
			rate := 10.0
			if j == 0 && i >= 80 {
				rate = 2
			}
			steps[j] += 60 * rate
			r := run()
			r.Key += cluster.JobKey(j)
			change, err := b.Report(r, cluster.Progress{Steps: steps[j], At: at(60 * float64(i))})
			if err != nil {
				t.Fatal(err)
			}
			if change != nil {
				changes++
			}
			if p, _ := b.Rate("ml/a", "v100", 2); i >= 10 {
				if least = min(least, p.Samples); p.Rate < 7 {
					t.Fatalf("report %d of job %d: the kind does %g, and seven of its eight jobs 10", i, j, p.Rate)
				}
			}
		}
	}
	if changes != 1 || least < 12 {
		t.Errorf("%d changes; the average is of %d samples at least", changes, least)
	}
}

func TestStepsThatRemain(t *testing.T) {
	b := reported(t, run(), [2]float64{0, 0}, [2]float64{60, 600})
	for _, x := range []struct {
		said, want float64
		estimated  bool
	}{{5000, 4400, false}, {100, 0, false}, {0, 7200, true}} {
		got, estimated := Remaining(paceOf(b, 1), x.said, 12*cluster.Minute, 10)
		if got != x.want || estimated != x.estimated {
			t.Errorf("said %g: %g steps remain, estimated %v; want %g, %v", x.said, got, estimated, x.want, x.estimated)
		}
	}
	if got, estimated := Remaining(paceOf(b, 2), 0, -cluster.Minute, 10); got != 0 || !estimated {
		t.Errorf("a job past its limit has %g steps left", got)
	}
	if _, err := b.Report(run(), cluster.Progress{Steps: 700, Total: 1000, At: at(70)}); err != nil {
		t.Fatal(err)
	}
	if got, _ := Remaining(paceOf(b, 1), 5000, 0, 0); got != 300 {
		t.Errorf("its reports say 1,000, its comment 5,000: %g remain, want 300", got)
	}
}

// paceOf gives the pace of a job; nil = it has none.
func paceOf(b *Book, key cluster.JobKey) *cluster.Pace {
	if at, there := b.pace(key); there {
		return &b.paces[at]
	}
	return nil
}
