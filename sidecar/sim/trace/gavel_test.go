package trace

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

func throughputs(t testing.TB) *Throughputs {
	t.Helper()
	table, err := OpenThroughputs("testdata/gavel/simulation_throughputs.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The authors' table agrees with Figure 1: the speedup of a V100 depends on the kind.
func TestThroughputs(t *testing.T) {
	table := throughputs(t)
	if want := []string{"k80", "p100", "v100"}; !slices.Equal(table.Models, want) {
		t.Errorf("models %q, want %q", table.Models, want)
	}
	tasks := table.Tasks()
	if len(tasks) != 83 || tasks[0] != (Task{"A3C", 1}) {
		t.Errorf("%d tasks, the first of them %v", len(tasks), tasks[0])
	}
	speedup := func(kind string) float64 {
		return table.Alone("v100", Task{kind, 1}, false) / table.Alone("k80", Task{kind, 1}, false)
	}
	if a, r := speedup("A3C"), speedup("ResNet-50 (batch size 64)"); a > 2.2 || r < 7 {
		t.Errorf("a V100 is %.1f times as fast for A3C and %.1f times for ResNet-50", a, r)
	}
	lm := Task{"LM (batch size 5)", 8}
	if near, far := table.Alone("v100", lm, false), table.Alone("v100", lm, true); near < 9*far || far == 0 {
		t.Errorf("LM on 8 V100: %.0f steps a second, %.0f when spread", near, far)
	}
	if v := table.Alone("k80", Task{"ResNet-50 (batch size 128)", 2}, true); v != 0 {
		t.Errorf("what is nowhere makes %v steps a second", v)
	}
	small, large := Task{"ResNet-18 (batch size 16)", 1}, Task{"ResNet-18 (batch size 128)", 1}
	a, b := table.Beside("k80", small, large)
	if b2, a2 := table.Beside("k80", large, small); a == 0 || b == 0 || math.Abs(a-a2)+math.Abs(b-b2) > 1e-9 {
		t.Errorf("%v and %v side by side, %v and %v the other way round", a, b, a2, b2)
	}
	if a, b := table.Beside("k80", lm, small); a != 0 || b != 0 {
		t.Errorf("gangs of 8 and 1 share GPUs: %v, %v", a, b)
	}
}

func TestThroughputsThatAreNone(t *testing.T) {
	for in, want := range map[string]string{
		"":                                       "x: line 1: the file ends too early",
		"{}":                                     "no task runs alone",
		"[]":                                     "x: line 1: [ instead of an object of GPU models",
		"{\"v100\":\n{\"A3C\": {}}}":             `x: line 2: "A3C" is no task`,
		"{\"v100\": {\n\n\"('A3C', 0)\": {}}}":   "x: line 3: \"('A3C', 0)\" is no task",
		`{"v100": {"('A3C', 1)": {"null": -1}}}`: "-1 steps a second",
		`{"v100": {"('A3C', 1)": {"null": 1e10}}}`:          "1e+10 steps a second",
		`{"v100": {"('A3C', 1)": {"null": "fast"}}}`:        "x: line 1: json",
		`{"v100": {"('A3C', 1)": {"('A3C', 1)": [1]}}}`:     "1 throughputs instead of two",
		`{"v100": {"('A3C', 1)": {"('A3C', 1)": [1, -2]}}}`: "-2 steps a second",
		`{"v100": {"('A3C', 1)": {}, "('A3C', 1)": {}}}`:    "is there twice",
		`{"v100": {"('A3C', 1)": {"null": 1}}} {}`:          "there is more behind",
		"{\"v100\": {\"('A3C', 1)\": {\"null\": 1},\n":      "x: line 2: the file ends too early",
		`{"_unconsolidated": {"('A3C', 1)": {"null": 1}}}`:  "a model without a name",
		"\x1f\x8b\x00": "not a whole gzip file",
		`{"v100": {"('A3C', 1)": {"null": 1, "null": 2}}}`:     "is there twice",
		`{"v100": {"('A3C', 1)": {"(A3C, 1)": [1, 2]}}}`:       "is no task",
		`{"v100": {"('A3C', 99999999)": {"null": 1}}}`:         "is no task",
		`{"v100": {"('A3C', 1)": {"null": 1}}, "v100": false}`: "is there twice",
	} {
		if _, err := readThroughputs(strings.NewReader(in), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", in, err, want)
		}
	}
}

func FuzzThroughputs(f *testing.F) {
	f.Add([]byte(`{"v100": {"('A3C', 1)": {"null": 7.2, "('A3C', 1)": [4, 4]}}, "V100_unconsolidated": {"('A3C', 1)": {"null": 7}}}`))
	f.Add([]byte("{\"k80\":\n{\"('A', 1)\": {}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := readThroughputs(bytes.NewReader(data), "x")
		if err != nil {
			return
		}
		for _, m := range table.Models {
			for _, task := range table.Tasks() {
				for _, v := range []float64{table.Alone(m, task, false), table.Alone(m, task, true)} {
					if !(v >= 0 && v <= mostSteps) {
						t.Fatalf("%s on %s makes %v steps a second", task, m, v)
					}
				}
				if again, err := parseTask(task.String()); err != nil || again != task {
					t.Fatalf("%v is read as %v: %v", task, again, err)
				}
			}
		}
	})
}

// The authors' draw with seed 0 agrees with §7.1.
func TestGavelsOwnJobs(t *testing.T) {
	for _, c := range []struct {
		file string
		jobs int
		one  float64
	}{{"single", 14000, 1}, {"multiple", 9000, 0.7}} {
		tr, err := Open("testdata/gavel/gavel_trace_"+c.file+"_seed0.csv.gz", Options{Throughputs: throughputs(t), PerHour: 5.6})
		if err != nil {
			t.Fatal(err)
		}
		balanced(t, tr)
		if len(tr.Jobs) != c.jobs || tr.Counts.Bad > 0 || tr.Format != FormatGavel {
			t.Fatalf("%s: %d jobs, %+v, %+v", c.file, len(tr.Jobs), tr.Counts, tr.Bad)
		}
		long, one := 0, 0
		for i := range tr.Jobs {
			x := math.Log10(float64(tr.Jobs[i].Runs) / float64(cluster.Minute))
			if x < 1.4999 || x > 4.0001 {
				t.Fatalf("%s: a run time of 10^%v minutes", c.file, x)
			}
			if x > 3 {
				long++
			}
			if tr.Jobs[i].GPUs == 1 {
				one++
			}
		}
		near(t, "long jobs of "+c.file, long, c.jobs, 0.2)
		near(t, "jobs of one GPU of "+c.file, one, c.jobs, c.one)
		if rate := float64(c.jobs) / hours(tr.Jobs[c.jobs-1].Submit); math.Abs(rate-5.6) > 0.2 {
			t.Errorf("%s: %.2f jobs an hour", c.file, rate)
		}
	}
}

const gavelHead = "job,job_type,scale_factor,steps,unit_arrival\n"

func TestGavelsJobsThatAreNone(t *testing.T) {
	for row, want := range map[string]string{
		"1,A3C,2,100,0\n":     "line 2: the table has no ('A3C', 2) on v100",
		"1,Chess,1,100,0\n":   "the table has no ('Chess', 1) on v100",
		"1,A3C,1,-1,0\n":      "steps \"-1\": negative",
		"1,A3C,1,1e14,0\n":    "steps: more than 100 years",
		"1,A3C,1,1,1e12\n":    "unit_arrival: more than 100 years",
		"1,A3C,1,,0\n":        "no steps",
		"1,A3C,x,1,0\n":       "scale_factor \"x\": no whole number",
		"\n1,A3C,1,1,0,0\n":   "line 3: 6 columns instead of 5",
		"1,A3C,1,many,soon\n": "steps \"many\": no number",
	} {
		tr, err := read(strings.NewReader(gavelHead+row), "x", Options{Throughputs: throughputs(t), PerHour: 1})
		if err != nil || len(tr.Jobs) > 0 || len(tr.Bad) != 1 || !strings.Contains(fmt.Sprintf("line %d: %s", tr.Bad[0].Line, tr.Bad[0].What), want) {
			t.Errorf("%q: %v, %+v; want %q", row, err, tr, want)
		}
	}
	for _, o := range []Options{{}, {Throughputs: throughputs(t)}, {PerHour: 1}, {Throughputs: throughputs(t), PerHour: math.NaN()}} {
		if _, err := read(strings.NewReader(gavelHead), "x", o); err == nil || !strings.Contains(err.Error(), "are needed") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzGavel(f *testing.F) {
	f.Add([]byte(gavelHead + "0,\"LM (batch size 5)\",2,1.5e6,0.25\n1,A3C,1,7,1\n"))
	table := throughputs(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := read(bytes.NewReader(data), "x", Options{Format: FormatGavel, Throughputs: table, PerHour: 2.5})
		if err != nil {
			return
		}
		balanced(t, tr)
		rewritten(t, tr)
	})
}

// gavelSingle gives continuous-single (§7.1): LikeGavel with jobs of one GPU.
func gavelSingle(seed uint64, perHour float64) Recipe {
	r := LikeGavel(seed, perHour)
	r.Sizes = []Size{{1, 1}}
	return r
}

// gavelStatic gives so many jobs that all exist from the start (§7.1, for makespan).
func gavelStatic(seed uint64, jobs int) Recipe {
	r := LikeGavel(seed, 1)
	r.Jobs, r.Static = jobs, true
	return r
}

// A static workload exists from the start, and every kind has only as many GPUs as it can use.
func TestGavelStatic(t *testing.T) {
	r := gavelStatic(3, 2000)
	r.Table = throughputs(t)
	n, one := 0, 0
	for j := range generate(t, r) {
		n++
		if j.GPUs == 1 {
			one++
		}
		if j.Submit != 0 || r.Table.Alone(GavelReference, Task{j.Kind, j.GPUs}, false) == 0 {
			t.Fatalf("%+v", j)
		}
	}
	if n != 2000 {
		t.Errorf("%d jobs", n)
	}
	near(t, "jobs of one GPU", one, n, 0.7)
	single := gavelSingle(3, 2)
	single.Jobs = 100
	for j := range generate(t, single) {
		if j.GPUs != 1 {
			t.Fatalf("%+v", j)
		}
	}
	r.Sizes = []Size{{3, 1}}
	if _, err := Generate(r); err == nil || !strings.Contains(err.Error(), "a size of 3 GPUs: no kind") {
		t.Errorf("gangs of 3: %v", err)
	}
	if r = gavelStatic(1, 0); r.check() == nil {
		t.Error("a static workload without an end")
	}
}
