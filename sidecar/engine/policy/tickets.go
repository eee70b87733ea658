package policy

import (
	"math/bits"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Want is the GPUs of any model that a tenant's jobs of one kind want.
type Want struct {
	GPUs cluster.MicroGPU
	// May lists the models on which they can run; nil = all. Jobs that name a model can run on
	// that one only, and jobs that are slower on a newer model exclude it.
	May []bool
}

// Claim is a tenant's demand for the GPUs that tickets divide.
type Claim struct {
	Weight int64 // its tickets; only ratios matter. 0 = idle GPUs only
	Wants  []Want
}

// Part is a tenant's entitlement to a model, by purpose. Due beyond the sum of For is unwanted by
// all.
type Part struct {
	Due cluster.MicroGPU
	For []cluster.MicroGPU // by Want
}

// Tickets divides the GPUs of every model between tenants by their tickets (Gandiva_fair §2.1,
// §3.2): all tenants have the same share of every model, and the unwanted part of a share goes to
// the others by tickets. gpus are by model, the newest first: jobs take their tenant's
// entitlement to the newest model that they may use, then to the next (§3.4), and each wanted GPU
// counts once. Within a tenant, jobs that name the model come first, then those with the fewest
// models left. The answer is by claim, then model, and sums to the GPUs of each model exactly,
// unless no claim has a weight.
func Tickets(gpus []cluster.MicroGPU, claims []Claim) [][]Part {
	weights, wants := make([]int64, len(claims)), make([]cluster.MicroGPU, len(claims))
	open := make([][]cluster.MicroGPU, len(claims)) // unmet demand, by claim and want
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

// turn gives the turn of jobs at a model: 1 = first, for those that name it, then those with the
// fewest models left, this one and those after it; 0 = they may not use it.
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

// spread divides a tenant's entitlement to a model among its wants there: those with the same
// turn share it by their unmet demand.
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

// Readjust divides total by weight among tenants with maximum demands wants: a tenant that wants
// less than its share gets that, and the others share the rest (the weight readjustment of
// Chandra and Shenoy that Gandiva_fair §3.2 uses). The unwanted rest is divided by weight, so
// that the parts always sum to total.
func Readjust(total cluster.MicroGPU, weights []int64, wants []cluster.MicroGPU) []cluster.MicroGPU {
	parts := make([]cluster.MicroGPU, len(weights))
	open, sum := summable(weights)
	want := func(i int) int64 { return int64(max(wants[i], 0)) }
	var order []int // by want per weight: the order of satisfaction
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
