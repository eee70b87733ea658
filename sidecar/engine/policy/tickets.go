package policy

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Claim is what a tenant wants of the GPUs that tickets divide.
type Claim struct {
	Weight int64 // its tickets; only ratios matter. 0 = nothing but idle GPUs
	// Pinned is how many GPUs the jobs want that name a model, for each model.
	Pinned []cluster.MicroGPU
	// Free is how many the other jobs want, wherever that is.
	Free cluster.MicroGPU
	// May says on which models the other jobs can run; nil = on all.
	May []bool
}

// Part is what a tenant is due of a model, and what for. Due ≥ Pinned + Free: the rest is
// what nobody wants.
type Part struct {
	Due    cluster.MicroGPU
	Pinned cluster.MicroGPU // for jobs that name the model
	Free   cluster.MicroGPU // for the others: this is what can be traded
}

// Tickets divides the GPUs of every model between tenants by their tickets
// (Gandiva_fair §2.1, §3.2): everybody has the same share of every model, and
// what a tenant does not want of its share goes to the others by tickets. gpus are by
// model, the newest first: jobs that can run anywhere take what their tenant is due of
// the newest, then of the next (§3.4), and each GPU that they want counts once. The
// answer is by claim, then model, and adds up to the GPUs of each model exactly, unless
// no claim has a weight.
func Tickets(gpus []cluster.MicroGPU, claims []Claim) [][]Part {
	weights, wants := make([]int64, len(claims)), make([]cluster.MicroGPU, len(claims))
	open := make([]cluster.MicroGPU, len(claims))
	parts := make([][]Part, len(claims))
	for i := range claims {
		weights[i], open[i] = claims[i].Weight, max(claims[i].Free, 0)
		parts[i] = make([]Part, len(gpus))
	}
	for m := range gpus {
		for i := range claims {
			wants[i] = claims[i].pinned(m)
			if may := claims[i].May; may == nil || m < len(may) && may[m] {
				wants[i] += open[i]
			}
		}
		for i, due := range Readjust(gpus[m], weights, wants) {
			pinned := min(due, claims[i].pinned(m))
			free := min(due, wants[i]) - pinned
			parts[i][m] = Part{due, pinned, free}
			open[i] -= free
		}
	}
	return parts
}

func (c *Claim) pinned(m int) cluster.MicroGPU {
	if m >= len(c.Pinned) {
		return 0
	}
	return max(c.Pinned[m], 0)
}

// Readjust divides total by weight among tenants of whom nobody wants more than wants:
// who wants less than its share gets that, and the others share the rest (the weight
// readjustment of Chandra and Shenoy that Gandiva_fair §3.2 uses). What nobody wants
// is everybody's, by weight, so that the parts always sum to total.
func Readjust(total cluster.MicroGPU, weights []int64, wants []cluster.MicroGPU) []cluster.MicroGPU {
	parts := make([]cluster.MicroGPU, len(weights))
	open, sum := summable(weights)
	want := func(i int) int64 { return int64(max(wants[i], 0)) }
	var order []int // by want per weight: who is satisfied first
	for i, w := range open {
		if w > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return products(want(a), open[b], want(b), open[a]) })
	left := max(total, 0)
	sharing := slices.Clone(open)
	for k, i := range order {
		if products(want(i), sum, int64(left), open[i]) > 0 {
			break
		}
		parts[i] = cluster.MicroGPU(want(i))
		left -= parts[i]
		sum -= open[i]
		sharing[i] = 0
		if k == len(order)-1 {
			sharing = open
		}
	}
	for i, part := range Quota(left, sharing) {
		parts[i] += part
	}
	return parts
}

// products compares a*b with c*d, all ≥ 0.
func products(a, b, c, d int64) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	high, low := bits.Mul64(uint64(c), uint64(d))
	switch {
	case hi < high || hi == high && lo < low:
		return -1
	case hi > high || lo > low:
		return 1
	}
	return 0
}
