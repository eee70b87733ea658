package policy

// makespan minimises the time until the last job is done (Gavel §4.2):
//
//	min max_m steps_m / throughput(m, X)
//
// which is the largest smallest throughput(m, X) / steps_m: one program, and exact.
// The objective is that time, in seconds.
func makespan(d *division) error {
	need := make([]float64, len(d.in.p.Jobs))
	for m, j := range d.in.p.Jobs {
		if d.in.top[m] > 0 {
			need[m] = j.Steps
		}
	}
	rate, err := d.maxMin(need)
	if rate > 0 {
		d.objective = 1 / rate
	}
	return err
}
