package policy

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Want is GPUs that a tenant's jobs of one kind want, wherever that is.
type Want struct {
	GPUs cluster.MicroGPU
	// May says on which models they are to run; nil = on all. Jobs that name a model may on
	// that one only, and jobs that are slower on a newer model say no to that.
	May []bool
}

// Claim is what a tenant wants of the GPUs that tickets divide.
type Claim struct {
	Weight int64 // its tickets; only ratios matter. 0 = nothing but idle GPUs
	Wants  []Want
}

// Part is what a tenant is due of a model, and what for. What is Due beyond the sum of For is
// what nobody wants.
type Part struct {
	Due cluster.MicroGPU
	For []cluster.MicroGPU // by Want
}

// Tickets divides the GPUs of every model between tenants by their tickets
// (Gandiva_fair §2.1, §3.2): everybody has the same share of every model, and
// what a tenant does not want of its share goes to the others by tickets. gpus are by
// model, the newest first: jobs take what their tenant is due of the newest that they may
// use, then of the next (§3.4), and each GPU that they want counts once. Within a tenant
// jobs that name the model have the first turn, then those that have the fewest models left. The answer is by claim, then
// model, and adds up to the GPUs of each model exactly, unless no claim has a weight.
func Tickets(gpus []cluster.MicroGPU, claims []Claim) [][]Part {
	weights, wants := make([]int64, len(claims)), make([]cluster.MicroGPU, len(claims))
	open := make([][]cluster.MicroGPU, len(claims)) // what is not met yet, by claim and want
	parts := make([][]Part, len(claims))
	for i := range claims {
		weights[i] = claims[i].Weight
		parts[i] = make([]Part, len(gpus))
		for _, w := range claims[i].Wants {
			open[i] = append(open[i], max(w.GPUs, 0))
		}
	}
	for m := range gpus {
		for i := range claims {
			wants[i] = 0
			for k, w := range claims[i].Wants {
				if w.turn(m, len(gpus)) > 0 {
					wants[i] += open[i][k]
				}
			}
		}
		for i, due := range Readjust(gpus[m], weights, wants) {
			parts[i][m] = Part{due, claims[i].spread(due, open[i], m, len(gpus))}
			for k, part := range parts[i][m].For {
				open[i][k] -= part
			}
		}
	}
	return parts
}

// turn tells when jobs have their turn at a model: 1 = first, for those that name it, then
// those that have the fewest models left, this one and those after it; 0 = they may not use it.
func (w *Want) turn(model, models int) int {
	all, left := 0, 0
	for m := range models {
		if w.May == nil || m < len(w.May) && w.May[m] {
			all++
			if m >= model {
				left++
			}
		} else if m == model {
			return 0
		}
	}
	if w.May != nil && all == 1 {
		return 1
	}
	return 1 + left
}

// spread divides what a tenant is due of a model among what it wants there: those
// that have their turn together by what is open of each.
func (c *Claim) spread(due cluster.MicroGPU, open []cluster.MicroGPU, model, models int) []cluster.MicroGPU {
	parts := make([]cluster.MicroGPU, len(open))
	for turn := 1; turn <= 1+models-model; turn++ {
		weights, total := make([]int64, len(open)), cluster.MicroGPU(0)
		for k := range open {
			if c.Wants[k].turn(model, models) == turn {
				weights[k] = int64(open[k])
				total += open[k]
			}
		}
		total = min(total, due)
		for k, part := range Readjust(total, weights, open) {
			parts[k] += part
		}
		due -= total
	}
	return parts
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
