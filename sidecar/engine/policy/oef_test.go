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
)

// market makes one of everybody's speedups and the GPUs of each model, at weight 1 and with
// any demand.
func market(w [][]float64, gpus []float64) Market {
	var m Market
	for j, n := range gpus {
		m.Models = append(m.Models, Model{Name: fmt.Sprint("model", j), GPUs: n})
	}
	for l, row := range w {
		m.Tenants = append(m.Tenants, Tenant{Name: fmt.Sprint("tenant", l), Weight: 1, Kind: Kind{Speedup: row, Demand: math.Inf(1)}})
	}
	return m
}

// parts makes an answer of what tenants of one kind each have.
func parts(gpus [][]float64) Parts {
	p := Parts{GPUs: gpus}
	for _, part := range gpus {
		p.Kinds = append(p.Kinds, [][]float64{part})
	}
	return p
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
	needsCLP(t)
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
// demand, a model that is of no use to them, models that are nearly alike or the speedups of another, as
// it says.
type taste struct{ weights, demands, zeros, ordered, alike bool }

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
			case d.alike && rapid.Bool().Draw(t, "alike"):
				row[j] = row[j-1] * (1 + math.Pow(10, -float64(rapid.IntRange(1, 16).Draw(t, "by"))))
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

// blurred tells whether some of the market's speedups are too near to each other to be known apart.
func (m Market) blurred() bool {
	known := m.known(m.present())
	for l := range m.Tenants {
		for i, kind := range m.Tenants[l].kinds() {
			for j, w := range kind.Speedup {
				if !near(known.Tenants[l].kinds()[i].Speedup[j], w, 1e-12) {
					return true
				}
			}
		}
	}
	return false
}

func audit(t rapid.TB, m Market, p Parts) Fairness {
	t.Helper()
	f, err := Audit(m, p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestBadMarkets(t *testing.T) {
	nan := math.NaN()
	good := func() Market { return market([][]float64{{1, 2}, {1, 4}}, []float64{2, 2}) }
	for name, spoil := range map[string]func(m *Market){
		"no model":          func(m *Market) { m.Models = nil },
		"no GPUs":           func(m *Market) { m.Models[0].GPUs = 0 },
		"GPUs below 0":      func(m *Market) { m.Models[0].GPUs = -1 },
		"GPUs no number":    func(m *Market) { m.Models[0].GPUs = nan },
		"endless GPUs":      func(m *Market) { m.Models[0].GPUs = inf },
		"weight below 0":    func(m *Market) { m.Tenants[0].Weight = -1 },
		"weight no number":  func(m *Market) { m.Tenants[0].Weight = nan },
		"speedup missing":   func(m *Market) { m.Tenants[0].Speedup = []float64{1} },
		"no speedups":       func(m *Market) { m.Tenants[0].Speedup = nil },
		"speedup below 0":   func(m *Market) { m.Tenants[0].Speedup[1] = -2 },
		"speedup no number": func(m *Market) { m.Tenants[0].Speedup[1] = nan },
		"endless speedup":   func(m *Market) { m.Tenants[0].Speedup[1] = inf },
		"demand below 0":    func(m *Market) { m.Tenants[0].Demand = -1 },
		"demand no number":  func(m *Market) { m.Tenants[0].Demand = nan },
	} {
		m := good()
		spoil(&m)
		for _, divide := range []Division{OEFCooperative, OEFNonCooperative} {
			if p, err := divide(m); err == nil {
				t.Errorf("%s: got %v", name, p)
			}
		}
		if _, err := Audit(m, Parts{}); err == nil {
			t.Errorf("%s: the audit takes it", name)
		}
	}
}

// Odd but valid input: a tenant that takes no part gets nothing and takes nothing from others.
func TestOddMarkets(t *testing.T) {
	needsCLP(t)
	w := [][]float64{{1, 2}, {1, 4}, {1, 3}}
	for name, c := range map[string]struct {
		change func(m *Market)
		absent bool
	}{
		"weight 0":             {func(m *Market) { m.Tenants[2].Weight = 0 }, true},
		"demand 0":             {func(m *Market) { m.Tenants[2].Demand = 0 }, true},
		"no model is of use":   {func(m *Market) { m.Tenants[2].Speedup = []float64{0, 0} }, true},
		"one model only":       {func(m *Market) { *m = market([][]float64{{1}, {1}, {1}}, []float64{6}) }, false},
		"more models":          {func(m *Market) { *m = market([][]float64{{1, 2, 3, 4}, {1, 3, 3, 9}}, []float64{1, 2, 3, 4}) }, false},
		"one tenant":           {func(m *Market) { m.Tenants = m.Tenants[:1] }, false},
		"nobody":               {func(m *Market) { m.Tenants = nil }, false},
		"a claim of 1e9":       {func(m *Market) { m.Tenants[2].Speedup = []float64{1, 1e9} }, false},
		"claims of 1e9 of all": {func(m *Market) { m.Tenants[2].Speedup = []float64{1e9, 1e9} }, false},
		"far weights":          {func(m *Market) { m.Tenants[2].Weight = 1e-6 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := market(w, []float64{3, 5})
			c.change(&m)
			for which, divide := range []Division{OEFCooperative, OEFNonCooperative} {
				p := must(t, divide, m)
				f := audit(t, m, p)
				for i, row := range f.Envy {
					if which == 0 && (slices.Max(row) > 1+1e-8 || f.Incentive[i] < 1-1e-8) {
						t.Errorf("%d sees %v, and has %v of its share", i, row, f.Incentive[i])
					}
				}
				if f.Slack > 1e-7 {
					t.Errorf("the sum could rise by %v", f.Slack)
				}
				if c.absent {
					alone := m
					alone.Tenants = m.Tenants[:2]
					if q := must(t, divide, alone); !near(q.Objective, p.Objective, 1e-12) || slices.Max(p.GPUs[2]) > 0 {
						t.Errorf("with it %v, without %v", p, q)
					}
				}
			}
		})
	}
}
