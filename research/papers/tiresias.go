package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/engine/vc"
)

// newTiresias makes Tiresias-L (Gu et al., NSDI'19, §3.2: discretized two-dimensional least
// attained service; ASTRAEA §6.1.5). Jobs are in one of two queues by the GPU time that they have
// received. The first queue goes before the second; within a queue it is first come, first
// served. Preemption is at the end of leases, as in ASTRAEA's evaluation. It knows neither
// tenants nor run times.
//
// The option that promotes starving jobs is off, as by default in that simulator.
func newTiresias(baseline.Options) rule {
	return func(r *round) {
		r.UpForRenewal()
		line := r.Contenders()
		queue := func(k int) int {
			if r.Alloc(&r.Jobs[k]) < vc.SecondQueue {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(queue(a), queue(b)) })
		r.Contest(line)
	}
}
