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
	order, shortest := make([]int, len(d.p.Jobs)), make([]float64, len(d.p.Jobs))
	v := d.solve(d.space(nil))
	for m, j := range d.p.Jobs {
		order[m] = m
		shortest[m] = math.Inf(1)
		if d.top[m] > 0 {
			shortest[m] = j.Steps / v.most(m)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shortest[a], shortest[b]) })
	if len(order) == 0 || math.IsInf(shortest[order[0]], 1) {
		return nil
	}
	first := order[0]
	v.floor(first, v.most(first))
	if err := v.total(d.queued(order)); err != nil {
		return err
	}
	d.objective = d.p.Jobs[first].Steps / Throughputs(d.p, d.shares())[first]
	return nil
}

// most gives the throughput of a job that has all GPUs for itself, as a row of its own: its fastest
// models first, each as far as its GPUs go.
func (v *solver) most(m int) float64 {
	j := &v.d.p.Jobs[m]
	order := make([]int, len(j.Speed))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(j.Speed[b], j.Speed[a]) })
	sum, time := 0.0, 1.0
	for _, i := range order {
		x := min(time, v.d.p.Models[i].GPUs/float64(j.Gang))
		sum += j.Speed[i] * x
		time -= x
	}
	return sum
}
