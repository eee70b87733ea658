package policy

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// certified is an instance of Gavel's objectives with its optimum.
type certified struct {
	ID      string
	Policy  string
	Types   []string  `json:"worker_types"`
	Workers []float64 `json:"num_workers"`
	Cost    []float64
	Jobs    []struct {
		Throughput   []float64
		ScaleFactor  *int `json:"scale_factor"`
		Weight       *float64
		Steps        float64
		Elapsed      float64
		ElapsedAlone float64 `json:"elapsed_isolated"`
		Within       float64 `json:"slo_s"`
	}
	Pairs []struct {
		Jobs       [2]int
		Throughput [][2]float64
	}
	Entities []struct {
		Weight float64
		Policy string
		Jobs   []int
	}
	Objective         json.RawMessage
	ObjectiveAgnostic *float64 `json:"objective_agnostic"`
	ObjectiveAlone    *float64 `json:"objective_without_ss"`
	Shortest          *float64 `json:"sjf_objective_s"`
	MakespanPairs     *float64 `json:"makespan_ss"`
	FTFPairs          *float64 `json:"ftf_ss"`
	MakespanAlone     *float64 `json:"makespan_no_ss"`
	FTFAlone          *float64 `json:"ftf_no_ss"`
}

func oracles(t testing.TB) []certified {
	t.Helper()
	f, err := os.Open("testdata/oracles/gavel.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Instances []certified }
	if err := json.NewDecoder(z).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all.Instances
}

// problem leaves out models without workers; the pairs are there where asked for.
func (c *certified) problem(pairs bool) Problem {
	var p Problem
	there := func(all []float64) []float64 {
		var out []float64
		for j, v := range all {
			if c.Workers[j] > 0 {
				out = append(out, v)
			}
		}
		return out
	}
	for j, n := range c.Workers {
		if n > 0 {
			m := Model{Name: c.Types[j], GPUs: n}
			if c.Cost != nil {
				m.Price = c.Cost[j]
			}
			p.Models = append(p.Models, m)
		}
	}
	for i, j := range c.Jobs {
		job := Job{ID: int64(1 + i), Gang: 1, Weight: 1, Speed: there(j.Throughput), Steps: j.Steps,
			Elapsed: j.Elapsed, ElapsedAlone: j.ElapsedAlone, Within: j.Within}
		if j.ScaleFactor != nil {
			job.Gang = *j.ScaleFactor
		}
		if j.Weight != nil {
			job.Weight = *j.Weight
		}
		p.Jobs = append(p.Jobs, job)
	}
	if pairs {
		for _, q := range c.Pairs {
			var a, b []float64
			for _, v := range q.Throughput {
				a, b = append(a, v[0]), append(b, v[1])
			}
			p.Pairs = append(p.Pairs, Pair{A: q.Jobs[0], B: q.Jobs[1], SpeedA: there(a), SpeedB: there(b)})
		}
	}
	for e, x := range c.Entities {
		p.Entities = append(p.Entities, Entity{Name: fmt.Sprint(e), Weight: x.Weight, FIFO: x.Policy == "fifo"})
		for _, m := range x.Jobs {
			p.Jobs[m].Entity = e
		}
	}
	return p
}

func (c *certified) optimum(t *testing.T) float64 {
	var v float64
	if err := json.Unmarshal(c.Objective, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// solved divides, and looks whether the shares are feasible.
func solved(t testing.TB, name string, p Problem) Shares {
	t.Helper()
	s, err := Gavel(name, p, Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if why := infeasible(p, s); why != "" {
		t.Fatalf("%s: %s", name, why)
	}
	return s
}

// infeasible says which constraint shares break.
func infeasible(p Problem, s Shares) string {
	time, gpus := make([]float64, len(p.Jobs)), make([]float64, len(p.Models))
	use := func(x float64, j int, jobs ...int) string {
		if !(x >= 0 && x <= 1) {
			return fmt.Sprintf("a share of %v", x)
		}
		gpus[j] += x * float64(p.Jobs[jobs[0]].Gang)
		for _, m := range jobs {
			time[m] += x
		}
		return ""
	}
	for m, row := range s.Time {
		for j, x := range row {
			if why := use(x, j, m); why != "" {
				return why
			}
			if x > 0 && p.Jobs[m].Speed[j] == 0 {
				return fmt.Sprintf("job %d gets %v of model %d, where it cannot run", m, x, j)
			}
		}
	}
	for m, row := range s.Apart {
		for j, x := range row {
			if why := use(x, j, m); why != "" {
				return why
			}
		}
	}
	for i, row := range s.PairTime {
		for j, x := range row {
			if why := use(x, j, p.Pairs[i].A, p.Pairs[i].B); why != "" {
				return why
			}
		}
	}
	for m, x := range time {
		if x > 1+1e-12 {
			return fmt.Sprintf("job %d runs %v of the time", m, x)
		}
	}
	for j, x := range gpus {
		if x > p.Models[j].GPUs*(1+1e-12) {
			return fmt.Sprintf("model %d: %v of %v GPUs", j, x, p.Models[j].GPUs)
		}
	}
	return ""
}

func reaches(t *testing.T, what string, s Shares, want float64) {
	t.Helper()
	if s.Why != "" || math.Abs(s.Objective-want) > 1e-6*math.Abs(want) {
		t.Errorf("%s: %.12g, the optimum is %.12g (%s)", what, s.Objective, want, s.Why)
	}
}

// fills compares levels, which are unique.
func fills(t *testing.T, d *division, s Shares, want []float64) {
	t.Helper()
	one := d.in.ones(false)
	for m, x := range achieved(d.in.p, s) {
		if got := x / one[m]; math.Abs(got-want[m]) > 1e-6*max(1e-3, want[m]) {
			t.Errorf("job %d: level %.10g, want %.10g", m, got, want[m])
		}
	}
}

// Every objective reaches its certified optimum, to 1e-6.
func TestCertifiedOptima(t *testing.T) {
	needsCLP(t)
	seen := map[string]int{}
	for _, c := range oracles(t) {
		t.Run(c.ID, func(t *testing.T) {
			seen[c.Policy]++
			p := c.problem(false)
			switch c.Policy {
			case "las_het":
				reaches(t, "las", solved(t, "las", p), c.optimum(t))
				if c.ObjectiveAgnostic != nil {
					reaches(t, "las-blind", solved(t, "las-blind", p), *c.ObjectiveAgnostic)
				}
			case "las_agnostic":
				reaches(t, "las-blind", solved(t, "las-blind", p), c.optimum(t))
			case "las_het_ss":
				both := c.problem(true)
				reaches(t, "las with pairs", solved(t, "las", both), c.optimum(t))
				reaches(t, "las", solved(t, "las", p), *c.ObjectiveAlone)
				if c.FTFPairs != nil {
					reaches(t, "ftf with pairs", solved(t, "ftf", both), *c.FTFPairs)
					reaches(t, "ftf", solved(t, "ftf", p), *c.FTFAlone)
					reaches(t, "makespan with pairs", solved(t, "makespan", both), *c.MakespanPairs)
					reaches(t, "makespan", solved(t, "makespan", p), *c.MakespanAlone)
				}
			case "ftf", "makespan":
				reaches(t, c.Policy, solved(t, c.Policy, p), c.optimum(t))
			case "fifo":
				reaches(t, "fifo", solved(t, "fifo", p), c.optimum(t))
				reaches(t, "sjf", solved(t, "sjf", p), *c.Shortest)
			case "max_total_throughput":
				reaches(t, "throughput", solved(t, "throughput", p), c.optimum(t))
			case "max_sum_thr_over_cost":
				reaches(t, "cost-sum", solved(t, "cost-sum", p), c.optimum(t))
			case "max_sum_thr_over_cost_slo":
				reaches(t, "cost-sum-slo", solved(t, "cost-sum-slo", p), c.optimum(t))
			case "cost_family":
				var want map[string]*float64
				if err := json.Unmarshal(c.Objective, &want); err != nil {
					t.Fatal(err)
				}
				for key, name := range map[string]string{"max_total_throughput": "throughput", "max_total_throughput_slo": "throughput-slo",
					"sum_thr_over_cost": "cost-sum", "sum_thr_over_cost_slo": "cost-sum-slo", "ratio_thr_per_cost": "cost",
					"ratio_thr_per_cost_slo": "cost-slo", "min_cost_rate_meeting_slo": "cost-least-slo"} {
					s := solved(t, name, p)
					if want[key] == nil {
						if len(s.Late) == 0 {
							t.Errorf("%s: no job is late, and not all SLOs can be kept", name)
						}
						continue
					}
					if len(s.Late) > 0 {
						t.Errorf("%s: %v are late, and all SLOs can be kept", name, s.Late)
					}
					reaches(t, name, s, *want[key])
				}
			case "waterfill", "waterfill_hier":
				name := map[string]string{"waterfill": "las", "waterfill_hier": "hierarchical"}[c.Policy]
				var want []float64
				if err := json.Unmarshal(c.Objective, &want); err != nil {
					t.Fatal(err)
				}
				d := newDivision(p, Options{}, false)
				if c.Policy == "waterfill" { // with nothing but weights, one entity is none
					p.Entities = []Entity{{Weight: 1}}
					fills(t, d, solved(t, "hierarchical", p), want)
				}
				fills(t, d, solved(t, name, p), want)
				// And so by CLP, which pairs and gangs apart go to.
				s, err := Gavel("hierarchical", p, Options{Whole: true})
				if err != nil || s.Why != "" {
					t.Fatal(err, s.Why)
				}
				fills(t, d, s, want)
			case "rounds":
			default:
				t.Errorf("nothing tests %s", c.Policy)
			}
		})
	}
	if len(seen) != 13 || slices.Contains([]int{seen["las_het"], seen["ftf"], seen["las_het_ss"]}, 0) {
		t.Errorf("instances: %v", seen)
	}
}
