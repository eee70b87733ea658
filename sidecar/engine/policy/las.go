package policy

// las maximises the smallest level, weight by weight (Gavel §4.1):
//
//	max min_m gang_m/w_m · throughput(m, X) / throughput(m, X_equal)
func las(d *division) error {
	need := d.levels(true)
	if err := d.maxMin(need, func(m int) []float64 { return need[m : m+1] }); err != nil {
		return err
	}
	d.objective = d.smallest(need)
	return nil
}

// levels gives the throughput of each job at level 1, with its weight or without; 0 for a
// job that can run nowhere.
func (d *division) levels(weighted bool) []float64 {
	need := make([]float64, len(d.p.Jobs))
	for m, j := range d.p.Jobs {
		if d.top[m] > 0 {
			need[m] = d.equal(m) / float64(j.Gang)
			if weighted {
				need[m] *= j.Weight
			}
		}
	}
	return need
}
