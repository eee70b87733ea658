package policy

// throughput maximises Σ_m throughput(m, X), steps a second of all jobs (Gavel §3.1). With
// SLOs, as far as they can be kept.
func throughput(d *division) error {
	one := make([]float64, len(d.p.Jobs))
	for m := range one {
		one[m] = 1
	}
	if err := d.total(one); err != nil {
		return err
	}
	d.objective = d.sum(one)
	return nil
}
