package survival

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func TestMedian(t *testing.T) {
	const m = cluster.Minute
	for _, x := range []struct {
		name string
		ran  []cluster.Span
		want cluster.Span
		done int
	}{
		{"nothing", nil, 0, 0},
		{"four", []cluster.Span{m, m, m, m}, 0, 4},
		{"five", []cluster.Span{5 * m, m, 3 * m, 2 * m, 4 * m}, 3 * m, 5},
		{"six", []cluster.Span{6 * m, 5 * m, m, 3 * m, 2 * m, 4 * m}, 7 * m / 2, 6},
		// 6 at risk: 1, 2 end, (2+) is cut off, of 3 at risk 3 ends: 4/6 · 2/3 < 1/2.
		{"one cut off", []cluster.Span{m, 2 * m, -2 * m, 3 * m, 4 * m, 5 * m}, 3 * m, 5},
		{"short ones cut off say nothing", []cluster.Span{-1, -1, -1, m, 2 * m, 3 * m, 4 * m, 5 * m}, 3 * m, 5},
		{"too many cut off", []cluster.Span{m, m, m, m, m, -2 * m, -2 * m, -2 * m, -2 * m, -2 * m, -2 * m}, 0, 5},
		{"the longest cut off", []cluster.Span{m, m, m, 2 * m, 2 * m, 2 * m, 3 * m, -9 * m, -9 * m}, 2 * m, 7},
	} {
		got, spread, done := Median(x.ran)
		if got != x.want || done != x.done || !(spread >= 0) || got == 0 && spread != 0 {
			t.Errorf("%s: %v ± %v of %d, want %v of %d", x.name, got, spread, done, x.want, x.done)
		}
	}
}

// Property: no order of jobs matters, and run times in another unit give the same in that unit.
func TestOrderDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		ran := make([]cluster.Span, 5+rng.IntN(30))
		for i := range ran {
			ran[i] = 2 * cluster.Span(1+rng.IntN(5000))
			if rng.IntN(4) == 0 {
				ran[i] = -ran[i]
			}
		}
		before := slices.Clone(ran)
		median, spread, done := Median(ran)
		if !slices.Equal(before, ran) {
			t.Fatal("the run times were changed")
		}
		rng.Shuffle(len(ran), func(i, j int) { ran[i], ran[j] = ran[j], ran[i] })
		if m, s, d := Median(ran); m != median || s != spread || d != done {
			t.Fatalf("in another order %v ± %v of %d, not %v ± %v of %d: %v", m, s, d, median, spread, done, ran)
		}
		for i := range ran {
			ran[i] *= 1000
		}
		if m, s, _ := Median(ran); max(m-1000*median, 1000*median-m) > 1000 || math.Abs(s-spread) > 1e-9 {
			t.Fatalf("a thousand times as long: %v ± %v, not 1000 · %v ± %v", m, s, median, spread)
		}
	}
}

// Property: cutting off at a time limit does not bias the median, as leaving those jobs out would, and the spread is about the
// standard error that is seen over many draws.
func TestATimeLimitDoesNotBias(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const n, draws, sd = 24, 400, 0.4
	sum, sq, naive, spreads, known := 0.0, 0.0, 0.0, 0.0, 0
	for range draws {
		var ran, completed []cluster.Span
		for range n {
			x := cluster.Span(math.Exp(sd*rng.NormFloat64()) * float64(cluster.Hour))
			if limit := cluster.Span(1.4 * float64(cluster.Hour)); x > limit {
				x = -limit
			} else {
				completed = append(completed, x)
			}
			ran = append(ran, x)
		}
		slices.Sort(completed)
		naive += math.Log(float64(completed[len(completed)/2])/float64(cluster.Hour)) / draws
		if m, spread, _ := Median(ran); m > 0 {
			off := math.Log(float64(m) / float64(cluster.Hour))
			sum, sq, spreads, known = sum+off, sq+off*off, spreads+spread, known+1
		}
	}
	mean := sum / float64(known)
	seen := math.Sqrt(sq/float64(known) - mean*mean)
	if known < draws*9/10 || math.Abs(mean) > 0.03 || naive > -0.08 {
		t.Errorf("in %d of %d draws the median is off by %.3f; without those cut off by %.3f", known, draws, mean, naive)
	}
	if s := spreads / float64(known); s < seen/1.5 || s > seen*1.5 {
		t.Errorf("the spread is %.3f, that seen %.3f", s, seen)
	}
}

// FuzzMedian takes arbitrary run times: a median is one of the completed, or between two.
func FuzzMedian(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 200, 129})
	f.Fuzz(func(t *testing.T, data []byte) {
		var ran, completed []cluster.Span
		for _, b := range data[:min(len(data), 64)] {
			ran = append(ran, cluster.Span(int8(b)))
			if int8(b) > 0 {
				completed = append(completed, cluster.Span(b))
			}
		}
		median, spread, done := Median(ran)
		if done != len(completed) || !(spread >= 0) || math.IsInf(spread, 0) {
			t.Fatalf("%v: %v ± %v of %d", ran, median, spread, done)
		}
		if median != 0 && (done < Completed || median < slices.Min(completed) || median > slices.Max(completed)) {
			t.Fatalf("%v: median %v", ran, median)
		}
	})
}
