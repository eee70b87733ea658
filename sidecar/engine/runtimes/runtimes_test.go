package runtimes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// draw makes jobs of a kind with an hour of work on the first model, of spread sd. Each runs on one model, or moves after a quarter of an hour with
// the chance that moves gives. A job that would take longer than limit is cut off (0 = none is).
func draw(rng *rand.Rand, n int, speeds []float64, sd, moves float64, limit cluster.Span) (jobs []cluster.JobRun) {
	for range n {
		left := math.Exp(sd*rng.NormFloat64()) * float64(cluster.Hour)
		j := cluster.JobRun{Ran: make([]cluster.Span, len(speeds)), Done: true}
		m, sum := rng.IntN(len(speeds)), cluster.Span(0)
		for left > 0 {
			stay := cluster.Span(left / speeds[m])
			if rng.Float64() < moves {
				stay = min(stay, cluster.Hour/4)
			}
			if limit > 0 && sum+stay > limit {
				stay, j.Done = limit-sum, false
				left = 0
			}
			j.Ran[m] += stay
			left -= float64(stay+1) * speeds[m]
			sum += stay
			m = rng.IntN(len(speeds))
		}
		jobs = append(jobs, j)
	}
	return jobs
}

func models(n int) (out []string) {
	for m := range n {
		out = append(out, fmt.Sprintf("m%d", m))
	}
	return out
}

func TestFewJobsTellNothing(t *testing.T) {
	const h = cluster.Hour
	for name, jobs := range map[string][]cluster.JobRun{
		"none":           nil,
		"four completed": {{Ran: []cluster.Span{h}, Done: true}, {Ran: []cluster.Span{h}, Done: true}, {Ran: []cluster.Span{h}, Done: true}, {Ran: []cluster.Span{h}, Done: true}, {Ran: []cluster.Span{h}}},
		"senseless":      {{Ran: []cluster.Span{-h}, Done: true}, {Ran: []cluster.Span{0}, Done: true}, {Done: true}, {Ran: []cluster.Span{h, h}, Done: true}},
	} {
		if got := Fit([]string{"a"}, jobs, nil); got[0].Rate != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// All jobs did the same parts on both models: nothing tells these apart.
	var jobs []cluster.JobRun
	for range 20 {
		jobs = append(jobs, cluster.JobRun{Ran: []cluster.Span{h, h}, Done: true})
	}
	if got := Fit([]string{"a", "b"}, jobs, nil); got[0].Rate != 0 || got[1].Rate != 0 {
		t.Errorf("models that jobs always used alike: %+v", got)
	}
}

// Property: the ratio of rates is near the truth, whether jobs stay or move, fail or reach their time limit; and about as near as the
// spread says.
func TestRatesAreNearTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, x := range []struct {
		name  string
		moves float64
		limit cluster.Span
	}{{"all stay", 0, 0}, {"some move", 0.3, 0}, {"a time limit", 0, 3 * cluster.Hour}, {"moves and a time limit", 0.3, 3 * cluster.Hour}} {
		var offs []float64
		sum, known, within := 0.0, 0, 0
		for range 120 {
			speeds := []float64{1, 0.45, 2}
			got := Fit(models(3), draw(rng, 40, speeds, 0.3, x.moves, x.limit), nil)
			for m := 1; m < 3; m++ {
				if got[0].Rate == 0 || got[m].Rate == 0 {
					continue
				}
				off := math.Log(got[m].Rate/got[0].Rate) - math.Log(speeds[m])
				known++
				sum += off
				offs = append(offs, math.Abs(off))
				if math.Abs(off) < 2*math.Hypot(got[0].Spread, got[m].Spread) {
					within++
				}
			}
		}
		slices.Sort(offs)
		if known < 200 || math.Abs(sum/float64(known)) > 0.05 || offs[len(offs)/2] > 0.15 || within < known*85/100 {
			t.Errorf("%s: %d of 240 known, off by %.3f on average, half of them by %.3f, %d within two spreads", x.name, known, sum/float64(known), offs[len(offs)/2], within)
		}
	}
}

// Property: no order of jobs matters, and the input stays as it is.
func TestOrderDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		jobs := draw(rng, 5+rng.IntN(30), []float64{1, 3}, 0.3, 0.4, 2*cluster.Hour)
		want, before := Fit(models(2), jobs, nil), slices.Clone(jobs)
		if !slices.EqualFunc(jobs, before, func(a, b cluster.JobRun) bool { return slices.Equal(a.Ran, b.Ran) }) {
			t.Fatal("jobs were changed")
		}
		rng.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
		if got := Fit(models(2), jobs, nil); !slices.EqualFunc(got, want, func(a, b cluster.RunRate) bool {
			return a.Rate == b.Rate && a.Spread == b.Spread && a.Jobs == b.Jobs && slices.Equal(a.Least, b.Least)
		}) {
			t.Fatalf("in another order %v, not %v", got, want)
		}
	}
}

// Outliers do not move the rates much: runs that ended at once, and one that hung.
func TestOutliers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	jobs := draw(rng, 30, []float64{1, 2}, 0.1, 0, 0)
	jobs = append(jobs, cluster.JobRun{Ran: []cluster.Span{cluster.Minute, 0}, Done: true}, cluster.JobRun{Ran: []cluster.Span{0, 40 * cluster.Hour}, Done: true})
	got := Fit(models(2), jobs, nil)
	if r := got[1].Rate / got[0].Rate; math.Abs(math.Log(r/2)) > 0.15 {
		t.Errorf("twice as fast, but %.3f", r)
	}
}

// FuzzFit takes arbitrary run times: rates are finite, and known only with a spread and enough jobs.
func FuzzFit(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte{255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var jobs []cluster.JobRun
		for i := 0; i+1 < min(len(data), 80); i += 2 {
			jobs = append(jobs, cluster.JobRun{Ran: []cluster.Span{cluster.Span(data[i]>>1) * cluster.Second << (data[i] >> 3), cluster.Span(data[i+1]) * cluster.Second}, Done: data[i]&1 == 0})
		}
		for _, r := range Fit(models(2), jobs, nil) {
			if !(r.Rate >= 0) || math.IsInf(r.Rate, 0) || !(r.Spread >= 0) || r.Rate > 0 && (r.Jobs < Least || r.Spread > widest) {
				t.Fatalf("%+v of %+v", r, jobs)
			}
		}
	})
}

// Property: the standard error of the fit is about as wide as that of a bootstrap over the jobs, and covers the truth about as often. It costs one
// fit instead of many, and draws nothing.
func TestStandardErrorIsAsGoodAsABootstrap(t *testing.T) {
	const draws, again = 60, 40
	rng := rand.New(rand.NewPCG(13, 14))
	speeds := []float64{1, 0.45, 2}
	for _, x := range []struct {
		jobs      int
		sd, moves float64
		limit     cluster.Span
	}{{18, 0.25, 0, 0}, {40, 0.25, 0.3, 3 * cluster.Hour}, {40, 0.6, 0.3, 0}} {
		var fitted, resampled struct {
			width  float64
			within int
		}
		n := 0
		for range draws {
			jobs := draw(rng, x.jobs, speeds, x.sd, x.moves, x.limit)
			got := Fit(models(3), jobs, nil)
			var gains [3][]float64 // ln of rates over the first model's
			for range again {
				f := fit{n: 3, jobs: make([]cluster.JobRun, len(jobs))}
				for i := range f.jobs {
					f.jobs[i] = jobs[rng.IntN(len(jobs))]
				}
				if f.jobs = sorted(f.jobs, 3); !f.run() {
					continue
				}
				for m := range gains {
					gains[m] = append(gains[m], f.rates[m]-f.rates[0])
				}
			}
			for m := 1; m < 3; m++ {
				if got[0].Rate == 0 || got[m].Rate == 0 {
					continue
				}
				off := math.Abs(math.Log(got[m].Rate/got[0].Rate) - math.Log(speeds[m]))
				mean, sum := 0.0, 0.0
				for _, g := range gains[m] {
					mean += g / float64(len(gains[m]))
				}
				for _, g := range gains[m] {
					sum += (g - mean) * (g - mean)
				}
				a, b := math.Hypot(got[0].Spread, got[m].Spread), math.Sqrt(sum/float64(len(gains[m])-1))
				n, fitted.width, resampled.width = n+1, fitted.width+a, resampled.width+b
				if off < 2*a {
					fitted.within++
				}
				if off < 2*b {
					resampled.within++
				}
			}
		}
		t.Logf("%+v: of %d ratios %d within two errors of the fit, %d of the bootstrap; mean errors %.3f and %.3f", x, n, fitted.within, resampled.within, fitted.width/float64(n), resampled.width/float64(n))
		if ratio := fitted.width / resampled.width; n < draws/2 || ratio < 0.75 || ratio > 1.25 || fitted.within < n*80/100 || fitted.within < resampled.within-n/10 {
			t.Errorf("%+v: of %d ratios %d within two errors of the fit, %d of the bootstrap; their widths compare as %.2f", x, n, fitted.within, resampled.within, ratio)
		}
	}
}
