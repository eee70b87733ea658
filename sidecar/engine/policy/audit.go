package policy

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
)

// Division is a method of dividing a market.
type Division func(Market) (Parts, error)

// Fairness is an audit of a division of a market.
type Fairness struct {
	// Envy[i][l] is the throughput that l's part would give tenant i at its own weight and
	// demand, over that of i's own part: above 1, i envies l. It is 1 if i has no use for either,
	// +Inf if i has nothing and would gain.
	Envy [][]float64
	// Incentive is each tenant's throughput over that of its weighted share of every model (OEF
	// §2.3.1, sharing incentive): below 1, it would be better off alone.
	Incentive []float64
	// Slack is the relative amount by which the sum of throughputs could rise without a loser:
	// above 0, the division is not Pareto-efficient.
	Slack float64
}

// Audit measures the fairness of a division. Tenants that take no part have 1s.
func Audit(m Market, p Parts) (Fairness, error) {
	if err := m.check(); err != nil {
		return Fairness{}, err
	}
	if err := m.holds(p); err != nil {
		return Fairness{}, err
	}
	present := m.present()
	n := len(m.Tenants)
	f := Fairness{Envy: make([][]float64, n), Incentive: make([]float64, n)}
	for i := range n {
		f.Envy[i], f.Incentive[i] = ones(n), 1
	}
	weights := m.weights(present)
	for _, i := range present {
		t := m.Tenants[i]
		order := fastest(t.Speedup)
		own := t.sees(order, p.GPUs[i], 1)
		for _, l := range present {
			if l != i {
				f.Envy[i][l] = ratio(t.sees(order, p.GPUs[l], t.Weight/m.Tenants[l].Weight), own)
			}
		}
		whole, _ := m.share(i, weights)
		f.Incentive[i] = ratio(own, t.sees(order, whole, 1))
	}
	slack, err := m.slack(p)
	f.Slack = slack
	return f, err
}

// ratio gives a/b, and 1 for 0/0.
func ratio(a, b float64) float64 {
	if a == 0 && b == 0 {
		return 1
	}
	return a / b
}

// holds tells whether parts have the shape of the market and do not exceed it.
func (m Market) holds(p Parts) error {
	if len(p.GPUs) != len(m.Tenants) {
		return fmt.Errorf("audit: parts of %d tenants, %d in the market", len(p.GPUs), len(m.Tenants))
	}
	used := make([]float64, len(m.Models))
	for l, part := range p.GPUs {
		if len(part) != len(m.Models) {
			return fmt.Errorf("audit: tenant %s has parts of %d models of %d", m.Tenants[l].Name, len(part), len(m.Models))
		}
		for j, x := range part {
			if !(x >= 0) {
				return fmt.Errorf("audit: tenant %s has %v GPUs of model %s", m.Tenants[l].Name, x, m.Models[j].Name)
			}
			used[j] += x
		}
	}
	for j, model := range m.Models {
		if !(used[j] <= model.GPUs*(1+1e-9)) {
			return fmt.Errorf("audit: %v of %v GPUs of model %s are divided", used[j], model.GPUs, model.Name)
		}
	}
	return nil
}

// slack gives the relative amount by which the sum of throughputs could rise without a loser.
func (m Market) slack(p Parts) (float64, error) {
	k, now := len(m.Models), 0.0
	program := lp.New().Maximise()
	defer program.Close()
	program.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
	var rows []lp.Row
	for _, model := range m.Models {
		rows = append(rows, lp.Row{Lower: -inf, Upper: model.GPUs})
	}
	var columns []lp.Column
	for l, t := range m.Tenants {
		have, unit := t.sees(fastest(t.Speedup), p.GPUs[l], 1), max(slices.Max(t.Speedup), least)
		now += have
		less := 0.0
		if t.Demand < inf {
			less = 1e-10 // else rounding excludes what is often the only answer: the parts themselves
		}
		rows = append(rows, lp.Row{Lower: have / unit * (1 - less), Upper: inf}, lp.Row{Lower: -inf, Upper: t.Demand})
		for j, w := range t.Speedup {
			columns = append(columns, lp.Column{Upper: inf, Cost: w, Entries: []lp.Entry{{At: j, Value: 1}, {At: k + 2*l, Value: w / unit}, {At: k + 2*l + 1, Value: 1}}})
		}
	}
	program.AddRows(rows...)
	program.AddColumns(columns...)
	if err := program.Solve(lp.Presolve); err != nil {
		return 0, fmt.Errorf("audit: what could rise with nobody losing: %w", err)
	}
	if now == 0 {
		return 0, nil
	}
	return max(program.Objective()/now-1, 0), nil
}

// Misreport gives tenant l's relative gain from declaring factor times its speedups on the models
// that are faster than its slowest: its true throughput with the lie over that without, less 1.
func Misreport(divide Division, m Market, p Parts, l int, factor float64) (float64, error) {
	if l < 0 || l >= len(m.Tenants) {
		return 0, fmt.Errorf("audit: tenant %d of %d", l, len(m.Tenants))
	}
	if err := m.holds(p); err != nil {
		return 0, err
	}
	after, err := divide(m.lie(l, factor))
	if err != nil {
		return 0, err
	}
	t := m.Tenants[l]
	order := fastest(t.Speedup)
	return ratio(t.sees(order, after.GPUs[l], 1), t.sees(order, p.GPUs[l], 1)) - 1, nil
}

// lie gives the market with tenant l's speedups on all but its slowest models times factor, but
// not below that of the slowest.
func (m Market) lie(l int, factor float64) Market {
	t := m.Tenants[l]
	slowest := inf
	for _, w := range t.Speedup {
		if w > 0 {
			slowest = min(slowest, w)
		}
	}
	t.Speedup = append([]float64(nil), t.Speedup...)
	for j, w := range t.Speedup {
		if w > slowest {
			t.Speedup[j] = max(w*factor, slowest)
		}
	}
	m.Tenants = append([]Tenant(nil), m.Tenants...)
	m.Tenants[l] = t
	return m
}

// worstEnvy gives the maximum relative envy.
func (m Market) worstEnvy(present []int, gpus [][]float64) float64 {
	worst := 0.0
	for _, i := range present {
		t := m.Tenants[i]
		order := fastest(t.Speedup)
		own := t.sees(order, gpus[i], 1)
		for _, l := range present {
			if l != i {
				worst = max(worst, ratio(t.sees(order, gpus[l], t.Weight/m.Tenants[l].Weight), own)-1)
			}
		}
	}
	return worst
}
