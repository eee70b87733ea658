package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/google/go-cmp/cmp"
)

func generate(t testing.TB, r Recipe) iter.Seq[Job] {
	t.Helper()
	jobs, err := Generate(r)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// near compares a share with a paper's, within five standard deviations.
func near(t *testing.T, what string, hits, of int, want float64) {
	t.Helper()
	got, n := float64(hits)/float64(of), float64(of)
	if math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/n) {
		t.Errorf("%s: %.4f of %d jobs; the paper says %.4f", what, got, of, want)
	}
}

// "jobs have duration 10^x minutes, where x is drawn uniformly from [1.5, 3] with
// 80% probability, and from [3, 4] with 20%" (Gavel §7.1).
func TestLikeGavel(t *testing.T) {
	r := LikeGavel(1, 4.4)
	r.Jobs = 40000
	sizes, kinds, n, long, decade, low := map[int]int{}, map[string]int{}, 0, 0, 0, 0
	var last cluster.Span
	for j := range generate(t, r) {
		n++
		sizes[j.GPUs]++
		kinds[j.Kind]++
		x := math.Log10(float64(j.Runs) / float64(cluster.Minute))
		switch {
		case x < 1.4999 || x > 4.0001:
			t.Fatalf("a run time of 10^%v minutes", x)
		case x > 3.5:
			decade++
			long++
		case x > 3:
			long++
		case x < 2.25:
			low++
		}
		last = j.Submit
	}
	near(t, "more than 1000 min", long, n, 0.2)
	near(t, "more than 10^3.5 min", decade, n, 0.1)
	near(t, "less than 10^2.25 min", low, n, 0.4)
	for gpus, share := range map[int]float64{1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05} {
		near(t, fmt.Sprint(gpus, " GPUs"), sizes[gpus], n, share)
	}
	if len(sizes) != 4 || len(kinds) != 26 || kinds["ResNet-50 (batch size 64)"] == 0 || kinds["A3C"] == 0 {
		t.Errorf("sizes %v, %d kinds", sizes, len(kinds))
	}
	if rate := float64(n) / hours(last); math.Abs(rate-4.4) > 5*4.4/math.Sqrt(float64(n)) {
		t.Errorf("%v jobs an hour; asked for 4.4", rate)
	}
}

// Gandiva_fair §3.3 and ASTRAEA Table 1.
func TestLikePhilly(t *testing.T) {
	r := LikePhilly(2, 600)
	r.Jobs = 40000
	n, sizes, below := 0, map[int]int{}, map[cluster.Span]int{}
	cdf := map[cluster.Span]float64{10 * cluster.Minute: 0.408, cluster.Hour: 0.716, 6 * cluster.Hour: 0.885, cluster.Day: 0.941, 6 * cluster.Day: 0.985}
	for j := range generate(t, r) {
		n++
		sizes[min(j.GPUs, 5)]++
		for edge := range cdf {
			if j.Runs < edge {
				below[edge]++
			}
		}
	}
	for edge, share := range cdf {
		near(t, "less than "+edge.Slurm(), below[edge], n, share)
	}
	for gpus, share := range map[int]float64{1: 0.866, 2: 0.023, 4: 0.049, 5: 0.062} {
		near(t, fmt.Sprint(gpus, " GPUs"), sizes[gpus], n, share)
	}
}

// Arrivals of a Poisson process: the gaps' mean and deviation are the same.
func TestArrivalsArePoisson(t *testing.T) {
	r := LikePhilly(3, 1)
	r.Jobs = 20000
	var last cluster.Span
	var sum, squares float64
	for j := range generate(t, r) {
		gap := hours(j.Submit - last)
		last = j.Submit
		sum += gap
		squares += gap * gap
	}
	n := float64(r.Jobs)
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-1) > 5/math.Sqrt(n) || math.Abs(deviation-1) > 10/math.Sqrt(n) {
		t.Errorf("gaps of %v ± %v hours; want 1 ± 1", mean, deviation)
	}
}

// A tenant with full swing submits twice its average at its peak and nothing
// twelve hours later; the cluster as a whole keeps the average of the recipe.
func TestTenantsSwing(t *testing.T) {
	r := LikePhilly(4, 100)
	r.Length = 200 * cluster.Day
	r.Tenants = []Tenant{{Name: "east", Share: 3, Swing: 1, Peak: 6 * cluster.Hour}, {Name: "west", Share: 1, Swing: 0.5, Peak: 18 * cluster.Hour, Users: 4}}
	var n int
	byHour := map[string]*[24]int{"east": {}, "west": {}}
	users := map[string]bool{}
	for j := range generate(t, r) {
		n++
		byHour[j.Tenant][j.Submit%cluster.Day/cluster.Hour]++
		users[j.User] = true
		if j.Submit >= r.Length {
			t.Fatalf("%v is behind the end", j.Submit)
		}
	}
	want := 100.0 * 24 * 200
	if math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d jobs; want about %v", n, want)
	}
	for name, c := range map[string]struct{ average, swing, peak float64 }{"east": {75 * 200, 1, 6}, "west": {25 * 200, 0.5, 18}} {
		for h, got := range byHour[name] {
			// the cosine's mean over the hour
			w := math.Pi / 12
			want := c.average * (1 + c.swing*(math.Sin(w*(float64(h)+1-c.peak))-math.Sin(w*(float64(h)-c.peak)))/w)
			if math.Abs(float64(got)-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("%s submits %d jobs from %d h on; want about %.0f", name, got, h, want)
			}
		}
	}
	if len(users) != 5 || !users["east-u1"] || !users["west-u4"] {
		t.Errorf("users %v", users)
	}
}

func TestBursts(t *testing.T) {
	r := LikeGavel(5, 1)
	r.Length = 3000 * cluster.Day
	r.Burst = Burst{Every: 10 * cluster.Hour, Jobs: 40}
	r.PerHour = 1e-3 // nearly nothing but bursts
	r.Tenants = []Tenant{{Name: "a", Share: 1}, {Name: "b", Share: 1}}
	n, bursts := 0, 0
	var last Job
	for j := range generate(t, r) {
		n++
		if j.Submit != last.Submit {
			bursts++
		} else if j.Tenant != last.Tenant || j.User != last.User || j.GPUs != last.GPUs || j.Kind != last.Kind {
			t.Errorf("one burst of different jobs: %+v after %+v", j, last)
		}
		last = j
	}
	want := 3000 * 24 / 10.0
	if math.Abs(float64(bursts)-want-72) > 5*math.Sqrt(want) {
		t.Errorf("%d moments of arrival; want about %v bursts and 72 others", bursts, want)
	}
	if mean := float64(n) / want; math.Abs(mean-40) > 5*40*math.Sqrt2/math.Sqrt(want) {
		t.Errorf("%v jobs a burst; want 40", mean)
	}
}

// Equal seeds give equal bytes: a change of the draw changes every earlier result, and must say
// so.
func TestSameSeedSameBytes(t *testing.T) {
	r := LikePhilly(7, 60)
	r.Jobs, r.Kinds, r.Tenants, r.Burst = 5000, gavelKinds(), Shifts(20, 0.8), Burst{Every: cluster.Day, Jobs: 30}
	write := func(r Recipe) []byte {
		var b bytes.Buffer
		if err := WriteFull(&b, generate(t, r)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	once := write(r)
	jobs := generate(t, r)
	for range jobs {
		break // a sequence that was left begins anew
	}
	var again bytes.Buffer
	if err := WriteFull(&again, jobs); err != nil || !bytes.Equal(once, again.Bytes()) {
		t.Error("the same recipe gave other jobs")
	}
	if sum := sha256.Sum256(once); runtime.GOARCH == "amd64" && hex.EncodeToString(sum[:8]) != golden {
		t.Errorf("the jobs of this seed have changed: %s", hex.EncodeToString(sum[:8]))
	}
	r.Seed++
	if bytes.Equal(once, write(r)) {
		t.Error("another seed gave the same jobs")
	}
	tr, err := read(bytes.NewReader(once), "made", Options{})
	if err != nil || len(tr.Jobs) != 5000 || tr.Counts.Bad != 0 {
		t.Fatalf("%v %v", tr, err)
	}
	balanced(t, tr)
	if diff := cmp.Diff(slices.Collect(jobs), tr.Jobs); diff != "" {
		t.Errorf("written and read: %s", diff)
	}
}

const golden = "770af5ea222b7318"

// Memory does not grow with the number of jobs.
func TestJobsAreStreamed(t *testing.T) {
	r := LikePhilly(8, 1000)
	r.Jobs, r.Tenants = 100_000, Shifts(20, 0.5)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for range generate(t, r) {
		if n++; n == r.Jobs {
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
	}
	if n != r.Jobs || after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("after %d jobs the heap grew from %d to %d bytes", n, before.HeapAlloc, after.HeapAlloc)
	}
}

func TestRecipesAreChecked(t *testing.T) {
	for want, spoil := range map[string]func(*Recipe){
		"set Jobs or Length":        func(r *Recipe) { r.Jobs = 0 },
		"set PerHour":               func(r *Recipe) { r.PerHour = math.NaN() },
		"at most 100 years":         func(r *Recipe) { r.Length = longest + 1 },
		"set both, or neither":      func(r *Recipe) { r.Burst.Every = 1 },
		"the size of 0 GPUs":        func(r *Recipe) { r.Sizes[0].GPUs = 0 },
		"begin at one second":       func(r *Recipe) { r.Durations[0].From = 0 },
		"a name of its own":         func(r *Recipe) { r.Tenants = append(r.Tenants, r.Tenants[0]) },
		"a swing from 0 to 1":       func(r *Recipe) { r.Tenants[0].Swing = 1.5 },
		"sum up to 0":               func(r *Recipe) { r.Sizes = nil },
		"and 0: each needs a sum a": func(r *Recipe) { r.Tenants = nil },
	} {
		r := LikePhilly(1, 1)
		r.Jobs = 1
		spoil(&r)
		if jobs, err := Generate(r); err == nil || jobs != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// A zero share is never drawn.
func TestNothingIsDrawnOfNoShare(t *testing.T) {
	r := LikePhilly(1, 1)
	r.Jobs = 1000
	r.Sizes = []Size{{1, 0}, {2, 1}, {3, 0}}
	for j := range generate(t, r) {
		if j.GPUs != 2 {
			t.Fatalf("%d GPUs", j.GPUs)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	r := LikePhilly(1, 1000)
	r.Jobs, r.Tenants = 1_000_000, Shifts(20, 0.5)
	for b.Loop() {
		n := 0
		for range generate(b, r) {
			n++
		}
		if n != r.Jobs {
			b.Fatal(n)
		}
	}
}

func BenchmarkReadPlain(b *testing.B) {
	r := LikePhilly(1, 1000)
	r.Jobs, r.Tenants = 1_000_000, Shifts(20, 0.5)
	var data bytes.Buffer
	if err := Write(&data, generate(b, r)); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(data.Len()))
	for b.Loop() {
		if tr, err := read(bytes.NewReader(data.Bytes()), "x", Options{}); err != nil || len(tr.Jobs) != r.Jobs {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	r := LikePhilly(1, 1000)
	r.Jobs, r.Tenants = 1_000_000, Shifts(20, 0.5)
	for b.Loop() {
		if err := Write(io.Discard, generate(b, r)); err != nil {
			b.Fatal(err)
		}
	}
}

// A file of Philly's size: 100 MB.
func BenchmarkReadPhilly(b *testing.B) {
	var data bytes.Buffer
	data.WriteString("[\n")
	gpus := `"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"`
	for i := range 117_000 {
		if i > 0 {
			data.WriteString(",\n")
		}
		fmt.Fprintf(&data, `{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_%d", "attempts": [`, i)
		for k := range 4 {
			if k > 0 {
				data.WriteString(", ")
			}
			fmt.Fprintf(&data, `{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": [{"ip": "m47", "gpus": [%s]}]}`, gpus)
		}
		data.WriteString(`], "submitted_time": "2017-10-07 01:11:39", "user": "ce2f4c"}`)
	}
	data.WriteString("\n]\n")
	b.SetBytes(int64(data.Len()))
	for b.Loop() {
		if tr, err := read(bytes.NewReader(data.Bytes()), "x", Options{}); err != nil || len(tr.Jobs) != 117_000 {
			b.Fatal(err)
		}
	}
}

// A recipe's mean demand equals the GPUs that its jobs hold in the long run.
func TestMeanDemand(t *testing.T) {
	r := LikeGavel(1, 10)
	r.Length, r.Burst = 400*cluster.Day, Burst{Every: 12 * cluster.Hour, Jobs: 20}
	jobs, err := Generate(r)
	if err != nil {
		t.Fatal(err)
	}
	var sum cluster.GPUTime
	for j := range jobs {
		sum += cluster.Times(j.GPUs, j.Runs)
	}
	got, want := r.MeanDemand(), float64(sum)/float64(r.Length)
	if math.Abs(got/want-1) > 0.02 {
		t.Errorf("%.1f GPUs on average, but the jobs hold %.1f", got, want)
	}
}
