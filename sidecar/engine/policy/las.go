package policy

// las maximises the smallest level, weight by weight (Gavel §4.1):
//
//	max min_m gang_m/w_m · throughput(m, X) / throughput(m, X_equal)
func las(d *division) (err error) {
	d.objective, err = d.maxMin(d.in.ones(true))
	return err
}

// ones gives the throughput of each job at level 1, with its weight or without; 0 for a
// job that can run nowhere.
func (g *given) ones(weighted bool) []float64 {
	need := make([]float64, len(g.p.Jobs))
	for m, j := range g.p.Jobs {
		if g.top[m] > 0 {
			need[m] = g.equal(m) / float64(j.Gang)
			if weighted {
				need[m] *= j.Weight
			}
		}
	}
	return need
}
