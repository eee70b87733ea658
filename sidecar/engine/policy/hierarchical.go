package policy

import "math"

// hierarchical is max-min fairness over entities, and fairness or FIFO inside of each, by
// water filling (Gavel §4.3).
func hierarchical(d *division) error {
	members := make([][]int, len(d.p.Entities))
	for m, j := range d.p.Jobs {
		members[j.Entity] = append(members[j.Entity], m)
	}
	return d.pour(func(frozen []bool) []float64 {
		weight := make([]float64, len(d.p.Jobs))
		for e, entity := range d.p.Entities {
			sum := 0.0
			for _, m := range members[e] {
				if frozen[m] {
					continue
				}
				if entity.FIFO {
					weight[m] = entity.Weight
					break
				}
				sum += d.p.Jobs[m].Weight
			}
			for _, m := range members[e] {
				if !entity.FIFO && !frozen[m] {
					weight[m] = entity.Weight * d.p.Jobs[m].Weight / sum
				}
			}
		}
		return weight
	})
}

// fill is water filling with every job for itself (the last paragraph of §4.3).
func fill(d *division) error {
	return d.pour(func(frozen []bool) []float64 {
		weight := make([]float64, len(d.p.Jobs))
		for m, j := range d.p.Jobs {
			if !frozen[m] {
				weight[m] = j.Weight
			}
		}
		return weight
	})
}

// pour raises the levels gang_m·throughput(m, X)/throughput(m, X_equal) by weight until no
// one can be raised but at another's cost; weights says who is raised, and how fast.
// A job whose row has a price is a bottleneck: its level is the same in every
// answer with the others at theirs. So it needs no program for each job to find them. The
// objective is the smallest level of a job by its first weight.
func (d *division) pour(weights func(frozen []bool) []float64) error {
	one := d.levels(false)
	frozen, at := make([]bool, len(one)), make([]float64, len(one)) // levels
	left := 0
	for m, x := range one {
		if frozen[m] = x == 0; !frozen[m] {
			left++
		}
	}
	v := d.solve(d.space(nil))
	v.gain(func(way) float64 { return 0 })
	var first []float64
	for left > 0 {
		weight := weights(frozen)
		if first == nil {
			first = weight
		}
		need := make([]float64, len(one))
		for m, w := range weight {
			need[m] = w * one[m]
		}
		unit := v.unit(need)
		for m := range one {
			v.need(m, need[m]*unit)
		}
		v.height(1, 0, math.Inf(1))
		if err := v.above(func(m int) float64 { return at[m] * one[m] }); err != nil {
			return err
		}
		t, before := v.p.Objective()*unit, left
		for m, w := range weight {
			at[m] += w * t
			if w > 0 && -v.duals[m]*need[m]*unit/v.top[m] > 1e-7 {
				frozen[m] = true
				left--
			}
		}
		if left == before {
			break
		}
	}
	d.take(v.uses())
	d.objective = math.Inf(1)
	for m, x := range d.throughputs() {
		if len(first) > 0 && first[m] > 0 {
			d.objective = min(d.objective, x/(one[m]*first[m]))
		}
	}
	if math.IsInf(d.objective, 1) {
		d.objective = 0
	}
	return nil
}
