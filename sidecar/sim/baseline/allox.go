package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// newAlloX makes AlloX (Le et al., EuroSys'20) as in ASTRAEA's evaluation (§6.1.5): a
// min-cost bipartite matching of jobs to places on machines, for the tenants with the
// lowest progress first.
//
// In the matching a job that runs for p as the k-th from the end on its machine costs k p,
// which is what it adds to the sum of completion times. The snapshot does not tell how
// fast a job is on which model, so that to this scheduler all machines are of one kind;
// then the matching of least cost gives the places in the order of p, the longest last:
// shortest processing time first. A gang is matched to as many machines as it has GPUs and
// costs as much on each, so jobs stand in the order of the GPU time that they still need.
//
// Progress is what a tenant has received of what it was due (ASTRAEA eq. 12). A tenth of
// the tenants that have jobs, those with the least, go before the others (AlloX's alpha).
// ASTRAEA does not say whether jobs that run give way; here the matching is made anew
// whenever leases end, of those jobs too, which is better for it where jobs are long. It
// knows what somebody tells about how long jobs run (Options.Runs), else their time
// limits; see remaining.
func newAlloX(o Options) rule {
	return func(r *round) {
		r.upForRenewal()
		line := r.contenders()
		behind := r.leastProgress(line)
		needs := make([]cluster.GPUTime, len(r.jobs))
		for _, k := range line {
			needs[k] = cluster.Times(r.jobs[k].gpus, r.remaining(&r.jobs[k], o.Runs))
		}
		turn := func(k int) int {
			if t := r.jobs[k].tenant; t >= 0 && behind[t] {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(line, func(a, b int) int {
			return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(needs[a], needs[b]))
		})
		r.contest(line)
	}
}

// leastProgress marks a tenth of the tenants of the jobs in a line, and one at least:
// those that have received least of what they were due.
func (r *round) leastProgress(line []int) []bool {
	behind := make([]bool, len(r.Tenants))
	var tenants []int
	for _, k := range line {
		if t := r.jobs[k].tenant; t >= 0 && !slices.Contains(tenants, t) {
			tenants = append(tenants, t)
		}
	}
	progress := make([]cluster.Rho, len(r.Tenants))
	n := len(r.Pools)
	for _, t := range tenants {
		var alloc, due cluster.GPUTime
		for _, row := range r.Ledger.Tenants[t*n : (t+1)*n] {
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
