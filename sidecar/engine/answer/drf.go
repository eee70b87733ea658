package answer

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ByDominantShare divides by dominant-resource fairness (Ghodsi et al., NSDI'11, §4.1) with GPU
// models as resources. A tenant's demand is its jobs' GPUs of each model; its dominant share is
// its largest fraction of any model. All dominant shares, divided by weight, grow equally
// (progressive filling, Algorithm 1) until a tenant's demand is met, or a model that it wants is
// exhausted. Jobs that may run on several models want them in proportion to their GPUs.
//
// So the tenants that want one scarce model share it, and their part of it reduces their
// entitlement to others. The remaining GPUs are not divided here.
func ByDominantShare(q *cluster.AllocationRequest, d *cluster.Allocation) error {
	wants, of, fillings := demands(q)
	if len(fillings) == 0 {
		return fmt.Errorf("no job can run on any GPU that there is")
	}
	left := make([]float64, len(q.Pools))
	for p := range left {
		left[p] = float64(max(q.Pools[p].Count, 0))
	}
	fill(fillings, left)
	d.Objective = math.Inf(1)
	for t := range fillings {
		f := &fillings[t]
		d.Objective = min(d.Objective, f.served*f.dominant/f.weight)
	}
	for i := range q.Bids {
		part := cluster.Part{Party: q.Bids[i].Party, GPUs: make([]cluster.MicroGPU, len(q.Pools))}
		for p, want := range wants[i] {
			part.GPUs[p] = micro(want * fillings[of[i]].served)
		}
		d.Parts = append(d.Parts, part)
	}
	return nil
}

// filling is a tenant while shares grow.
type filling struct {
	weight   float64
	wants    []float64 // GPUs, by pool
	dominant float64   // its largest fraction of a pool in its demand
	served   float64   // the fraction of its demand that it is entitled to
	done     bool
}

// demands gives the GPUs that each bid wants, by bid, then pool; the filling of each bid; and the
// fillings, one per tenant.
func demands(q *cluster.AllocationRequest) (wants [][]float64, of []int, fillings []filling) {
	wants, of = make([][]float64, len(q.Bids)), make([]int, len(q.Bids))
	at := map[string]int{}
	for i := range q.Bids {
		b := &q.Bids[i]
		t, ok := at[b.Tenant]
		if !ok {
			t = len(fillings)
			at[b.Tenant] = t
			fillings = append(fillings, filling{weight: float64(b.Weight), wants: make([]float64, len(q.Pools))})
		}
		of[i] = t
		wants[i] = make([]float64, len(q.Pools))
		gpus := 0
		for p := range q.Pools {
			if b.Speeds[p] > 0 {
				gpus += max(q.Pools[p].Count, 0)
			}
		}
		for p := range q.Pools {
			if b.Speeds[p] > 0 && q.Pools[p].Count > 0 {
				wants[i][p] = float64(b.Demand) * float64(q.Pools[p].Count) / float64(gpus)
				fillings[t].wants[p] += wants[i][p]
			}
		}
	}
	for t := range fillings {
		f := &fillings[t]
		for p, want := range f.wants {
			if want > 0 {
				f.dominant = max(f.dominant, want/float64(q.Pools[p].Count))
			}
		}
		f.done = f.dominant == 0 // it can run nowhere
	}
	return wants, of, fillings
}

// fill grows the shares from the rest of each pool until all are done. Each step finishes a
// tenant or a pool.
func fill(fillings []filling, left []float64) {
	const none = 1e-9 // of a GPU, or of a tenant's wants
	for {
		use, step := make([]float64, len(left)), math.Inf(1)
		for t := range fillings {
			if f := &fillings[t]; !f.done {
				speed := f.weight / f.dominant
				step = min(step, (1-f.served)/speed)
				for p, want := range f.wants {
					use[p] += want * speed
				}
			}
		}
		for p := range left {
			if use[p] > 0 {
				step = min(step, left[p]/use[p])
			}
		}
		if math.IsInf(step, 1) {
			return
		}
		for p := range left {
			left[p] -= use[p] * step
		}
		for t := range fillings {
			f := &fillings[t]
			if f.done {
				continue
			}
			f.served += step * f.weight / f.dominant
			f.done = f.served >= 1-none
			for p, want := range f.wants {
				f.done = f.done || want > 0 && left[p] <= none
			}
		}
	}
}
