package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
	"github.com/fairlease/fairlease/sidecar/engine/policy/value"
)

var inf = math.Inf(1)

// widest is how many times as large as another a tenant's speedup on a model may be. No hardware is further apart, and programs of such numbers are lost in rounding.
const widest = 1e9

// wide gives two models on which throughputs are further apart than they can be.
func wide(speed []float64) (slow, fast int, far bool) {
	slow = -1
	for j, v := range speed {
		if v > 0 && (slow < 0 || v < speed[slow]) {
			slow = j
		}
		if v > speed[fast] {
			fast = j
		}
	}
	return slow, fast, slow >= 0 && speed[fast] > widest*speed[slow]
}

// check finds the first number of the market that no program can be made of.
func (m Market) check() error {
	if len(m.Models) == 0 {
		return fmt.Errorf("market: there is no GPU model")
	}
	for _, model := range m.Models {
		if !positive(model.GPUs) {
			return fmt.Errorf("market: model %s: %v GPUs; it takes a number above 0", model.Name, model.GPUs)
		}
	}
	for _, t := range m.Tenants {
		if !sound(t.Weight) {
			return fmt.Errorf("market: tenant %s: weight %v; it takes 0 or more", t.Name, t.Weight)
		}
		for _, kind := range t.kinds() {
			if err := m.checkKind(t.Name, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m Market) checkKind(tenant string, t Kind) error {
	if len(t.Speedup) != len(m.Models) {
		return fmt.Errorf("market: tenant %s: %d speedups for %d models", tenant, len(t.Speedup), len(m.Models))
	}
	for j, w := range t.Speedup {
		if !sound(w) {
			return fmt.Errorf("market: tenant %s: speedup %v on model %s; it takes 0 or more", tenant, w, m.Models[j].Name)
		}
	}
	if slow, fast, far := wide(t.Speedup); far {
		return fmt.Errorf("market: tenant %s: speedups %v on model %s and %v on model %s; none is more than %g times another",
			tenant, t.Speedup[slow], m.Models[slow].Name, t.Speedup[fast], m.Models[fast].Name, widest)
	}
	if !sound(t.Demand) && !math.IsInf(t.Demand, 1) {
		return fmt.Errorf("market: tenant %s: a demand of %v GPUs; it takes 0 or more", tenant, t.Demand)
	}
	return nil
}

// kinds gives all kinds of a tenant's jobs.
func (t *Tenant) kinds() []Kind { return append([]Kind{t.Kind}, t.Others...) }

// uses tells whether jobs of a kind can use any GPU.
func (k *Kind) uses() bool { return k.Demand > 0 && slices.Max(k.Speedup) > 0 }

// present gives the tenants that take part: those with a weight, a demand and a usable model. The
// others get nothing, without reducing other shares.
func (m Market) present() []int {
	var in []int
	for l := range m.Tenants {
		t := &m.Tenants[l]
		if t.Weight > 0 && slices.ContainsFunc(t.kinds(), func(k Kind) bool { return k.uses() }) {
			in = append(in, l)
		}
	}
	return in
}

// share gives the part of the models that is a tenant's by weight.
func (m Market) share(l int, weights float64) []float64 {
	whole := make([]float64, len(m.Models))
	for j := range whole {
		whole[j] = m.Models[j].GPUs * m.Tenants[l].Weight / weights
	}
	return whole
}

// inside divides GPUs between a tenant's kinds, as a tenant does that has them for itself: its users share them equally, and
// the kinds of each user do, by water filling of throughputs over those of an equal part of all these GPUs (Gavel §4.3). GPUs that a
// kind cannot use go to the others of its user, then to the tenant's. So every kind has at least the throughput of its
// equal part, or all that it can use.
func (t *Tenant) inside(gpus []float64) [][]float64 {
	kinds := t.kinds()
	out := make([][]float64, len(kinds))
	var models []int
	all := 0.0
	for j, n := range gpus {
		if n > 0 {
			models, all = append(models, j), all+n
		}
	}
	var in price.Instance
	for _, j := range models {
		in.GPUs = append(in.GPUs, gpus[j])
	}
	var rows []int
	for i := range kinds {
		out[i] = make([]float64, len(gpus))
		k, mean := &kinds[i], 0.0
		for _, j := range models {
			mean += k.Speedup[j] * gpus[j] / all
		}
		if k.Demand <= 0 || mean <= 0 {
			continue
		}
		gang := min(k.Demand, all)
		rows, in.Gang = append(rows, i), append(in.Gang, gang)
		for _, j := range models {
			in.Speed = append(in.Speed, k.Speedup[j]/mean*gang)
		}
	}
	if len(rows) == 0 {
		return out
	}
	f, err := price.Fill(in, nil, group(kinds, rows))
	if err != nil { // the market's check lets no such numbers through
		return out
	}
	for row, i := range rows {
		for c, j := range models {
			out[i][j] = f.X[row*len(models)+c] * in.Gang[row]
		}
	}
	return out
}

// group gives an entity for each user of some kinds, of equal weights, in which the kinds have equal weights. Those of several users are
// one user's.
func group(kinds []Kind, rows []int) (users []price.Entity) {
	at := map[string]int{}
	for n, i := range rows {
		u, ok := at[kinds[i].User]
		if !ok {
			u = len(users)
			at[kinds[i].User] = u
			users = append(users, price.Entity{Weight: 1})
		}
		users[u].Jobs = append(users[u].Jobs, n)
	}
	return users
}

// most gives the best use of GPUs by a tenant's kinds.
func (t *Tenant) most(gpus []float64) value.Plan { return value.Of(t.uses(), gpus) }

// uses gives a tenant's kinds for package value.
func (t *Tenant) uses() []value.Kind {
	kinds := t.kinds()
	out := make([]value.Kind, len(kinds))
	for i := range kinds {
		out[i] = value.Kind{Speed: kinds[i].Speedup, Most: kinds[i].Demand}
	}
	return out
}

// weights gives the sum of the weights of some tenants.
func (m Market) weights(of []int) float64 {
	sum := 0.0
	for _, l := range of {
		sum += m.Tenants[l].Weight
	}
	return sum
}

// times gives GPUs times a factor.
func times(gpus []float64, factor float64) []float64 {
	out := make([]float64, len(gpus))
	for j, x := range gpus {
		out[j] = x * factor
	}
	return out
}

// None gives an empty answer to a market.
func None(m Market) Parts { return m.none() }

func (m Market) none() Parts {
	p := Parts{Kinds: make([][][]float64, len(m.Tenants))}
	for l := range p.Kinds {
		p.Kinds[l] = make([][]float64, 1+len(m.Tenants[l].Others))
		for i := range p.Kinds[l] {
			p.Kinds[l][i] = make([]float64, len(m.Models))
		}
	}
	p.GPUs = m.sums(p.Kinds)
	return p
}

// Fixed gives every tenant its weighted share of every model, as it divides it inside; of a market that no program can be made of,
// nothing.
func Fixed(m Market) Parts {
	if m.check() != nil {
		return m.none()
	}
	return m.fixed(m.present(), "")
}

// fixed is Fixed, and says why.
func (m Market) fixed(present []int, why string) Parts {
	p := m.none()
	for _, l := range present {
		p.Kinds[l] = m.Tenants[l].inside(m.share(l, m.weights(present)))
	}
	m.finish(&p)
	p.Why = why
	return p
}

// total gives the sum of all tenants' throughputs.
func (m Market) total(p *Parts) float64 {
	sum := 0.0
	for l := range m.Tenants {
		sum += m.Tenants[l].has(p.Kinds[l])
	}
	return sum
}

// has gives the throughput of a tenant's kinds with their parts.
func (t *Tenant) has(parts [][]float64) float64 {
	sum := 0.0
	for i, kind := range t.kinds() {
		sum += worth(kind.Speedup, parts[i])
	}
	return sum
}

// worth gives the throughput that GPUs give at a speedup.
func worth(speedup, gpus []float64) float64 {
	sum := 0.0
	for j, w := range speedup {
		sum += w * gpus[j]
	}
	return sum
}

// finish removes rounding errors from the parts of kinds, and fills in the rest of the answer: nothing is below 0, and no model and no demand
// is exceeded.
func (m Market) finish(p *Parts) {
	used := make([]float64, len(m.Models))
	for l := range m.Tenants {
		for i, kind := range m.Tenants[l].kinds() {
			part, sum := p.Kinds[l][i], 0.0
			for j, x := range part {
				part[j] = max(x, 0)
				sum += part[j]
			}
			for j := range part {
				if sum > kind.Demand {
					part[j] *= kind.Demand / sum
				}
				used[j] += part[j]
			}
		}
	}
	for j, model := range m.Models {
		if used[j] <= model.GPUs {
			continue
		}
		for _, kinds := range p.Kinds {
			for _, part := range kinds {
				part[j] *= model.GPUs / used[j]
			}
		}
	}
	p.GPUs = m.sums(p.Kinds)
	p.Objective = m.total(p)
}

// sums gives what tenants have, by the parts of their kinds.
func (m Market) sums(kinds [][][]float64) [][]float64 {
	out := make([][]float64, len(kinds))
	for l := range kinds {
		out[l] = m.sum(kinds[l])
	}
	return out
}

// sum gives what kinds have together.
func (m Market) sum(kinds [][]float64) []float64 {
	out := make([]float64, len(m.Models))
	for _, part := range kinds {
		for j, x := range part {
			out[j] += x
		}
	}
	return out
}
