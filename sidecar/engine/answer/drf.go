package answer

import (
	"fmt"
	"math"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// ByDominantShare divides by dominant-resource fairness (Ghodsi et al., NSDI'11, §4.1) with GPU models as resources. A
// tenant's demand is the GPUs of each model that its jobs want; its dominant share is the largest part that it has of any
// model. All dominant shares, divided by weight, grow alike (progressive filling, Algorithm 1) until a tenant has all that it
// wants, or nothing is left of a model that it wants. Jobs that may run on several models want them in proportion to how many
// GPUs there are of each.
//
// The tenants that want one scarce model thus share it, and what they have of it counts against what they are due of others.
// What nobody is due then is not divided here.
func ByDominantShare(q *cluster.Question, d *cluster.Division) error {
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
	dominant float64   // the largest part of a pool that it wants
	served   float64   // the part of its wants that it is due
	done     bool
}

// demands gives the GPUs that each bid wants, by bid, then pool; the filling of each bid; and the fillings, one a tenant.
func demands(q *cluster.Question) (wants [][]float64, of []int, fillings []filling) {
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

// fill lets shares grow until all are done, out of what is left of each pool. Each step ends a tenant or a pool.
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
