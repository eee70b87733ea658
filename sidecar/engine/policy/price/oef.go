package price

import "fmt"

// EqualThroughput divides the GPUs of k models so that all tenants have the same
// throughput by weight, and that the largest (OEF §4.2.1, equation 9; weights §4.2.3):
// maximise E subject to Σ_j speedup_lj·x_lj = weight_l·E and Σ_l x_lj <= gpus_j.
// speedup_lj, at l·k+j, is that of one GPU; 0 = of no use. In the answer X is in GPUs,
// Level is throughput by weight, and Low and High are bounds of E, 1e-10 apart, relative.
// Tenants that can use only so many GPUs are jobs of Fill, with that number for a gang.
// Errors are as for MaxMin.
func EqualThroughput(gpus, weight, speedup []float64) (Answer, error) {
	// Nobody can use more GPUs than there are: tenants are jobs with a gang of all.
	k, all := len(gpus), 0.0
	for _, n := range gpus {
		all += n
	}
	if len(weight)*k != len(speedup) {
		return Answer{}, fmt.Errorf("%w: %d models, %d weights, %d speedups", ErrShape, k, len(weight), len(speedup))
	}
	in := Instance{GPUs: gpus, Gang: make([]float64, len(weight)), Speed: make([]float64, len(speedup))}
	for l, w := range weight {
		if !usable(w) {
			return Answer{}, fmt.Errorf("%w: tenant %d has weight %v", ErrNumber, l, w)
		}
		in.Gang[l] = all
		for j := range k {
			in.Speed[l*k+j] = all * speedup[l*k+j] / w
		}
	}
	out, err := MaxMin(in)
	for i := range out.X {
		out.X[i] *= all
	}
	return out, err
}
