package policy

// makespan minimises the time until the last job is done (Gavel §4.2):
//
//	min max_m steps_m / throughput(m, X)
//
// which is the largest smallest throughput(m, X) / steps_m: one program, and exact.
// The objective is that time, in seconds.
func makespan(d *division) error {
	need := make([]float64, len(d.p.Jobs))
	for m, j := range d.p.Jobs {
		if d.top[m] > 0 {
			need[m] = j.Steps
		}
	}
	if err := d.maxMin(need, func(m int) []float64 { return need[m : m+1] }); err != nil {
		return err
	}
	if s := d.smallest(need); s > 0 {
		d.objective = 1 / s
	}
	return nil
}
