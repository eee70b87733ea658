package policy

import (
	"errors"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/lp"
	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// levels is a max-min program: the maximum of the smallest throughput_m / need_m, by job; need 0
// is for a job without demand. Jobs without pairs use prices, whose levels also maximise the
// second smallest, third smallest and so on (water filling). Pairs and gangs apart use CLP, with
// the maximum sum of throughput_m / top_m. Either way no level can rise without lowering another.
type levels struct {
	d *division
	v *solver // nil = by prices
}

// leveled begins max-min programs with needs about so. Jobs with equal keys are alike but for gangs
// and throughputs.
func (d *division) leveled(need []float64, key func(m int) []float64) levels {
	if d.in.plain() {
		return levels{d: d}
	}
	s := d.in.space(key)
	likely := d.likely(s, need)
	v := d.solve(s, need)
	begin(v, likely)
	return levels{d, v}
}

// instance is the jobs with a need as the price solver has them.
func (g *given) instance(need []float64) (in price.Instance, jobs []int) {
	for _, m := range g.p.Models {
		in.GPUs = append(in.GPUs, m.GPUs)
	}
	for m, j := range g.p.Jobs {
		if need[m] > 0 {
			jobs = append(jobs, m)
			in.Gang = append(in.Gang, float64(j.Gang))
			for _, v := range j.Speed {
				in.Speed = append(in.Speed, v/need[m])
			}
		}
	}
	return in, jobs
}

// takeX takes the price solver's answer.
func (d *division) takeX(x []float64, jobs []int) {
	k := len(d.in.p.Models)
	var out []use
	for i, v := range x {
		if v > 0 {
			out = append(out, use{a: jobs[i/k], b: -1, model: i % k, part: v})
		}
	}
	d.take(out)
}

// height gives the smallest level that can be had.
func (l levels) height(need []float64) (float64, error) {
	if l.v != nil {
		return l.v.rise(need)
	}
	in, _ := l.d.in.instance(need)
	a, err := price.MaxMin(in)
	return a.Low, err
}

// fill takes an answer with the largest smallest level.
func (l levels) fill(need []float64) error {
	if l.v == nil {
		in, jobs := l.d.in.instance(need)
		f, err := price.Fill(in, nil, nil)
		l.d.takeX(f.X, jobs)
		return err
	}
	t, err := l.v.rise(need)
	if err != nil {
		return err
	}
	if !l.d.in.o.Whole {
		if err := l.v.spread(func(m int) float64 { return need[l.v.s.rows[m][0]] * t }); err != nil {
			return err
		}
	}
	l.d.take(l.v.uses())
	return nil
}

// maxMin takes an answer with the largest smallest throughput_m / need_m, and gives that.
func (d *division) maxMin(need []float64) (float64, error) {
	if !slices.ContainsFunc(need, func(x float64) bool { return x > 0 }) {
		return 0, nil
	}
	if err := d.leveled(need, func(m int) []float64 { return need[m : m+1] }).fill(need); err != nil {
		return 0, err
	}
	smallest := math.Inf(1)
	for m, v := range d.throughputs() {
		if need[m] > 0 {
			smallest = min(smallest, v/need[m])
		}
	}
	return smallest, nil
}

// rise maximises t with throughput_m >= need_m·t, by job.
func (v *solver) rise(need []float64) (t float64, err error) {
	unit := v.unit(need)
	for m, jobs := range v.s.rows {
		v.p.SetRowBounds(m, 0, math.Inf(1))
		v.need(m, need[jobs[0]]*unit)
	}
	v.gain(func(way) float64 { return 0 })
	v.height(1, math.Inf(1))
	if err := v.run(); err != nil {
		return 0, err
	}
	if err := v.prove(need); err != nil {
		return 0, err
	}
	return v.p.Objective() * unit, nil
}

// unit is about as large as rise's t, so that the program's is about 1: what prices
// of one for every model would let it be.
func (v *solver) unit(need []float64) float64 {
	unit, cost := math.Inf(1), 0.0
	models := v.d.in.p.Models
	cheapest := make([]float64, len(v.s.rows)) // a step a second
	for m := range cheapest {
		cheapest[m] = math.Inf(1)
	}
	for _, x := range v.s.ways[:v.s.alone] {
		cheapest[x.a] = min(cheapest[x.a], v.gang(x)/models[x.model].GPUs/float64(len(models))/x.speedA)
	}
	for m, jobs := range v.s.rows {
		if n := need[jobs[0]]; n > 0 {
			cost += cheapest[m] * n * float64(len(jobs))
			unit = min(unit, v.top[m]/n)
		}
	}
	return min(unit, 1/cost)
}

// spread maximises the sum of all throughputs, each relative to that on the job's fastest model,
// with that of a job of each row at a floor at least that an earlier solution had.
func (v *solver) spread(floor func(m int) float64) error {
	v.gain(func(x way) float64 {
		sum := x.speedA / v.top[x.a]
		if x.b >= 0 {
			sum += x.speedB / v.top[x.b]
		}
		return sum
	})
	for m := range v.s.rows {
		v.need(m, 0)
	}
	v.height(0, 0)
	return v.above(floor)
}

// above solves with a floor from an earlier solution for a job of every row. If rounding made
// that infeasible, it lowers the floors as little as possible, at most by 1e-7.
func (v *solver) above(throughput func(m int) float64) error {
	for slack := 1e-11; ; slack *= 10 {
		for m := range v.s.rows {
			v.floor(m, throughput(m)*(1-slack))
		}
		if err := v.run(); !errors.Is(err, lp.ErrInfeasible) || slack > 1e-8 {
			return err
		}
	}
}
