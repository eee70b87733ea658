package policy

import "math"

// fifo serves who came first, on its fastest model (Gavel §4.2), n being the number of jobs:
//
//	max Σ_m (n-m) · throughput(m, X) / throughput(m, X_fastest)
func fifo(d *division) error {
	order := make([]int, len(d.in.p.Jobs))
	for m := range order {
		order[m] = m
	}
	gain := d.in.queued(order)
	if err := d.total(gain); err != nil {
		return err
	}
	d.objective = d.sum(gain)
	return nil
}

// queued gives what a step a second of each job is worth, as fifo has it, in an order.
func (g *given) queued(order []int) []float64 {
	out := make([]float64, len(order))
	for i, m := range order {
		if g.top[m] > 0 {
			out[m] = float64(len(order)-i) / g.top[m]
		}
	}
	return out
}

// total maximises Σ gain_m·throughput_m, lets nothing lie idle that is of use to anybody, however
// little it gains, and takes the answer.
func (v *solver) total(gain []float64) error {
	largest := 0.0
	for m, g := range gain {
		largest = max(largest, g*v.d.in.top[m])
	}
	if largest == 0 {
		return nil
	}
	v.gain(func(x way) float64 {
		sum := gain[v.s.rows[x.a][0]] * x.speedA
		if x.b >= 0 {
			sum += gain[v.s.rows[x.b][0]] * x.speedB
		}
		return sum / largest
	})
	if err := v.run(); err != nil {
		return err
	}
	return v.rest()
}

// rest takes the last solution, with what it leaves idle divided too.
func (v *solver) rest() error {
	for c, x := range v.p.Values(nil)[1:] {
		v.p.SetColumnBounds(1+c, max(0, x*(1-tolerance)-tolerance), math.Inf(1))
	}
	if err := v.spread(func(int) float64 { return 0 }); err != nil {
		return err
	}
	v.d.take(v.uses())
	return nil
}

// sum gives Σ gain_m·throughput_m of the shares.
func (d *division) sum(gain []float64) float64 {
	out := 0.0
	for m, v := range d.throughputs() {
		out += gain[m] * v
	}
	return out
}
