package policy

import "math"

// ftf minimises the largest finish-time fairness (Gavel §4.2; Themis):
//
//	rho(m, X) = (t_m + steps_m/throughput(m, X)) / (t_m_alone + steps_m/throughput(m, X_alone))
//
// A rho is enough for all if and only if the throughputs that it takes can be had, which the
// largest smallest throughput_m / (what m needs for rho) tells: it is 1 at the optimum
// and rises with rho. It is looked for between bounds, by the false position of Illinois:
// it nears the optimum faster than by halves.
func ftf(d *division) error {
	n := len(d.in.p.Jobs)
	alone := make([]float64, n) // seconds from arrival to the end, with one nth of the cluster
	low, high := 0.0, 0.0
	for m, j := range d.in.p.Jobs {
		if d.in.top[m] > 0 {
			alone[m] = j.ElapsedAlone + j.Steps/d.in.alone(m)
			low = max(low, (j.Elapsed+j.Steps/d.in.top[m])/alone[m])
			high = max(high, (j.Elapsed+j.Steps/d.in.alone(m))/alone[m])
		}
	}
	if low == 0 {
		return nil // nobody runs anywhere
	}
	need := func(rho float64) []float64 {
		out := make([]float64, n)
		for m, j := range d.in.p.Jobs {
			if d.in.top[m] > 0 {
				out[m] = j.Steps / max(rho*alone[m]-j.Elapsed, j.Steps/d.in.top[m])
			}
		}
		return out
	}
	key := func(m int) []float64 { j := d.in.p.Jobs[m]; return []float64{j.Steps, j.Elapsed, alone[m]} }
	l := d.leveled(need(high), key)
	spare := func(rho float64) (float64, error) {
		h, err := l.height(need(rho))
		return h - 1, err
	}
	// Not everybody can have an nth of the cluster at once: large gangs may not fit, nor all that must be close together.
	for range 64 {
		s, err := spare(high)
		if err != nil {
			return err
		}
		if s >= 0 {
			break
		}
		low, high = max(low, high), 2*high
	}
	rho, err := root(spare, low, high)
	if err != nil {
		return err
	}
	if err := l.fill(need(rho)); err != nil {
		return err
	}
	for m, x := range d.throughputs() {
		if j := d.in.p.Jobs[m]; d.in.top[m] > 0 {
			d.objective = max(d.objective, (j.Elapsed+j.Steps/x)/alone[m])
		}
	}
	return nil
}

// root gives where f, which rises, is 0, to 1e-10, between low, where it is below, and high, where it
// is not; low itself, if it is not below there.
func root(f func(float64) (float64, error), low, high float64) (float64, error) {
	const near = 1e-10
	below, err := f(low)
	if err != nil || below >= -near {
		return low, err
	}
	above, err := f(high)
	if err != nil || above <= near {
		return high, err
	}
	side := 0
	for range 100 {
		x := high - above*(high-low)/(above-below)
		if !(x > low && x < high) {
			x = low + (high-low)/2
		}
		y, err := f(x)
		if err != nil || math.Abs(y) <= near || high-low <= near*high {
			return x, err
		}
		if y > 0 {
			high, above = x, y
			if side > 0 {
				below /= 2
			}
			side = 1
		} else {
			low, below = x, y
			if side < 0 {
				above /= 2
			}
			side = -1
		}
	}
	return high, nil
}
