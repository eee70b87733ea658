package policy

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// market makes one of everybody's speedups and the GPUs of each model, at weight 1 and with
// any demand.
func market(w [][]float64, gpus []float64) Market {
	var m Market
	for j, n := range gpus {
		m.Models = append(m.Models, Model{Name: fmt.Sprint("model", j), GPUs: n})
	}
	for l, row := range w {
		m.Tenants = append(m.Tenants, Tenant{Name: fmt.Sprint("tenant", l), Weight: 1, Speedup: row, Demand: math.Inf(1)})
	}
	return m
}

func must(t rapid.TB, divide Division, m Market) Parts {
	t.Helper()
	p, err := divide(m)
	if err != nil {
		t.Fatal(err)
	}
	if p.Why != "" {
		t.Fatalf("%s", p.Why)
	}
	if err := m.holds(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b))
}

// The certified optima of OEF's two programs.
func TestOEFReachesTheCertifiedOptimum(t *testing.T) {
	file, err := os.Open("testdata/oracles/oef.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var certified struct {
		Instances []struct {
			ID, Mode  string
			W         [][]float64
			M         []float64
			Mult      []float64
			Objective float64
		}
	}
	if err := json.NewDecoder(plain).Decode(&certified); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range certified.Instances {
		divide := map[string]Division{"coop": OEFCooperative, "noncoop": OEFNonCooperative}[c.Mode]
		if divide == nil {
			continue
		}
		seen++
		t.Run(c.ID, func(t *testing.T) {
			m := market(c.W, c.M)
			for l, weight := range c.Mult {
				m.Tenants[l].Weight = weight
			}
			if p := must(t, divide, m); !near(p.Objective, c.Objective, 1e-9) {
				t.Errorf("the sum is %.12f, not %.12f", p.Objective, c.Objective)
			}
		})
	}
	if seen < 26 {
		t.Errorf("only %d instances", seen)
	}
}

// taste draws a market of up to 12 tenants and 5 models. Some tenants have weights other than 1, a
// demand, a model that is of no use to them or the speedups of another, as it says.
type taste struct{ weights, demands, zeros, ordered bool }

func (d taste) market(t *rapid.T) Market {
	n, k := rapid.IntRange(1, 12).Draw(t, "tenants"), rapid.IntRange(1, 5).Draw(t, "models")
	var w [][]float64
	gpus := make([]float64, k)
	for j := range gpus {
		gpus[j] = float64(rapid.IntRange(1, 32).Draw(t, "gpus"))
	}
	for l := range n {
		row := make([]float64, k)
		steep := rapid.Float64Range(.2, 1).Draw(t, "steep")
		for j := range row {
			switch {
			case d.ordered:
				row[j] = math.Pow(1+.35*float64(j), steep)
			case j == 0:
				row[j] = 1
			default:
				row[j] = row[j-1] * rapid.Float64Range(1, 1.6).Draw(t, "step")
			}
		}
		if l > 0 && !d.ordered && rapid.IntRange(0, 5).Draw(t, "same") == 0 {
			row = slices.Clone(w[l-1])
		}
		if d.zeros && rapid.IntRange(0, 3).Draw(t, "useless") == 0 {
			row[rapid.IntRange(0, k-1).Draw(t, "where")] = 0
		}
		w = append(w, row)
	}
	m := market(w, gpus)
	for l := range m.Tenants {
		if d.weights {
			m.Tenants[l].Weight = float64(rapid.IntRange(1, 4).Draw(t, "weight"))
		}
		if d.demands && rapid.Bool().Draw(t, "limited") {
			m.Tenants[l].Demand = float64(rapid.IntRange(1, 20).Draw(t, "demand"))
		}
	}
	return m
}

func audit(t rapid.TB, m Market, p Parts) Fairness {
	t.Helper()
	f, err := Audit(m, p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// OEF Theorem 5.1: nobody would have another's part rather than its own, or its share of
// every model.
func TestCooperativeIsEnvyFreeWithSharingIncentive(t *testing.T) {
	for name, d := range map[string]taste{
		"weights": {weights: true}, "zeros": {weights: true, zeros: true}, "ordered": {ordered: true},
		"demands": {weights: true, demands: true}, "all": {weights: true, demands: true, zeros: true},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := d.market(t)
				p := must(t, OEFCooperative, m)
				f := audit(t, m, p)
				for i, row := range f.Envy {
					for l, x := range row {
						if x > 1+1e-9 {
							t.Fatalf("%d has %v and envies %d, whose part is %v times as good", i, p.GPUs[i], l, x)
						}
					}
					if f.Incentive[i] < 1-1e-9 {
						t.Fatalf("%d has %v of what its share would give it", i, f.Incentive[i])
					}
				}
			})
		})
	}
}

// OEF §4.2.1, eq. 9: equal throughput by weight; who has less cannot have more.
func TestNonCooperativeIsEqualUpToDemand(t *testing.T) {
	for name, d := range map[string]taste{"weights": {weights: true}, "demands": {weights: true, demands: true}, "all": {weights: true, demands: true, zeros: true}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := d.market(t)
				p := must(t, OEFNonCooperative, m)
				// Leximin: whoever is below another cannot rise even if all above it are
				// pushed down to it.
				level := make([]float64, len(m.Tenants))
				for l, tenant := range m.Tenants {
					level[l] = worth(tenant.Speedup, p.GPUs[l]) / tenant.Weight
				}
				for l := range m.Tenants {
					if most := m.ceiling(t, level, l); most > level[l]*(1+1e-6)+1e-9 {
						t.Fatalf("%d is at %v and could be at %v with nobody pushed below that; all: %v", l, level[l], most, level)
					}
				}
				if slack := audit(t, m, p).Slack; slack > 1e-7 {
					t.Fatalf("the sum could rise by %v with nobody losing", slack)
				}
			})
		})
	}
}

// ceiling gives the highest level of tenant l with nobody below that which is so low already,
// or l's.
func (m Market) ceiling(t rapid.TB, level []float64, l int) float64 {
	t.Helper()
	k := len(m.Models)
	program := lp.New()
	defer program.Close()
	program.Maximise()
	var rows []lp.Row
	for _, model := range m.Models {
		rows = append(rows, lp.Row{Lower: -inf, Upper: model.GPUs})
	}
	var columns []lp.Column
	for i, tenant := range m.Tenants {
		rows = append(rows, lp.Row{Lower: min(level[i], level[l]) * (1 - 1e-9), Upper: inf}, lp.Row{Lower: -inf, Upper: tenant.Demand})
		for j, w := range tenant.Speedup {
			c := lp.Column{Upper: inf, Entries: []lp.Entry{{At: j, Value: 1}, {At: k + 2*i, Value: w / tenant.Weight}, {At: k + 2*i + 1, Value: 1}}}
			if i == l {
				c.Cost = w / tenant.Weight
			}
			columns = append(columns, c)
		}
	}
	program.AddRows(rows...)
	program.AddColumns(columns...)
	if err := program.Solve(lp.Presolve); err != nil {
		t.Fatal(err)
	}
	return program.Objective()
}

// The solver of our own finds what CLP finds, one bottleneck after the other.
func TestNonCooperativeIsWhatCLPFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := taste{weights: true, demands: true, zeros: true}.market(t)
		p := must(t, OEFNonCooperative, m)
		var gpus, weight, gang, speedup []float64
		for _, model := range m.Models {
			gpus = append(gpus, model.GPUs)
		}
		present := m.present()
		for _, l := range present {
			tenant := m.Tenants[l]
			weight, gang, speedup = append(weight, tenant.Weight), append(gang, tenant.Demand), append(speedup, tenant.Speedup...)
		}
		x, err := leximin(gpus, weight, gang, speedup)
		if err != nil {
			t.Fatal(err)
		}
		for at, l := range present {
			k := len(gpus)
			got, want := worth(m.Tenants[l].Speedup, p.GPUs[l]), worth(m.Tenants[l].Speedup, x[at*k:at*k+k])
			if !near(got, want, 1e-6) {
				t.Fatalf("%d has %v, and %v by CLP", l, got, want)
			}
		}
	})
}

// leximin raises all tenants together, and those on that can still rise. Where prices show
// that a tenant's level is held, it stays where it is.
func leximin(gpus, weight, gang, speedup []float64) ([]float64, error) {
	n, k := len(weight), len(gpus)
	level := n * k // the column
	program := lp.New()
	defer program.Close()
	program.Maximise()
	program.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
	columns := make([]lp.Column, level+1)
	for i := range columns {
		columns[i].Upper = inf
	}
	columns[level].Cost = 1
	program.AddColumns(columns...)
	for l := range n {
		var reach, demand lp.Row
		for j := range k {
			reach.Entries = append(reach.Entries, lp.Entry{At: l*k + j, Value: speedup[l*k+j] / weight[l]})
			demand.Entries = append(demand.Entries, lp.Entry{At: l*k + j, Value: 1})
		}
		reach.Entries = append(reach.Entries, lp.Entry{At: level, Value: -1})
		reach.Upper, demand.Lower, demand.Upper = inf, -inf, gang[l]
		program.AddRows(reach, demand)
	}
	for j, m := range gpus {
		row := lp.Row{Lower: -inf, Upper: m}
		for l := range n {
			row.Entries = append(row.Entries, lp.Entry{At: l*k + j, Value: 1})
		}
		program.AddRows(row)
	}
	held := make([]bool, n)
	for left := n; left > 0; {
		if err := program.Solve(lp.Dual); err != nil {
			return nil, err
		}
		at := program.Values(nil)[level]
		price := program.Duals(nil)
		most := 0.0
		for l := range n {
			if !held[l] {
				most = max(most, math.Abs(price[2*l]))
			}
		}
		for l := range n {
			if !held[l] && math.Abs(price[2*l]) >= most*1e-6 {
				held[l] = true
				left--
				program.SetCoefficient(2*l, level, 0)
				program.SetRowBounds(2*l, at, inf)
			}
		}
	}
	return program.Values(nil)[:level], nil
}
