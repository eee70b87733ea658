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
	Mass  []float64 // of each tenant, > 0; every model has their sum
	Own   []float64 // n×k: what a part is worth to a tenant, >= 0
	Floor []float64 // of each tenant: its minimum; the equal division has it
	Unit  []float64 // GPUs of each model in the equal division, > 0
	Cap   []float64 // GPUs that each tenant can use; +Inf = any number

	marginal []float64 // n×n: μ of row (i, l), see the package; nil = 0
	largest  float64   // above 0: no part has more GPUs, and rows read parts as the bound does
	spent    int       // iterations of the simplex
}

// budget gives the iterations that a program of n tenants is worth, in all its readings: the hardest of
// those whose numbers are measured need a third of that, and what needs more goes round.
func budget(n int) int { return 15_000 + 50*n }

// left gives the iterations before the simplex gives up.
func (p *Program) left() int { return budget(len(p.Gain)) - p.spent }

// sees gives what tenant i sees in l's part y, by the row between them.
func (p *Program) sees(i, l int, y []float64) float64 {
	n, k := p.size()
	own := row(p.Own, k, i)
	if p.largest > 0 {
		return dot(own, y) * p.fraction(i, l)
	}
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

// alike is the minimum relative difference between the worth of a GPU and μ.
const alike = 1e-10

// above gives tenant i's worth of all of model j in the equal division above μ per GPU. Nearly
// equal values give 0: that is correct for a slightly higher μ, and a row without the 1e-10 that
// this adds to μ·Cap is equivalent. As coefficients, such differences (rounding makes 1e-16 of a
// model worth exactly μ) lead CLP's scaling astray.
func (p *Program) above(i, j int, mu float64) float64 {
	_, k := p.size()
	if more := p.Own[i*k+j] - mu*p.Unit[j]; more > alike*mu*p.Unit[j] {
		return more
	}
	return 0
}

// reads sets eye to the numbers by which the row of a pair reads l's part, and gives the row's right
// side: eye·y_l - v_i <= right or, as the cap of i = l, eye·y_l <= right.
func (p *Program) reads(e pair, eye []float64) (right float64) {
	i, l := int(e.i), int(e.l)
	if i == l {
		copy(eye, p.used(i))
		return 1
	}
	n, k := p.size()
	copy(eye, row(p.Own, k, i))
	if p.largest > 0 {
		for j := range eye {
			eye[j] *= p.fraction(i, l)
		}
		return 0
	}
	if p.marginal == nil || p.marginal[i*n+l] == 0 {
		return 0
	}
	mu := p.marginal[i*n+l]
	for j := range eye {
		eye[j] = p.above(i, j, mu)
	}
	return -mu * p.Cap[i] * (1 - room)
}

// fraction gives the minimum fraction of l's part, by worth, that tenant i can use: its cap over
// the GPUs that the part has at most.
func (p *Program) fraction(i, l int) float64 {
	if has := min(p.Cap[l], p.largest); p.Cap[i] < has {
		return p.Cap[i] / has
	}
	return 1
}

// used gives the fraction of i's cap that each model of the equal division uses.
func (p *Program) used(i int) []float64 {
	part := make([]float64, len(p.Unit))
	plus(part, 1/p.Cap[i], p.Unit)
	return part
}

// limited tells whether any tenant has a finite Cap.
func (p *Program) limited() bool { return slices.Min(p.Cap) < math.Inf(1) }

// most gives a number of GPUs above that of every part of an answer. For a tenant sees in a part of
// u GPUs the worth of at least min(Cap, u) GPUs of its worst model. So it has, of its best model, that
// times the ratio of the two, and all tenants have not more than there are.
func (p *Program) most() float64 {
	n, k := p.size()
	ratio := make([]float64, n)
	byCap := make([]int, n)
	left, slope := sum(p.Mass)*sum(p.Unit), 0.0
	for i := range n {
		low, high := math.Inf(1), 0.0
		for j, w := range row(p.Own, k, i) {
			low, high = min(low, w/p.Unit[j]), max(high, w/p.Unit[j])
		}
		byCap[i], ratio[i] = i, p.Mass[i]*low/high
		slope += ratio[i]
	}
	slices.SortFunc(byCap, func(a, b int) int { return cmp.Or(cmp.Compare(p.Cap[a], p.Cap[b]), cmp.Compare(a, b)) })
	for _, i := range byCap {
		if left <= p.Cap[i]*slope {
			break
		}
		left -= p.Cap[i] * ratio[i]
		slope -= ratio[i]
	}
	if slope <= 0 {
		return math.Inf(1)
	}
	return left / slope
}

// marginals gives the μ at which each row reads the parts y as they are.
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
		worth := func(j int) float64 { return p.Own[i*k+j] / p.Unit[j] }
		slices.SortStableFunc(models, func(a, b int) int { return cmp.Compare(worth(b), worth(a)) })
		for l := range n {
			left := p.Cap[i] * (1 - 1e-10)
			for _, j := range models {
				if left -= p.Unit[j] * y[l*k+j]; left <= 0 {
					mu[i*n+l] = worth(j)
					break
				}
			}
		}
	}
	return mu
}

// Value gives the sum that the program maximises.
func (p *Program) Value(y []float64) float64 {
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
