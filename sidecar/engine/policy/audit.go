package policy

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/policy/value"
)

// Division is a method of dividing a market.
type Division func(Market) (Parts, error)

// Fairness is an audit of a division of a market.
type Fairness struct {
	// Envy[i][l] is the throughput that l's part could give the jobs of tenant i at its own weight and
	// demands, over what i's own part could give them: above 1, i envies l. It is 1 if i has no use for either,
	// +Inf if i has nothing and would gain.
	Envy [][]float64
	// Incentive is each tenant's throughput, of its kinds with their parts, over what it would have of its weighted share of
	// every model, divided between its kinds as inside does (OEF §2.3.1, sharing incentive): below 1, it would be better off alone.
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
		t := &m.Tenants[i]
		kinds := t.uses()
		own := value.Of(kinds, p.GPUs[i]).Worth
		for _, l := range present {
			if l != i {
				f.Envy[i][l] = ratio(value.Of(kinds, times(p.GPUs[l], t.Weight/m.Tenants[l].Weight)).Worth, own)
			}
		}
		f.Incentive[i] = ratio(t.has(p.Kinds[i]), t.has(t.inside(m.share(i, weights))))
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
	if len(p.GPUs) != len(m.Tenants) || len(p.Kinds) != len(m.Tenants) {
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

// slack gives the relative amount by which the sum of throughputs could rise without a loser: a tenant loses if its kinds
// together have less.
func (m Market) slack(p Parts) (float64, error) {
	now := m.total(&p)
	program := lp.New().Maximise()
	defer program.Close()
	program.Set(lp.Options{PrimalTolerance: 1e-9, DualTolerance: 1e-9})
	var rows []lp.Row
	for _, model := range m.Models {
		rows = append(rows, lp.Row{Lower: -inf, Upper: model.GPUs})
	}
	var columns []lp.Column
	for l := range m.Tenants {
		t := &m.Tenants[l]
		kinds := t.kinds()
		unit, less, own := least, 0.0, len(rows)
		for _, kind := range kinds {
			unit = max(unit, slices.Max(kind.Speedup))
			if kind.Demand < inf {
				less = 1e-10 // else rounding excludes what is often the only answer: the parts themselves
			}
		}
		rows = append(rows, lp.Row{Lower: t.has(p.Kinds[l]) / unit * (1 - less), Upper: inf})
		for _, kind := range kinds {
			for j, w := range kind.Speedup {
				columns = append(columns, lp.Column{Upper: inf, Cost: w, Entries: []lp.Entry{{At: j, Value: 1}, {At: own, Value: w / unit}, {At: len(rows), Value: 1}}})
			}
			rows = append(rows, lp.Row{Lower: -inf, Upper: kind.Demand})
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
	t := &m.Tenants[l]
	return ratio(t.has(after.Kinds[l]), t.has(p.Kinds[l])) - 1, nil
}

// lie gives the market with tenant l's speedups on all but each kind's slowest models times factor, but
// not below that of the slowest.
func (m Market) lie(l int, factor float64) Market {
	t := m.Tenants[l]
	t.Kind, t.Others = t.lie(factor), slices.Clone(t.Others)
	for i := range t.Others {
		t.Others[i] = t.Others[i].lie(factor)
	}
	m.Tenants = slices.Clone(m.Tenants)
	m.Tenants[l] = t
	return m
}

// lie is as that of a market.
func (k Kind) lie(factor float64) Kind {
	slowest := inf
	for _, w := range k.Speedup {
		if w > 0 {
			slowest = min(slowest, w)
		}
	}
	k.Speedup = slices.Clone(k.Speedup)
	for j, w := range k.Speedup {
		if w > slowest {
			k.Speedup[j] = max(w*factor, slowest)
		}
	}
	return k
}

// worstEnvy gives the maximum relative envy.
func (m Market) worstEnvy(present []int, gpus [][]float64) float64 {
	worst, seen := 0.0, make([]float64, len(m.Models))
	for _, i := range present {
		t := &m.Tenants[i]
		kinds := t.uses()
		own := value.Worth(kinds, gpus[i])
		for _, l := range present {
			if l == i {
				continue
			}
			for j, n := range gpus[l] {
				seen[j] = n * (t.Weight / m.Tenants[l].Weight)
			}
			worst = max(worst, ratio(value.Worth(kinds, seen), own)-1)
		}
	}
	return worst
}
