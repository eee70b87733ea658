package experiment

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim"
)

// work is a tenant's work beyond its GPU time, by the true speeds of its active jobs, so that schedulers that know
// speeds are compared with others (SEMANTICS §2). Lists are by model. It is nil where speeds are not known, or there is one
// model.
type work struct {
	sums, gpus []int64            // of active jobs: speeds times GPUs, in millionths, and GPUs
	base       []cluster.MicroGPU // at the last turn
	demand     cluster.MicroGPU   // at the last turn
	alloc, due cluster.GPUTime    // work received and due, less GPU time
}

func newWork(models int) *work {
	return &work{sums: make([]int64, models), gpus: make([]int64, models), base: make([]cluster.MicroGPU, models)}
}

// active adds a job that can use a model to the tenant's active ones, or removes it.
func (x *work) active(m, gpus int, speed sim.Speed, sign int64) {
	x.sums[m] += sign * int64(speed) * int64(gpus)
	x.gpus[m] += sign * int64(gpus)
}

// faster gives the mean speed of active jobs on a model less 1.
func (x *work) faster(m int) cluster.Extra {
	if x.gpus[m] == 0 {
		return cluster.Extra{}
	}
	return cluster.Extra{Faster: cluster.MulDiv(x.sums[m], int64(cluster.WholeGPU), x.gpus[m]*int64(sim.Reference)) - int64(cluster.WholeGPU)}
}

// rate gives the work due per time: of the part of the base that active jobs could use, fastest models first.
func (x *work) rate() (due cluster.MicroGPU) {
	best := make([]int, len(x.base))
	for m := range best {
		best[m] = m
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(x.faster(b).Faster, x.faster(a).Faster) })
	left := x.demand
	for _, m := range best {
		usable, faster := min(x.base[m], left), x.faster(m)
		left -= usable
		due += usable + cluster.MicroGPU(faster.Of(cluster.GPUTime(usable)))
	}
	return due
}

// pass charges an interval in which the tenant holds GPUs of each model, and is due GPUs.
func (x *work) pass(on []cluster.MicroGPU, due cluster.MicroGPU, gone cluster.Span) {
	for m := range on {
		faster := x.faster(m)
		x.alloc += faster.Of(on[m].Over(gone))
	}
	owed, _ := cluster.Accrue(x.rate(), gone, 0)
	counted, _ := cluster.Accrue(due, gone, 0)
	x.due += owed - counted
}
