package trace_test

import (
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/tests/seeds"
)

// likeHiveD are two months of jobs, made once for all tests.
var likeHiveD = sync.OnceValue(func() []trace.Job { return trace.LikeHiveD(1).Jobs() })

// HiveD's Table 1: 141,950 jobs, 115,203 / 2,926 / 10,726 / 10,795 / 2,300 of them with 1 / 2 / 4 /
// 8 / 16 and more GPUs.
func TestLikeHiveDIsTable1(t *testing.T) {
	jobs := likeHiveD()
	want := [5]int{115203, 2926, 10726, 10795, 2300}
	var got [5]int
	tenants, demand := map[string][5]int{}, map[string]float64{}
	hour := [24]int{}
	for i, j := range jobs {
		class := min(int(math.Log2(float64(j.GPUs))), 4)
		got[class]++
		of := tenants[j.Tenant]
		of[class]++
		tenants[j.Tenant] = of
		demand[j.Tenant] += float64(j.GPUs) * float64(j.Runs)
		hour[j.Submit%cluster.Day/cluster.Hour]++
		if j.Submit < 0 || j.Submit >= 60*cluster.Day || j.Runs < cluster.Second || j.Runs > 30*cluster.Day || i > 0 && j.Submit < jobs[i-1].Submit {
			t.Fatalf("job %d: %+v", i, j)
		}
	}
	if got != want || len(jobs) != 141950 {
		t.Errorf("%d jobs, by size %v, want %v", len(jobs), got, want)
	}
	for _, row := range trace.HiveDTenants {
		if tenants[row.Name] != row.Jobs {
			t.Errorf("%s has jobs %v, want %v", row.Name, tenants[row.Name], row.Jobs)
		}
		load := demand[row.Name] / (row.Quota / 100 * 1600 * float64(60*cluster.Day))
		if math.Abs(load-row.Load) > 1e-3 {
			t.Errorf("%s asks for %.4f of its quota, want %.2f", row.Name, load, row.Load)
		}
	}
	if day, night := hour[15], hour[3]; day < 3*night || day > 5*night {
		t.Errorf("%d jobs come at 15 o'clock and %d at 3; want four times as many", day, night)
	}
}

func TestLikeHiveDIsTheSameEachTime(t *testing.T) {
	h := trace.LikeHiveD(7)
	h.Length = 2 * cluster.Day
	a, b := h.Jobs(), h.Jobs()
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave other jobs")
	}
	if n := len(a); n < 4700 || n > 4760 {
		t.Errorf("two days have %d jobs of 141950 in sixty", n)
	}
	h.Seed = 8
	if reflect.DeepEqual(a, h.Jobs()) {
		t.Error("another seed gave the same jobs")
	}
	if n := len(trace.Sample(a, 0.25, 1)); n < len(a)/5 || n > len(a)/3 {
		t.Errorf("a quarter of %d jobs is %d", len(a), n)
	}
}

// Figure 8: "When only res-f is in the 8-GPU group, the workload is highly fragmented (0.91)." Each
// tenant asks for the same GPUs and GPU time as before.
func TestReshape(t *testing.T) {
	seeds.Slow(t)
	jobs := likeHiveD()
	fragmentation := func(jobs []trace.Job) float64 {
		gpus := 0
		for _, j := range jobs {
			gpus += j.GPUs
		}
		return float64(len(jobs)) / float64(gpus)
	}
	sum := func(jobs []trace.Job) map[string]float64 {
		out := map[string]float64{}
		for _, j := range jobs {
			out[j.Tenant] += float64(j.GPUs) * float64(j.Runs)
		}
		return out
	}
	before, last := sum(jobs), 1.0
	eight := []string{}
	for i, name := range []string{"res-f", "prod-e", "prod-d", "prod-c"} {
		eight = append(eight, name)
		shaped := trace.Reshape(jobs, eight, 1)
		f := fragmentation(shaped)
		if i == 0 && math.Abs(f-0.91) > 0.02 || f >= last {
			t.Errorf("with %v in the 8-GPU group the workload fragmentation is %.3f, before %.3f", eight, f, last)
		}
		last = f
		for name, d := range sum(shaped) {
			if math.Abs(d/before[name]-1) > 0.01 {
				t.Errorf("%s asks for %.4f of the GPU time that it asked for", name, d/before[name])
			}
		}
		for _, j := range shaped {
			if want := 1 + 7*b2i(slices.Contains(eight, j.Tenant)); j.GPUs != want {
				t.Fatalf("a job of %s asks for %d GPUs, want %d", j.Tenant, j.GPUs, want)
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
