package price

import (
	"math"
	"slices"
)

// EqualThroughput divides the GPUs of k models so that all tenants have the same
// throughput by weight, and that the largest (OEF §4.2.1, equation 9; weights §4.2.3):
// maximise E subject to Σ_j speedup_lj·x_lj = weight_l·E and Σ_l x_lj <= gpus_j.
// speedup_lj, at l·k+j, is that of one GPU; 0 = of no use. In the answer X is in GPUs,
// Level is throughput by weight, and Low and High are bounds of E, 1e-9 apart at most, relative.
// Tenants that can use only so many GPUs are jobs of Fill, with that number for a gang.
// Errors are as for MaxMin.
func EqualThroughput(gpus, weight, speedup []float64) (Answer, error) {
	in := Instance{GPUs: gpus, Gang: weight, Speed: speedup}
	if err := in.check(); err != nil {
		return Answer{}, err
	}
	k := len(gpus)
	like, weights, rows := group(k, weight, speedup)
	b := newBuyers(k, weights, rows)
	near := sample(gpus, weights, rows, math.Inf(1), func(weight, speedup []float64) ([]float64, look) {
		some := newBuyers(k, weight, speedup)
		return some.use, some.ask
	})
	var goods [][]uint8 // of each column
	s := search(gpus, math.Inf(1), certified, near, b.use, b.ask, func() { goods = append(goods, slices.Clone(b.good)) })
	x := make([]float64, len(rows))
	s.mixed(func(i int, share float64) {
		for l, j := range goods[i] {
			x[l*k+int(j)] += share * s.at[i] * b.need[l*k+int(j)]
		}
	})
	out := Answer{X: make([]float64, len(speedup)), High: s.high, Rounds: s.rounds}
	for l, g := range like {
		for j := range k {
			out.X[l*k+j] = x[g*k+j] * weight[l] / weights[g]
		}
	}
	out.share(in)
	return out, out.proves()
}

// share is finish where X is GPUs and the gangs are weights.
func (a *Answer) share(in Instance) {
	k := len(in.GPUs)
	use := make([]float64, k)
	for i, v := range a.X {
		use[i%k] += v
	}
	a.fit(in, use, 1)
	a.Low = math.Inf(1)
	for l, w := range in.Gang {
		a.Level[l] /= w
		a.Low = min(a.Low, a.Level[l])
	}
	a.High = max(a.High, a.Low)
}
