package policy

import (
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// OEFNonCooperative divides the models so that all tenants have the same throughput by weight, at
// the maximum (OEF §4.2.1, eq. 9; weights §4.2.3). No tenant gains by claiming larger speedups
// than it has. It may gain by claiming smaller ones; envy is possible, and so is a share below a
// tenant's own part of the models.
//
// A tenant that cannot use that much, because of its demand or unusable models, has its maximum,
// and the others are equal at the highest level above. Equal throughput becomes the lexicographic
// max-min, since otherwise one small tenant would hold all others at its level.
//
// The error is about a market without a valid program. Without a solution the answer is the
// weighted shares, and Why says why.
func OEFNonCooperative(m Market) (Parts, error) {
	if err := m.check(); err != nil {
		return Parts{}, err
	}
	present := m.present()
	if len(present) == 0 {
		return m.none(), nil
	}
	var gpus, weight, gang, speedup []float64
	all := 0.0
	for _, model := range m.Models {
		gpus = append(gpus, model.GPUs)
		all += model.GPUs
	}
	equal := true
	for _, l := range present {
		t := m.Tenants[l]
		weight = append(weight, t.Weight)
		gang = append(gang, min(t.Demand, all))
		speedup = append(speedup, t.Speedup...)
		equal = equal && t.Demand >= all && slices.Min(t.Speedup) > 0
	}
	x, err := raise(gpus, weight, gang, speedup, equal)
	if err != nil {
		return m.fixed(present, fmt.Sprintf("no division at equal throughput was found (%v)", err)), nil
	}
	p := m.none()
	for at, l := range present {
		copy(p.GPUs[l], x[at*len(gpus):])
	}
	m.fit(p.GPUs)
	p.Objective = m.total(p.GPUs)
	return p, nil
}

// raise gives the tenants' GPUs of each model at equal throughput by weight or, if they cannot
// all be equal, at the lexicographic maximum.
func raise(gpus, weight, gang, speedup []float64, equal bool) ([]float64, error) {
	if equal {
		a, err := price.EqualThroughput(gpus, weight, speedup)
		return a.X, err
	}
	// A tenant is a job with a gang of its demand.
	k := len(gpus)
	in := price.Instance{GPUs: gpus, Gang: gang, Speed: slices.Clone(speedup)}
	for at := range in.Speed {
		in.Speed[at] *= gang[at/k]
	}
	a, err := price.Fill(in, weight, nil)
	for at := range a.X {
		a.X[at] *= gang[at/k]
	}
	return a.X, err
}
