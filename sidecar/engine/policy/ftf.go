package policy

import "math"

// ftf minimises the largest finish-time fairness (Gavel §4.2; Themis):
//
//	rho(m, X) = (t_m + steps_m/throughput(m, X)) / (t_m_alone + steps_m/throughput(m, X_alone))
//
// A rho is enough for all if and only if the throughputs that it takes can be had, which the
// largest smallest throughput_m / (what m needs for rho) tells: it is 1 at the optimum
// and rises with rho. It is looked for between bounds, by the false position of Illinois:
// it nears the optimum faster than by halves, to 1e-11, relative.
func ftf(d *division) error {
	n := len(d.p.Jobs)
	alone := make([]float64, n) // seconds from arrival to the end, with one nth of the cluster
	low, high := 0.0, 0.0
	for m, j := range d.p.Jobs {
		if d.top[m] > 0 {
			alone[m] = j.ElapsedAlone + j.Steps/d.alone(m)
			low = max(low, (j.Elapsed+j.Steps/d.top[m])/alone[m])
			high = max(high, (j.Elapsed+j.Steps/d.alone(m))/alone[m])
		}
	}
	if low == 0 {
		return nil // nobody runs anywhere
	}
	need := func(rho float64) []float64 {
		out := make([]float64, n)
		for m, j := range d.p.Jobs {
			if d.top[m] > 0 {
				out[m] = j.Steps / (rho*alone[m] - j.Elapsed)
			}
		}
		return out
	}
	key := func(m int) []float64 { j := d.p.Jobs[m]; return []float64{j.Steps, j.Elapsed, alone[m]} }
	v := d.solve(d.space(key))
	over := func(rho float64) (float64, error) {
		t, err := v.rise(need(rho))
		return t - 1, err
	}
	rho, err := root(over, low, high)
	if err != nil {
		return err
	}
	final := need(rho)
	t, err := v.rise(final)
	if err != nil {
		return err
	}
	if err := v.spread(final, t); err != nil {
		return err
	}
	d.take(v.uses())
	for m, x := range d.throughputs() {
		if j := d.p.Jobs[m]; d.top[m] > 0 {
			d.objective = max(d.objective, (j.Elapsed+j.Steps/x)/alone[m])
		}
	}
	return nil
}

// root gives where f, which rises, is 0, between low, where it is below, and high, where it
// is not; low itself, if it is not below there.
func root(f func(float64) (float64, error), low, high float64) (float64, error) {
	below, err := f(low)
	if err != nil || below >= -1e-12 {
		return low, err
	}
	above, err := f(high)
	if err != nil {
		return high, err
	}
	for side := 0; high-low > 1e-11*high && above > 1e-13; {
		x := high - above*(high-low)/(above-below)
		if !(x > low && x < high) {
			x = low + (high-low)/2
		}
		y, err := f(x)
		switch {
		case err != nil:
			return x, err
		case y >= 0:
			high, above = x, y
			if side > 0 {
				below /= 2
			}
			side = 1
		default:
			low, below = x, y
			if side < 0 {
				above /= 2
			}
			side = -1
		}
		if math.Abs(y) < 1e-12 {
			return x, nil
		}
	}
	return high, nil
}
