package policy

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/policy/price"
)

// hierarchical is max-min fairness over entities, and fairness or FIFO inside of each, by
// water filling (Gavel §4.3) of the levels gang_m·throughput(m, X)/throughput(m, X_equal).
// The objective is the smallest level by what the job weighs at first.
func hierarchical(d *division) error {
	members := make([][]int, len(d.in.p.Entities))
	for m, j := range d.in.p.Jobs {
		if d.in.top[m] > 0 {
			members[j.Entity] = append(members[j.Entity], m)
		}
	}
	one, frozen := d.in.ones(false), make([]bool, len(d.in.p.Jobs))
	due := func() []float64 { return d.in.due(members, frozen) }
	first := due()
	if !slices.ContainsFunc(first, func(w float64) bool { return w > 0 }) {
		return nil
	}
	fill := func() error { return d.pour(one, frozen, due) }
	if d.in.plain() {
		fill = func() error { return d.entities(one, members) }
	}
	if err := fill(); err != nil {
		return err
	}
	d.objective = math.Inf(1)
	for m, x := range d.throughputs() {
		if first[m] > 0 {
			d.objective = min(d.objective, x/(one[m]*first[m]))
		}
	}
	return nil
}

// due gives the weights of the jobs that can still rise: a job has its part of its entity's
// weight, or is the first and has all of it.
func (g *given) due(members [][]int, frozen []bool) []float64 {
	weight := make([]float64, len(g.p.Jobs))
	for e, entity := range g.p.Entities {
		sum := 0.0
		for _, m := range members[e] {
			if !frozen[m] && entity.FIFO {
				weight[m] = entity.Weight
				break
			}
			if !frozen[m] {
				sum += g.p.Jobs[m].Weight
			}
		}
		for _, m := range members[e] {
			if !frozen[m] && !entity.FIFO {
				weight[m] = entity.Weight * g.p.Jobs[m].Weight / sum
			}
		}
	}
	return weight
}

// entities pours by prices.
func (d *division) entities(one []float64, members [][]int) error {
	in, jobs := d.in.instance(one)
	number, weight := make([]int, len(one)), make([]float64, len(jobs))
	for i, m := range jobs {
		number[m], weight[i] = i, d.in.p.Jobs[m].Weight
	}
	var groups []price.Entity
	for e, entity := range d.in.p.Entities {
		if len(members[e]) == 0 {
			continue
		}
		group := price.Entity{Weight: entity.Weight, FIFO: entity.FIFO}
		for _, m := range members[e] {
			group.Jobs = append(group.Jobs, number[m])
		}
		groups = append(groups, group)
	}
	f, err := price.Fill(in, weight, groups)
	d.takeX(f.X, jobs)
	return err
}

// pour raises the levels, which are throughputs over one, by due until none can rise without
// lowering another. A job whose row has a price is a bottleneck: its level is the same in every
// answer with the others at theirs. So finding bottlenecks does not need a program per job.
func (d *division) pour(one []float64, frozen []bool, due func() []float64) error {
	v := d.solve(d.in.space(nil), nil)
	v.gain(func(way) float64 { return 0 })
	at := make([]float64, len(one)) // levels
	for weight := due(); slices.ContainsFunc(weight, func(w float64) bool { return w > 0 }); weight = due() {
		need := make([]float64, len(one))
		for m, w := range weight {
			need[m] = w * one[m]
		}
		unit := v.unit(need)
		for m := range one {
			v.need(m, need[m]*unit)
		}
		v.height(1, math.Inf(1))
		if err := v.above(func(m int) float64 { return at[m] * one[m] }); err != nil {
			return err
		}
		stuck := true
		for m, w := range weight {
			at[m] += w * v.p.Objective() * unit
			if -v.duals[m]*need[m]*unit/v.scale[m] > 1e-7 { // of 1 together
				frozen[m], stuck = true, false
			}
		}
		if stuck {
			break
		}
	}
	d.take(v.uses())
	return nil
}
