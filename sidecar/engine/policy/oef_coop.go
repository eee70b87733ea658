package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/envy"
)

// OEFCooperative divides the models with the maximum sum of throughputs among envy-free divisions
// (OEF §4.2.2, eq. 10):
//
//	max Σ_l w_l·x_l   with   w_i·x_i / π_i >= w_i·x_l / π_l   and   Σ_l x_lj <= m_j
//
// So no tenant has less than the throughput of its weighted share of every model (Theorem 5.1).
// Weights π act as if each tenant existed π times (§4.2.3), and need not be whole numbers:
// replicas of a tenant can have equal parts, since the mean of their parts breaks no row that the
// parts do not break.
//
// A tenant may have several kinds of jobs, with demands; in the paper (§4.2.4) they are tenants of their own, and have none. Here a row
// is a tenant's, with all its kinds: what GPUs are worth to it is what they give its kinds at best, up to their demands. And no kind
// has less throughput than if the tenant had its share by itself and divided it inside. So GPUs that a
// kind cannot use stay with its user's other kinds, and its tenant's, if these have a use for them.
//
// Speedups are measured, and none is known to 1e-6. So a kind's models whose speedups differ by
// less have one speedup, kinds whose speedups do have one taste, and each tenant may envy by as much:
// smaller differences would make a program hard for no benefit.
//
// Of more than mostTenants tenants each counts as one with the mean of its kinds.
//
// A tenant never gets more GPUs than its demand, and values only as many, the best, of another's
// part. If demands bind, the division is envy-free and gives every tenant its share's throughput,
// but its sum need not be the maximum: Bound is then an upper bound of the maximum.
//
// The error is about a market without a valid program. Without a solution the answer is the
// weighted shares, and Why says why.
func OEFCooperative(m Market) (Parts, error) {
	if err := m.check(); err != nil {
		return Parts{}, err
	}
	present := m.present()
	if len(present) == 0 {
		return m.none(), nil
	}
	known := m.known(present)
	several := slices.ContainsFunc(present, func(l int) bool { return len(m.Tenants[l].Others) > 0 })
	merged := several && len(present) > mostTenants
	if merged {
		known = known.merged()
	}
	solve := known.cooperate
	if several && !merged {
		solve = known.cooperateKinds
	}
	p, more, err := solve(present)
	if err != nil {
		return m.fixed(present, fmt.Sprintf("no division without envy was found (%v)", err)), nil
	}
	known.finish(&p)
	if most := known.worstEnvy(present, p.GPUs); !(most <= unknown) {
		return m.fixed(present, fmt.Sprintf("the division without envy is lost in rounding (%.1g)", most)), nil
	}
	if merged {
		for _, l := range present {
			p.Kinds[l] = m.Tenants[l].inside(p.GPUs[l])
		}
		m.finish(&p)
	}
	p.Gap = max(more-1, 0)
	if p.Objective = m.total(&p); more > 1+1e-4 {
		p.Bound = p.Objective * more
	}
	return p, nil
}

// mostTenants is the number of tenants up to which the kinds of each are told apart: the program of many kinds takes about a hundred
// times as long at 200.
const mostTenants = 100

// merged gives the market in which each tenant's kinds are one, with the mean of their speedups by demand.
func (m Market) merged() Market {
	m.Tenants = slices.Clone(m.Tenants)
	all := 0.0
	for _, model := range m.Models {
		all += model.GPUs
	}
	for l := range m.Tenants {
		t := &m.Tenants[l]
		one, gpus := Kind{Speedup: make([]float64, len(m.Models))}, 0.0
		for _, kind := range t.kinds() {
			one.Demand += kind.Demand
			gpus += min(kind.Demand, all)
			for j, v := range kind.Speedup {
				one.Speedup[j] += v * min(kind.Demand, all)
			}
		}
		if gpus > 0 {
			one.Speedup = times(one.Speedup, 1/gpus)
		}
		t.Kind, t.Others = one, nil
	}
	return m
}

// cooperate solves the program of tenants with one kind each. more is the upper bound over the sum.
func (m Market) cooperate(present []int) (p Parts, more float64, err error) {
	e := newEnvy(m, present)
	y, bound, err := envy.Solve(&e.program)
	if err != nil {
		return Parts{}, 0, err
	}
	p = m.none()
	for at, l := range present {
		for j := range m.Models {
			p.Kinds[l][0][j] = y[e.group[at]*len(m.Models)+j] * e.part[j] * m.Tenants[l].Weight
		}
	}
	return p, bound / e.program.Value(y), nil
}

// cooperateKinds solves the program of tenants with any number of kinds.
func (m Market) cooperateKinds(present []int) (p Parts, more float64, err error) {
	gpus := make([]float64, len(m.Models))
	for j, model := range m.Models {
		gpus[j] = model.GPUs
	}
	weights := m.weights(present)
	var tenants []envy.Tenant
	for _, l := range present {
		t := &m.Tenants[l]
		e := envy.Tenant{Weight: t.Weight, Kinds: t.uses()}
		for i, part := range t.inside(m.share(l, weights)) {
			e.Floor = append(e.Floor, worth(e.Kinds[i].Speed, part))
		}
		tenants = append(tenants, e)
	}
	x, more, err := envy.SolveKinds(gpus, tenants)
	if err != nil {
		return Parts{}, 0, err
	}
	p = m.none()
	for at, l := range present {
		p.Kinds[l] = x[at]
	}
	return p, more, nil
}

// unknown is by how much two speedups differ, relatively, that may be the same.
const unknown = 1e-6

// known replaces indistinguishable values by equal ones: a kind's models with indistinguishable
// speedups get that of the first, and kinds with indistinguishable tastes get that of the
// first. A kind's worth of its best model stays, within the tolerance.
func (m Market) known(present []int) Market {
	m.Tenants = slices.Clone(m.Tenants)
	var firsts [][]float64 // tastes, in which the best model is 1
	for _, l := range present {
		t := &m.Tenants[l]
		t.Speedup = knownSpeedup(t.Speedup, &firsts)
		t.Others = slices.Clone(t.Others)
		for i := range t.Others {
			t.Others[i].Speedup = knownSpeedup(t.Others[i].Speedup, &firsts)
		}
	}
	return m
}

func knownSpeedup(speedup []float64, firsts *[][]float64) []float64 {
	best := slices.Max(speedup)
	if best == 0 {
		return speedup
	}
	taste := make([]float64, len(speedup))
	for j, w := range speedup {
		taste[j] = w / best
		if first := slices.IndexFunc(taste[:j], func(f float64) bool { return same(taste[j], f) }); first >= 0 {
			taste[j] = taste[first]
		}
	}
	if at := slices.IndexFunc(*firsts, func(f []float64) bool { return slices.EqualFunc(f, taste, same) }); at >= 0 {
		taste = (*firsts)[at]
	} else {
		*firsts = append(*firsts, taste)
	}
	return times(taste, best)
}

// same tells whether two speedups cannot be told apart.
func same(a, b float64) bool { return math.Abs(a-b) <= unknown*min(a, b) }

// envious is a market in the form of package envy: parts are per weight, and in units of each
// model's GPUs per weight; values are in units of the worth of the tenant's share. Tenants with
// one taste and one demand per weight are one: the mean of their parts is as good for each of
// them.
type envious struct {
	program envy.Program
	group   []int     // of each of present: its row in the program
	part    []float64 // GPUs of each model per weight
}

func newEnvy(m Market, present []int) *envious {
	weights := m.weights(present)
	e := &envious{}
	all := 0.0
	for _, model := range m.Models {
		e.part = append(e.part, model.GPUs/weights)
		all += model.GPUs
	}
	p := &e.program
	p.Unit = e.part
	for _, l := range present {
		t := m.Tenants[l]
		unit := t.most(m.share(l, weights)).Worth / t.Weight // of the share, per weight
		var own []float64
		for j, w := range t.Speedup {
			own = append(own, w*e.part[j]/unit)
		}
		limit := inf
		if t.Demand < all {
			limit = t.Demand / t.Weight
		}
		g := e.alike(own, limit)
		if g < 0 {
			g = len(p.Gain)
			p.Gain, p.Mass, p.Own = append(p.Gain, 0), append(p.Mass, 0), append(p.Own, own...)
			p.Floor, p.Cap = append(p.Floor, 1), append(p.Cap, limit)
		}
		p.Gain[g] += unit * t.Weight
		p.Mass[g] += t.Weight
		e.group = append(e.group, g)
	}
	scale(p.Gain)
	scale(p.Mass)
	return e
}

// alike gives the row of the program with such values and such a limit, or -1.
func (e *envious) alike(own []float64, limit float64) int {
	k := len(own)
	for g := range e.program.Gain {
		if e.program.Cap[g] == limit && slices.EqualFunc(e.program.Own[g*k:(g+1)*k], own, func(a, b float64) bool { return math.Abs(a-b) <= 1e-13 }) {
			return g
		}
	}
	return -1
}

// scale makes the mean of positive numbers 1.
func scale(a []float64) {
	mean := worth(a, ones(len(a))) / float64(len(a))
	for i := range a {
		a[i] /= mean
	}
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }
