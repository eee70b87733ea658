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

// Gavel §4.3: "4 identical jobs, job 1 with a weight of 3.0, and jobs 2 to 4 with a weight
// of 1.0; and 4 identical GPUs. In the first iteration, job 1 is assigned resources such
// that its throughput is 1.0, and jobs 2, 3, and 4 ... 0.33 ... In the next iteration, jobs
// 2 to 4 are given full-GPU allocations."
func TestGavel43WaterFilling(t *testing.T) {
	in := Instance{GPUs: []float64{4}, Gang: []float64{1, 1, 1, 1}, Speed: []float64{1, 1, 1, 1}}
	weight := []float64{3, 1, 1, 1}
	first, err := MaxMin(weighted(in, weight))
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(first.Low-1./3) > 1e-9 {
		t.Errorf("first iteration: %v by weight, want 1/3", first.Low)
	}
	got, err := Fill(in, weight, nil)
	if err != nil {
		t.Fatal(err)
	}
	for m, l := range got.Level {
		if math.Abs(l-1) > 1e-9 {
			t.Errorf("job %d at %v, want 1", m+1, l)
		}
	}
}

// Gavel §4.3 on Figure 6: a fair entity of jobs 1 to 3 and a FIFO entity of jobs 4 and 5:
// "if job 4 is bottlenecked, then its weight is reassigned to job 5 in accordance to the
// FIFO policy, while if job 2 is bottlenecked, its weight is distributed equally between
// jobs 1 and 3".
func TestGavel43Figure6(t *testing.T) {
	in := Instance{GPUs: []float64{3}, Gang: []float64{1, 1, 1, 1, 1}, Speed: []float64{1, 0.25, 1, 1, 1}}
	got, err := Fill(in, nil, []Entity{{Weight: 1, Jobs: []int{0, 1, 2}}, {Weight: 1, FIFO: true, Jobs: []int{3, 4}}})
	if err != nil {
		t.Fatal(err)
	}
	// Job 2 needs a GPU for its 0.25, so there are 2 for the levels of the others: W - 0.25
	// for jobs 1 and 3 together, W for 4 and then 5: W = 1.125.
	for m, want := range []float64{0.4375, 0.25, 0.4375, 1, 0.125} {
		if math.Abs(got.Level[m]-want) > 1e-9 {
			t.Errorf("job %d at %v, want %v", m+1, got.Level[m], want)
		}
	}
}
