package policy

// throughput maximises Σ_m throughput(m, X), the steps/s of all jobs (Gavel §3.1). With SLOs, it
// meets as many as possible.
func throughput(d *division) error {
	one := make([]float64, len(d.in.p.Jobs))
	for m := range one {
		one[m] = 1
	}
	if err := d.total(one); err != nil {
		return err
	}
	d.objective = d.sum(one)
	return nil
}
