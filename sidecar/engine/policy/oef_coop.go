package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/envy"
)

// OEFCooperative divides the models so that the sum of throughputs is the largest at which
// nobody would rather have another's part (OEF §4.2.2, eq. 10):
//
//	max Σ_l w_l·x_l   with   w_i·x_i / π_i >= w_i·x_l / π_l   and   Σ_l x_lj <= m_j
//
// So nobody has less than its share by weight of every model is worth to it (Theorem
// 5.1). Weights π are as if each tenant were there π times (§4.2.3), and need not be whole
// numbers: replicas of a tenant can have equal parts, since the mean of their parts
// breaks no row that the parts do not break.
//
// A tenant never gets more GPUs than its demand d. Where d is below what its share is in
// GPUs, it sees in another's part only what it could use: envy over the best d GPUs of a part
// is not linear, but for the speedup μ of the worst model that it would use of its share,
//
//	μ·d + Σ_j max(w_j - μ, 0)·x_j  >=  the best d of x for it,
//
// with = for the share itself; so the equal division stays possible.
//
// The error is of a market that no program can be made of. Where there is no solution the
// answer is everybody's share, and Why says why.
func OEFCooperative(m Market) (Parts, error) {
	if err := m.check(); err != nil {
		return Parts{}, err
	}
	present := m.present()
	if len(present) == 0 {
		return m.none(), nil
	}
	e := newEnvy(m, present)
	y, err := envy.Solve(&e.program)
	if err != nil {
		return m.fixed(present, fmt.Sprintf("no division without envy was found (%v)", err)), nil
	}
	p := m.none()
	for at, l := range present {
		for j := range m.Models {
			p.GPUs[l][j] = y[e.group[at]*len(m.Models)+j] * e.part[j] * m.Tenants[l].Weight
		}
	}
	m.fit(p.GPUs)
	if most := m.worstEnvy(present, p.GPUs); !(most <= 1e-8) {
		return m.fixed(present, fmt.Sprintf("the division without envy is lost in rounding (%.1g)", most)), nil
	}
	p.Objective = m.total(p.GPUs)
	return p, nil
}

// envious is a market as package envy takes it: parts are per weight, and in units of each
// model's GPUs per weight; values are in units of what the share is worth to a tenant. Tenants
// of one taste and one demand by weight are one: the mean of their parts is as good to
// each of them.
type envious struct {
	program envy.Program
	present []int
	group   []int     // of each of present: its row in the program
	part    []float64 // GPUs of each model per weight
}

func newEnvy(m Market, present []int) *envious {
	weights := m.weights(present)
	e := &envious{present: present}
	all := 0.0
	for _, model := range m.Models {
		e.part = append(e.part, model.GPUs/weights)
		all += model.GPUs / weights
	}
	p := &e.program
	p.Unit = e.part
	for _, l := range present {
		t := m.Tenants[l]
		_, used := m.share(l, weights)
		unit := worth(t.Speedup, used) / t.Weight // of the share, per weight
		demand, marginal := math.Inf(1), 0.0
		if t.Demand/t.Weight < all {
			demand = t.Demand / t.Weight
			marginal = math.Inf(1)
			for j, x := range used {
				if x > 0 {
					marginal = min(marginal, t.Speedup[j])
				}
			}
			if total := worth(used, ones(len(used))); total < t.Demand*(1-1e-12) {
				marginal = 0 // the rest of the share is of no use
			}
		}
		var own, eye []float64
		for j, w := range t.Speedup {
			own = append(own, w*e.part[j]/unit)
			eye = append(eye, max(w-marginal, 0)*e.part[j]/unit)
		}
		limit := t.Demand / t.Weight
		if limit >= all*weights/t.Weight {
			limit = math.Inf(1)
		}
		gain := unit * t.Weight
		if g := e.alike(own, limit); g >= 0 {
			p.Gain[g] += gain
			p.Mass[g] += t.Weight
			e.group = append(e.group, g)
			continue
		}
		e.group = append(e.group, len(p.Gain))
		base := 0.0
		if marginal > 0 {
			base = marginal * demand / unit
		}
		p.Gain, p.Mass = append(p.Gain, gain), append(p.Mass, t.Weight)
		p.Own, p.Eye = append(p.Own, own...), append(p.Eye, eye...)
		p.Base, p.Floor, p.Cap = append(p.Base, base), append(p.Floor, 1), append(p.Cap, limit)
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
