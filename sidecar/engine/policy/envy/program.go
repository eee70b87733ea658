package envy

import (
	"cmp"
	"math"
	"slices"
)

// Program is an instance; n tenants, k models. Everything is in units in which the equal
// division per weight is about 1: see the package.
type Program struct {
	Gain  []float64 // of each tenant, > 0
	Mass  []float64 // of each tenant, > 0; of every model there is their sum
	Own   []float64 // n×k: what a part is worth to a tenant, >= 0
	Floor []float64 // of each tenant: what it is to have at least; the equal division has it
	Unit  []float64 // GPUs of each model in the equal division, > 0
	Cap   []float64 // GPUs that each tenant can use; +Inf = any number

	marginal []float64 // n×n: μ of row (i, l), see the package; nil = 0
}

// sees gives what tenant i sees in l's part y, by the row between them.
func (p *Program) sees(i, l int, y []float64) float64 {
	n, k := p.size()
	own := row(p.Own, k, i)
	if p.marginal == nil || p.marginal[i*n+l] == 0 {
		return dot(own, y)
	}
	mu := p.marginal[i*n+l]
	sum := mu * p.Cap[i]
	for j, x := range y {
		sum += p.above(i, j, mu) * x
	}
	return sum
}

// above gives what all of model j in the equal division is worth to i above μ a GPU. Of the model
// whose worth is μ that is 0, not the rounding of a difference: a coefficient of 1e-16 leads
// CLP's scaling astray.
func (p *Program) above(i, j int, mu float64) float64 {
	_, k := p.size()
	if p.worth(i, j) <= mu {
		return 0
	}
	return p.Own[i*k+j] - mu*p.Unit[j]
}

// worth gives what a GPU of model j is worth to i.
func (p *Program) worth(i, j int) float64 {
	_, k := p.size()
	return p.Own[i*k+j] / p.Unit[j]
}

// limited tells whether anybody can use only so many GPUs.
func (p *Program) limited() bool { return slices.Min(p.Cap) < math.Inf(1) }

// alike is by how much worths differ, relatively, that marginals takes for one.
const alike = 1e-12

// marginals gives the μ at which each row reads the parts y as they are. Of models whose worths are
// alike it is that of the best.
func (p *Program) marginals(y []float64) []float64 {
	n, k := p.size()
	mu := make([]float64, n*n)
	models := make([]int, k)
	for i := range n {
		if math.IsInf(p.Cap[i], 1) {
			continue
		}
		for j := range models {
			models[j] = j
		}
		slices.SortStableFunc(models, func(a, b int) int { return cmp.Compare(p.worth(i, b), p.worth(i, a)) })
		for l := range n {
			left, last := p.Cap[i]*(1-1e-10), math.Inf(1)
			for _, j := range models {
				if w := p.worth(i, j); w < last*(1-alike) {
					last = w
				}
				if left -= p.Unit[j] * y[l*k+j]; left <= 0 {
					mu[i*n+l] = last
					break
				}
			}
		}
	}
	return mu
}

// value gives the sum that the program maximises.
func (p *Program) value(y []float64) float64 {
	sum := 0.0
	for i, g := range p.Gain {
		_, k := p.size()
		sum += g * dot(row(p.Own, k, i), row(y, k, i))
	}
	return sum
}

// size gives the numbers of tenants and of models.
func (p *Program) size() (n, k int) {
	n = len(p.Gain)
	return n, len(p.Own) / n
}

// row gives row i of a matrix of k columns.
func row(a []float64, k, i int) []float64 { return a[i*k : i*k+k : i*k+k] }

// pair is an envy row: what i sees in l's part is not more than what i has.
type pair struct{ i, l int32 }
