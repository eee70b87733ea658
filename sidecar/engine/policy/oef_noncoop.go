package policy

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// OEFNonCooperative divides the models so that all tenants have the same throughput by weight, at
// the maximum (OEF §4.2.1, eq. 9; weights §4.2.3). No tenant gains by claiming larger speedups
// than it has, by splitting its jobs into more kinds, or by adding small ones. It may gain by claiming smaller speedups,
// as it does where different kinds count as one; envy is possible, and so is a share below a
// tenant's own part of the models.
//
// A tenant's throughput is that of all its kinds together (§4.2.4); the paper has no demands. They rise by their demands, so that it
// does not matter to others how a tenant splits its jobs into kinds. If a kind cannot rise, because of its demand or
// unusable models, the tenant's other kinds do. A tenant that cannot use that much has its maximum, and the others are equal at the
// highest level above. Equal throughput becomes the lexicographic max-min, since otherwise one small tenant would hold
// all others at its level. A tenant with demands then divides its part inside, unless its kinds together would have less.
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
	f := newFilling(&m, present)
	x, err := f.raise()
	if err != nil {
		return m.fixed(present, fmt.Sprintf("no division at equal throughput was found (%v)", err)), nil
	}
	p := m.none()
	for row, of := range f.rows {
		copy(p.Kinds[of[0]][of[1]], x[row*len(m.Models):])
	}
	for _, l := range present {
		t := &m.Tenants[l]
		if !f.limited[l] { // its kinds have equal throughputs
			continue
		}
		if fair := t.inside(m.sum(p.Kinds[l])); t.has(fair) >= t.has(p.Kinds[l])*(1-1e-9) {
			p.Kinds[l] = fair
		}
	}
	m.finish(&p)
	return p, nil
}

// filling is a market in the form of package price: a kind is a job with a gang of its demand.
type filling struct {
	in       price.Instance
	rows     [][2]int // tenant and kind of each job
	entities []price.Entity
	weight   []float64    // of tenants with one kind each
	limited  map[int]bool // tenants with a kind that cannot use all there is
	equal    bool         // all tenants have one kind, which can use all there is
}

func newFilling(m *Market, present []int) *filling {
	f := &filling{equal: true, limited: map[int]bool{}}
	all := 0.0
	for _, model := range m.Models {
		f.in.GPUs = append(f.in.GPUs, model.GPUs)
		all += model.GPUs
	}
	for _, l := range present {
		kinds := m.Tenants[l].kinds()
		entity := price.Entity{Weight: m.Tenants[l].Weight}
		for i := range kinds {
			k := &kinds[i]
			if !k.uses() {
				continue
			}
			gang := min(k.Demand, all)
			entity.Jobs = append(entity.Jobs, len(f.rows))
			f.rows, f.in.Gang = append(f.rows, [2]int{l, i}), append(f.in.Gang, gang)
			for _, v := range k.Speedup {
				f.in.Speed = append(f.in.Speed, v*gang)
				f.equal = f.equal && v > 0
			}
			f.limited[l] = f.limited[l] || k.Demand < all
			f.equal = f.equal && !f.limited[l] && len(kinds) == 1
		}
		f.weight = append(f.weight, m.Tenants[l].Weight)
		f.entities = append(f.entities, entity)
	}
	return f
}

// raise gives the kinds' GPUs of each model at equal throughput of tenants by weight or, if they cannot
// all be equal, at the lexicographic maximum.
func (f *filling) raise() ([]float64, error) {
	k := len(f.in.GPUs)
	var x []float64
	if f.equal {
		a, err := price.EqualThroughput(f.in.GPUs, f.weight, f.speedups())
		return a.X, err
	}
	a, err := price.Fill(f.in, f.in.Gang, f.entities)
	for at, v := range a.X {
		x = append(x, v*f.in.Gang[at/k])
	}
	return x, err
}

// speedups gives the throughputs of one GPU.
func (f *filling) speedups() []float64 {
	out := make([]float64, len(f.in.Speed))
	for at, v := range f.in.Speed {
		out[at] = v / f.in.Gang[at/len(f.in.GPUs)]
	}
	return out
}
