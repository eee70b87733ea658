package policy

// fifo serves who came first, on its fastest model (Gavel §4.2), n being the number of jobs:
//
//	max Σ_m (n-m) · throughput(m, X) / throughput(m, X_fastest)
func fifo(d *division) error {
	order := make([]int, len(d.p.Jobs))
	for m := range order {
		order[m] = m
	}
	v := d.solve(d.space(nil))
	gain := d.queued(order)
	if err := v.total(gain); err != nil {
		return err
	}
	d.objective = d.sum(gain)
	return nil
}

// queued gives what a step a second of each job is worth, as fifo has it, in an order.
func (d *division) queued(order []int) []float64 {
	out := make([]float64, len(order))
	for i, m := range order {
		if d.top[m] > 0 {
			out[m] = float64(len(order)-i) / d.top[m]
		}
	}
	return out
}

// total maximises Σ gain_m·throughput_m, and takes the answer.
func (v *solver) total(gain []float64) error {
	largest := 0.0
	for m, g := range gain {
		largest = max(largest, g*v.d.top[m])
	}
	if largest == 0 {
		return nil
	}
	v.gain(func(x way) float64 { return v.d.sumOf(v.s, x, gain) / largest })
	if err := v.run(); err != nil {
		return err
	}
	v.d.take(v.uses())
	return nil
}

// sumOf is what a way brings, by what a step a second of each job is worth.
func (d *division) sumOf(s *space, x way, gain []float64) float64 {
	sum := gain[s.rows[x.a][0]] * x.speedA
	if x.b >= 0 {
		sum += gain[s.rows[x.b][0]] * x.speedB
	}
	return sum
}

// sum gives Σ gain_m·throughput_m of the shares.
func (d *division) sum(gain []float64) float64 {
	out := 0.0
	for m, v := range d.throughputs() {
		out += gain[m] * v
	}
	return out
}
