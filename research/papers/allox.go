package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// newAlloX makes AlloX (Le et al., EuroSys'20) as in ASTRAEA's evaluation (§6.1.5): a min-cost
// bipartite matching of jobs to places on machines, with the tenants of lowest progress first.
//
// In the matching a job of run time p that is the k-th from the end on its machine costs k p, its
// contribution to the sum of completion times. The snapshot has no speeds by model, so all
// machines are of one kind. Then the matching of least cost orders the places by p, the longest
// last: shortest processing time first. A gang occupies as many machines as it has GPUs and costs
// as much on each, so the order is by remaining GPU time.
//
// Progress is received over due GPU time of a tenant (ASTRAEA eq. 12). A tenth of the tenants
// with jobs, those with the lowest progress, go first (AlloX's alpha). ASTRAEA does not say
// whether running jobs are preempted. Here the matching is repeated whenever leases end,
// including running jobs, which favours the baseline if jobs are long. Run times are those of
// Options.Runs, else time limits; see remaining.
func newAlloX(o baseline.Options) rule {
	return func(r *round) {
		r.UpForRenewal()
		line := r.Contenders()
		behind := r.leastProgress(line)
		needs := r.needs(line, o.Runs)
		turn := func(k int) int {
			if t := r.Jobs[k].Tenant; t >= 0 && behind[t] {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(line, func(a, b int) int {
			return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(needs[a], needs[b]))
		})
		r.Contest(line)
	}
}

// leastProgress marks a tenth of the tenants of the jobs in a line, at least one: those with the
// lowest received over due GPU time.
func (r *round) leastProgress(line []int) []bool {
	behind := make([]bool, len(r.Field.In.Tenants))
	var tenants []int
	for _, k := range line {
		if t := r.Jobs[k].Tenant; t >= 0 && !slices.Contains(tenants, t) {
			tenants = append(tenants, t)
		}
	}
	progress := make([]cluster.Rho, len(r.Field.In.Tenants))
	n := len(r.Field.In.Pools)
	for _, t := range tenants {
		var alloc, due cluster.GPUTime
		for _, row := range r.Field.Due.Ledger.Tenants[t*n : (t+1)*n] {
			alloc, due = alloc+row.Alloc, due+row.Due
		}
		progress[t] = cluster.RhoOf(alloc, due)
	}
	slices.SortFunc(tenants, func(a, b int) int { return cmp.Or(cmp.Compare(progress[a], progress[b]), cmp.Compare(a, b)) })
	for _, t := range tenants[:(len(tenants)+9)/10] {
		behind[t] = true
	}
	return behind
}
