package price

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// gavelCase is an instance of Gavel's objectives with its certified optimum.
type gavelCase struct {
	ID      string
	Policy  string
	Workers []float64 `json:"num_workers"`
	Jobs    []struct {
		Throughput  []float64
		ScaleFactor *float64 `json:"scale_factor"`
		Weight      *float64
	}
	Entities []struct {
		Weight float64
		Policy string
		Jobs   []int
	}
	Objective json.RawMessage // a number; a list of levels for water filling
}

// instances reads a file of certified optima.
func instances[T any](t *testing.T, file string) []T {
	t.Helper()
	f, err := os.Open("../testdata/oracles/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Instances []T }
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all.Instances
}

func (c *gavelCase) number(t *testing.T) float64 {
	t.Helper()
	var v float64
	if err := json.Unmarshal(c.Objective, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func orOne(v *float64) float64 {
	if v == nil {
		return 1
	}
	return *v
}

// normalised gives the instance whose levels are Gavel's: scale factor times throughput
// over that of an equal share of every model. Agnostic: as if all throughputs were 1.
func (c *gavelCase) normalised(agnostic bool) (in Instance, weight []float64) {
	in.GPUs = c.Workers
	all := 0.0
	for _, n := range c.Workers {
		all += n
	}
	for _, j := range c.Jobs {
		s := orOne(j.ScaleFactor)
		in.Gang = append(in.Gang, s)
		weight = append(weight, orOne(j.Weight))
		equal := 0.0
		for i, v := range j.Throughput {
			equal += v * c.Workers[i] / all
		}
		for _, v := range j.Throughput {
			if agnostic {
				v, equal = 1, 1
			}
			in.Speed = append(in.Speed, s*v/equal)
		}
	}
	return in, weight
}

// weighted divides the speeds of each job by its weight.
func weighted(in Instance, weight []float64) Instance {
	k := len(in.GPUs)
	speed := make([]float64, len(in.Speed))
	for i, v := range in.Speed {
		speed[i] = v / weight[i/k]
	}
	in.Speed = speed
	return in
}

// near tells whether two numbers agree to 1e-6, relative.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want) }

func TestLASReachesTheCertifiedOptimum(t *testing.T) {
	seen := 0
	for _, c := range instances[gavelCase](t, "gavel.json.gz") {
		if c.Policy != "las_het" && c.Policy != "las_agnostic" {
			continue
		}
		seen++
		in, weight := c.normalised(c.Policy == "las_agnostic")
		got, err := MaxMin(weighted(in, weight))
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if !near(got.Low, c.number(t)) {
			t.Errorf("%s: %.12g, want %.12g", c.ID, got.Low, c.number(t))
		}
		feasible(t, in, got.X)
		if got.High-got.Low > 1e-9*got.High {
			t.Errorf("%s: between %.12g and %.12g", c.ID, got.Low, got.High)
		}
	}
	if seen != 21 {
		t.Errorf("%d instances, want 21", seen)
	}
}

// feasible fails where X takes more than there is.
func feasible(t interface {
	Errorf(string, ...any)
	Helper()
}, in Instance, x []float64) {
	t.Helper()
	k := len(in.GPUs)
	use := make([]float64, k)
	for m, s := range in.Gang {
		time := 0.0
		for j, v := range x[m*k : (m+1)*k] {
			if !(v >= 0) {
				t.Errorf("job %d has %v of its time on model %d", m, v, j)
			}
			if v > 0 && in.Speed[m*k+j] == 0 {
				t.Errorf("job %d has %v of its time on model %d, where it cannot run", m, v, j)
			}
			time += v
			use[j] += s * v
		}
		if time > 1+1e-9 {
			t.Errorf("job %d runs %v of its time", m, time)
		}
	}
	for j, n := range in.GPUs {
		if use[j] > n*(1+1e-9) {
			t.Errorf("%v of %v GPUs of model %d", use[j], n, j)
		}
	}
}

// oefCase is an instance of OEF's programs with its certified optimum.
type oefCase struct {
	ID        string
	Mode      string
	W         [][]float64
	M         []float64
	Mult      []float64 // weights; nil = all 1
	Objective float64   // the sum of throughputs
}

func TestNonCooperativeOEFReachesTheCertifiedOptimum(t *testing.T) {
	seen := 0
	for _, c := range instances[oefCase](t, "oef.json.gz") {
		if c.Mode != "noncoop" {
			continue
		}
		seen++
		weight, all := c.Mult, 0.0
		for l := range c.W {
			if c.Mult == nil {
				weight = append(weight, 1)
			}
			all += weight[l]
		}
		got, err := EqualThroughput(c.M, weight, slices.Concat(c.W...))
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if !near(got.Low*all, c.Objective) || !near(got.High*all, c.Objective) {
			t.Errorf("%s: between %.12g and %.12g, want %.12g", c.ID, got.Low*all, got.High*all, c.Objective)
		}
		checkShares(t, c.M, weight, slices.Concat(c.W...), got)
	}
	if seen != 14 {
		t.Errorf("%d instances, want 14", seen)
	}
}

func TestWaterFillingReachesTheCertifiedLevels(t *testing.T) {
	seen := 0
	for _, c := range instances[gavelCase](t, "gavel.json.gz") {
		if c.Policy != "waterfill" && c.Policy != "waterfill_hier" {
			continue
		}
		seen++
		var want []float64
		if err := json.Unmarshal(c.Objective, &want); err != nil {
			t.Fatal(err)
		}
		in, weight := c.normalised(false)
		var entities []Entity
		for _, e := range c.Entities {
			entities = append(entities, Entity{Weight: e.Weight, FIFO: e.Policy == "fifo", Jobs: e.Jobs})
		}
		got, err := Fill(in, weight, entities)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		for m := range want {
			if math.Abs(got.Level[m]-want[m]) > 1e-6*max(want[m], 1e-3) {
				t.Errorf("%s: job %d at %.12g, want %.12g", c.ID, m, got.Level[m], want[m])
			}
		}
		feasible(t, in, got.X)
		if got.Short || got.Phases > len(c.Workers) {
			t.Errorf("%s: %d phases, short: %v", c.ID, got.Phases, got.Short)
		}
	}
	if seen != 13 {
		t.Errorf("%d instances, want 13", seen)
	}
}
