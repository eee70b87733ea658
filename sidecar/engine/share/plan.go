package share

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/field"
	"github.com/fairlease/fairlease/sidecar/engine/market"
)

// plan is the GPUs that the division gives to jobs of two types together, less those that they have. Where a division knows what two types do beside each
// other, they are put together as often as it says, and no more often than one GPU above that; nil = the division has no pairs.
type plan map[couple]cluster.MicroGPU

// couple is two types of jobs on GPUs of a pool, in order.
type couple struct {
	a, b string
	pool int
}

// planOf returns the plan of the division in force. Of the jobs that have a GPU together now, those two count that goes says.
func planOf(x *contest, goes func(i, k int) bool) plan {
	f := x.f
	d := f.In.Snapshot.Allocation
	if s := f.In.Settings.Slices; s == nil || !s.Pairs || d == nil || d.Policy != f.In.Settings.Divide || len(d.Pairs) == 0 {
		return nil
	}
	out := plan{}
	for at, name := range d.Pools {
		for k := range d.Pairs {
			if pool := f.In.Pool(name); pool >= 0 && d.Pairs[k].GPUs[at] > 0 {
				out[couple{d.Pairs[k].A, d.Pairs[k].B, pool}] = d.Pairs[k].GPUs[at]
			}
		}
	}
	for i, others := range sharedWith(x) {
		for _, k := range others {
			if i < k && goes(i, k) {
				out.take(f, i, k, f.In.Pool(f.Hand.Leases[i].Pool))
			}
		}
	}
	return out
}

// gives reports whether the division gives two jobs a GPU of a pool together.
func (p plan) gives(f *field.Field, i, k, pool int) bool { return p[coupleOf(f, i, k, pool)] > 0 }

// take notes that two jobs have a GPU of a pool together.
func (p plan) take(f *field.Field, i, k, pool int) {
	if p != nil {
		p[coupleOf(f, i, k, pool)] -= cluster.WholeGPU
	}
}

// coupleOf returns the types of two jobs.
func coupleOf(f *field.Field, i, k, pool int) couple {
	a, b := market.TypeOf(f.Market, i), market.TypeOf(f.Market, k)
	return couple{min(a, b), max(a, b), pool}
}
