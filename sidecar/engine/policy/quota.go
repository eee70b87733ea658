package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Quota divides total (MicroGPU) by weight (ASTRAEA eq. 6: Quota_j = M·W_j/ΣW).
// The parts are in the order of the weights and sum to total exactly: what
// rounding leaves goes, a millionth each, to the largest remainders, ties to
// the earlier. Nobody gets anything where all weights are 0.
func Quota(total cluster.MicroGPU, weights []int64) []cluster.MicroGPU {
	parts := make([]cluster.MicroGPU, len(weights))
	weights, sum := summable(weights)
	if sum == 0 || total <= 0 {
		return parts
	}
	type rest struct {
		i   int
		rem int64
	}
	rests := make([]rest, 0, len(weights))
	left := total
	for i, w := range weights {
		if w == 0 {
			continue
		}
		part := cluster.MulDiv(int64(total), w, sum)
		parts[i] = cluster.MicroGPU(part)
		left -= parts[i]
		rests = append(rests, rest{i, remainder(int64(total), w, sum, part)})
	}
	if left > 0 {
		slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.rem, a.rem) })
	}
	for k := 0; left > 0; k++ {
		parts[rests[k%len(rests)].i]++
		left--
	}
	return parts
}

// summable gives the weights, negative ones as 0, with their sum. Should that not
// fit in 64 bits all weights are cut by the same power of two.
func summable(weights []int64) ([]int64, int64) {
	fit := make([]int64, len(weights))
	shift := 0
	for {
		var sum uint64
		for i, w := range weights {
			fit[i] = max(w, 0) >> shift
			if sum += uint64(fit[i]); sum > math.MaxInt64 {
				break
			}
		}
		if sum <= math.MaxInt64 {
			return fit, int64(sum)
		}
		shift++
	}
}

// remainder gives total*w - part*sum; it is below sum, so wrapping cannot hurt.
func remainder(total, w, sum, part int64) int64 {
	return int64(uint64(total)*uint64(w) - uint64(part)*uint64(sum))
}
