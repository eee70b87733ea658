package policy

import (
	"cmp"
	"math"
	"slices"
)

// sjf minimises the duration of the shortest job (Gavel §4.2): min min_m steps_m /
// throughput(m, X). That says nothing of the others: they follow as in fifo, shortest
// first. The objective is the shortest duration, in seconds.
func sjf(d *division) error {
	var v *solver
	l, plain := d.lot(), d.in.plain()
	most := func(m int) float64 {
		_, throughput, _ := l.solo(m)
		return throughput
	}
	if !plain {
		v = d.solve(d.in.space(nil), nil)
		most = v.most
	}
	order, shortest := make([]int, len(d.in.p.Jobs)), make([]float64, len(d.in.p.Jobs))
	for m, j := range d.in.p.Jobs {
		order[m] = m
		shortest[m] = math.Inf(1)
		if d.in.top[m] > 0 {
			shortest[m] = j.Steps / most(m)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shortest[a], shortest[b]) })
	if len(order) == 0 || math.IsInf(shortest[order[0]], 1) {
		return nil
	}
	first, gain := order[0], d.in.queued(order)
	parts, _, sure := l.solo(first)
	if plain && sure {
		l.take(first, parts)
		l.time[first] = 0 // it can use nothing of the rest
		if err := l.sell(func(m, j int) float64 { return gain[m] * d.in.p.Jobs[m].Speed[j] }); err != nil {
			return err
		}
	} else {
		if plain { // which of its ways to the same is best for the others takes a floor
			v = d.solve(d.in.space(nil), nil)
		}
		v.floor(first, v.most(first)*(1-tolerance))
		if err := v.total(gain); err != nil {
			return err
		}
	}
	d.objective = d.in.p.Jobs[first].Steps / d.throughputs()[first]
	return nil
}

// most gives the throughput of a job that has all GPUs for itself, as a row of its own: its
// fastest ways first, each limited by its GPUs.
func (v *solver) most(m int) float64 {
	models := v.d.in.p.Models
	gpus, together := make([]float64, len(models)), make([]float64, len(models))
	for i, model := range models {
		gpus[i], together[i] = model.GPUs, model.together()
	}
	ways := slices.Clone(v.s.ways[v.s.first[m]:v.s.first[m+1]])
	slices.SortStableFunc(ways, func(a, b way) int { return cmp.Compare(b.speedA, a.speedA) })
	sum, time := 0.0, 1.0
	for _, x := range ways {
		gang := v.gang(x)
		part := min(time, gpus[x.model]/gang)
		if v.confined(x) {
			part = min(part, together[x.model]/gang)
			together[x.model] -= part * gang
		}
		gpus[x.model] -= part * gang
		time -= part
		sum += x.speedA * part
	}
	return sum
}
