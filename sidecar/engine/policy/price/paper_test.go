package price

import (
	"math"
	"testing"
)

// gavel41 is Gavel §4.1's example: 3 jobs on a V100 and a K80, throughputs over that of
// X_equal = [0.5, 0.5].
func gavel41() Instance {
	return Instance{GPUs: []float64{1, 1}, Gang: []float64{1, 1, 1}, Speed: []float64{
		40. / 25, 10. / 25,
		12. / 8, 4. / 8,
		100. / 75, 50. / 75,
	}}
}

// Gavel §4.1: "yields the following allocation: 0.45 0.0; 0.45 0.09; 0.09 0.91. Jobs
// receive about 10% higher throughput compared to an allocation where every user is given
// 1/n of the time on each accelerator".
func TestGavel41ThreeJobs(t *testing.T) {
	got, err := MaxMin(gavel41())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{5. / 11, 0, 5. / 11, 1. / 11, 1. / 11, 10. / 11} {
		if math.Abs(got.X[i]-want) > 1e-9 {
			t.Errorf("x[%d][%d] = %v, want %v", i/2, i%2, got.X[i], want)
		}
	}
	if isolated := 2. / 3; math.Abs(got.Low/isolated-12./11) > 1e-9 {
		t.Errorf("%v of the isolated allocation, want 12/11", got.Low/isolated)
	}
}

func near2(got, want float64) bool { return math.Abs(got-want) <= 0.005 }

// OEF §2.4, equation 3: "consider the same speedup matrix as in Expression (1), the
// allocation and the related efficiency under Gavel is given by" 0.91 0.09; 0.09 0.45; 0
// 0.45 and 1.09, 1.44, 1.8 (cut off, not rounded: 16/11 and 20/11): "the ratio of
// efficiency obtained from Gavel to that under a max-min fair share is equalized".
func TestOEFEquation3GavelsAllocation(t *testing.T) {
	got, err := MaxMin(Instance{GPUs: []float64{1, 1}, Gang: []float64{1, 1, 1}, Speed: []float64{
		1 / 1., 2 / 1.,
		1 / (4. / 3), 3 / (4. / 3),
		1 / (5. / 3), 4 / (5. / 3),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.91, 0.09, 0.09, 0.45, 0, 0.45} {
		if !near2(got.X[i], want) {
			t.Errorf("x[%d][%d] = %v, want %v", i/2, i%2, got.X[i], want)
		}
	}
	for l, e := range levels(2, got.X, []float64{1, 2, 1, 3, 1, 4}) {
		if want := []float64{12. / 11, 16. / 11, 20. / 11}[l]; !near2(e, want) {
			t.Errorf("efficiency of u%d is %v, want %v", l+1, e, want)
		}
	}
}

// OEF's examples of the non-cooperative program: the speedups of equation 1, §4.2.3 with a
// second user of weight 2, §4.2.4 with a first user of two kinds of jobs.
func TestOEF42EqualThroughput(t *testing.T) {
	for name, c := range map[string]struct {
		weight, speedup, want []float64
	}{
		"equation 1": {[]float64{1, 1, 1}, []float64{1, 2, 1, 3, 1, 4}, []float64{1, 5. / 26, 0, 6. / 13, 0, 9. / 26}},
		"§4.2.3":     {[]float64{1, 2}, []float64{1, 2, 1, 5}, []float64{1, 1. / 3, 0, 2. / 3}},
		"§4.2.4":     {[]float64{0.5, 0.5, 1}, []float64{1, 2, 1, 3, 1, 5}, []float64{1, 0.11, 0, 0.41, 0, 2 * 0.243}},
	} {
		got, err := EqualThroughput([]float64{1, 1}, c.weight, c.speedup)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if !near2(got.X[i], want) {
				t.Errorf("%s: x[%d][%d] = %v, want %v", name, i/2, i%2, got.X[i], want)
			}
		}
	}
}
