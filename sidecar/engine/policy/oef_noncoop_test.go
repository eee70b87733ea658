package policy

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// OEF §4.2.1, eq. 9: equal throughput by weight; who has less cannot have more.
func TestNonCooperativeIsEqualUpToDemand(t *testing.T) {
	needsCLP(t)
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
					// Where speedups are all but equal, a little of others' levels buys thousands of times as
					// much of one: what rounding of all levels buys does not count.
					most := m.ceiling(t, level, l, 1e-9)
					rounding := m.ceiling(t, level, l, 2e-9) - most
					if most > level[l]*(1+1e-6)+1e-9+10*rounding {
						t.Fatalf("%d is at %v and could be at %v with nobody pushed below that; all: %v", l, level[l], most, level)
					}
				}
				if slack := audit(t, m, p).Slack; slack > 1e-6 { // levels are as exact as TestNonCooperativeIsWhatCLPFinds wants them
					t.Fatalf("the sum could rise by %v with nobody losing", slack)
				}
			})
		})
	}
}

// ceiling gives the highest level of tenant l with nobody below that which is so low already,
// or l's, by more than a part.
func (m Market) ceiling(t rapid.TB, level []float64, l int, part float64) float64 {
	t.Helper()
	k := len(m.Models)
	program := lp.New().Maximise()
	defer program.Close()
	var rows []lp.Row
	for _, model := range m.Models {
		rows = append(rows, lp.Row{Lower: -inf, Upper: model.GPUs})
	}
	var columns []lp.Column
	for i, tenant := range m.Tenants {
		rows = append(rows, lp.Row{Lower: min(level[i], level[l]) * (1 - part), Upper: inf}, lp.Row{Lower: -inf, Upper: tenant.Demand})
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
	needsCLP(t)
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

// OEF Theorem 5.4, in its valid part: a tenant that claims more than it has gains nothing.
func TestNonCooperativeDoesNotRewardInflation(t *testing.T) {
	for name, d := range map[string]taste{"weights": {weights: true}, "ordered": {ordered: true}} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := d.market(t)
				p := must(t, OEFNonCooperative, m)
				l := rapid.IntRange(0, len(m.Tenants)-1).Draw(t, "liar")
				lie := m
				lie.Tenants = slices.Clone(m.Tenants)
				lie.Tenants[l].Speedup = slices.Clone(m.Tenants[l].Speedup)
				for j := range lie.Tenants[l].Speedup {
					lie.Tenants[l].Speedup[j] *= rapid.Float64Range(1, 3).Draw(t, "by")
				}
				truth, after := m.Tenants[l].Speedup, must(t, OEFNonCooperative, lie)
				if got, had := worth(truth, after.GPUs[l]), worth(truth, p.GPUs[l]); got > had*(1+1e-8) {
					t.Fatalf("%d has %v for a lie and %v for the truth", l, got, had)
				}
			})
		})
	}
}

// OEF Theorem 5.2, where it holds: totally ordered speedups and the non-cooperative program.
func TestNonCooperativeGivesNeighbouringModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := taste{ordered: true, weights: true}.market(t)
		for l, tenant := range m.Tenants {
			for _, other := range m.Tenants[:l] {
				if slices.Equal(tenant.Speedup, other.Speedup) {
					t.Skip("two that are alike are in no order: what they have together may be divided in any way")
				}
			}
		}
		p := must(t, OEFNonCooperative, m)
		for l, part := range p.GPUs {
			first, last := -1, -1
			for j, x := range part {
				if x > 1e-7 {
					if first < 0 {
						first = j
					}
					last = j
				}
			}
			for j := first; j < last; j++ {
				if part[j] <= 1e-7 {
					t.Fatalf("%d has models %d to %d, and none of %d: %v", l, first, last, j, part)
				}
			}
		}
	})
}

// leximin raises all tenants together, and those on that can still rise. Where prices show
// that a tenant's level is held, it stays where it is.
func leximin(gpus, weight, gang, speedup []float64) ([]float64, error) {
	n, k := len(weight), len(gpus)
	level := n * k // the column
	program := lp.New().Maximise()
	defer program.Close()
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
	held, floor := make([]bool, n), make([]float64, n)
	// Levels are as exact as rounding, which puts some above the feasible: they give way by as little as helps.
	solve := func() (err error) {
		for slack := 1e-13; slack < 1e-9; slack *= 10 {
			for l := range n {
				if held[l] {
					program.SetRowBounds(2*l, floor[l]*(1-slack), inf)
				}
			}
			if err = program.Solve(lp.Dual); !errors.Is(err, lp.ErrInfeasible) {
				break
			}
		}
		return err
	}
	for left := n; left > 0; {
		if err := solve(); err != nil {
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
				held[l], floor[l] = true, at
				left--
				program.SetCoefficient(2*l, level, 0)
			}
		}
	}
	return program.Values(nil)[:level], nil
}
