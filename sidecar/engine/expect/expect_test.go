package expect_test

import (
	"flag"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/expect"
)

// A property that fails must fail again.
func init() { _ = flag.Set("rapid.seed", "1") }

// upper is the end of a class in seconds of one GPU, by its definition.
func upper(class int) float64 { return math.Floor(60 * math.Pow(2, float64(class)/2)) }

func TestClassOf(t *testing.T) {
	for minutes := range int64(5000) {
		class := expect.ClassOf(cluster.Times(1, cluster.Span(minutes)*cluster.Minute))
		if sec := float64(60 * minutes); sec >= upper(class)+1 || class > 0 && sec < upper(class-1) {
			t.Fatalf("%d minutes are in class %d", minutes, class)
		}
	}
	if c := expect.ClassOf(-1); c != 0 {
		t.Errorf("less than nothing is in class %d", c)
	}
	if c := expect.ClassOf(math.MaxInt64); c != expect.Classes-1 {
		t.Errorf("the most GPU time is in class %d", c)
	}
}

func of(minutes ...int64) (counts []int32) {
	for _, m := range minutes {
		counts = expect.Add(counts, cluster.Times(1, cluster.Span(m)*cluster.Minute))
	}
	return counts
}

// next returns the expectation of a job that has received so many minutes, in minutes.
func next(got int64, counts []int32) float64 {
	var s expect.Sum
	s.Add(counts, 0)
	return float64(s.Next(expect.ClassOf(cluster.Times(1, cluster.Span(got)*cluster.Minute)))) / 60
}

func TestNext(t *testing.T) {
	short, long, both := of(5, 5, 5, 5), of(600, 600, 600, 600), of(5, 5, 5, 600)
	if a, b := next(0, short), next(0, long); a > 6 || b < 400 || b > 700 {
		t.Errorf("jobs of 5 minutes are expected to need %.0f, those of 600 %.0f", a, b)
	}
	// Of a job that may be short it is worth to see whether it is; one that turns out not to be is as long as the long ones.
	if young, old := next(0, both), next(20, both); young > 12 || old < 300 {
		t.Errorf("a new job needs %.0f minutes for each end, one that outlived the short jobs %.0f", young, old)
	}
	// A job that outlived all others loses its advantage: as much again as it had.
	if outlived := next(6000, both); outlived < 4000 || outlived > 6000 {
		t.Errorf("a job that outlived all others needs %.0f minutes", outlived)
	}
	if none := next(0, nil); none != 10 {
		t.Errorf("a job without a past needs %.0f minutes", none)
	}
}

// Jobs long ago are forgotten: fifty times as many others make theirs a hundredth.
func TestOldJobsAreForgotten(t *testing.T) {
	counts := of(600, 600, 600)
	for range 300 {
		counts = expect.Add(counts, cluster.Times(1, 5*cluster.Minute))
	}
	sum, old := int32(0), int32(0)
	for k, n := range counts {
		if sum += n; k > 10 {
			old += n
		}
	}
	if old != 0 || sum < 40_000 || sum > 50_000 {
		t.Errorf("of %d thousandths of a job, %d are of long ago", sum, old)
	}
}

// The result is the least of the definition: over all classes in which to stop, the expected GPU time divided by the
// probability that the job ends, in exact fractions.
func TestNextIsTheReciprocalOfTheGittinsIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Int32Range(0, 50_000), 1, expect.Classes).Draw(t, "counts")
		class := rapid.IntRange(0, expect.Classes-1).Draw(t, "class")
		var s expect.Sum
		s.Add(counts, 0)
		from := int64(0)
		if class > 0 {
			from = int64(upper(class - 1))
		}
		var want *big.Rat
		for stop := class; stop < len(counts); stop++ {
			ended, spent := int64(0), int64(0)
			for k := class; k < len(counts); k++ {
				n, low := int64(counts[k]), int64(0)
				if k > 0 {
					low = int64(upper(k - 1))
				}
				if k <= stop {
					ended += n
					spent += n * ((low+int64(upper(k)))/2 - from)
				} else {
					spent += n * (int64(upper(stop)) - from)
				}
			}
			if ended == 0 {
				continue
			}
			if x := big.NewRat(spent, ended); want == nil || x.Cmp(want) < 0 {
				want = x
			}
		}
		got := s.Next(class)
		if want == nil {
			if got != max(from, 600) {
				t.Fatalf("nothing is known, and %d s are expected instead of %d", got, max(from, 600))
			}
			return
		}
		if w, _ := want.Float64(); float64(got) > w || float64(got) < w-1 {
			t.Fatalf("got %d s, want %.2f", got, w)
		}
	})
}

// Other people's jobs weigh no more than they may.
func TestStrangersWeighLittle(t *testing.T) {
	var many, few expect.Sum
	own, others := of(600), of()
	for range 200 {
		others = expect.Add(others, cluster.Times(1, 5*cluster.Minute))
	}
	many.Add(own, 0)
	many.Add(others, 3)
	few.Add(own, 0)
	few.Add(of(5), 3)
	sum := func(s expect.Sum) (all int64) {
		for _, n := range s {
			all += n
		}
		return all
	}
	if sum(many) != 4000 || sum(few) != 2000 {
		t.Errorf("%d and %d thousandths of a job, want 4000 and 2000", sum(many), sum(few))
	}
}
