package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Settings of slurm.conf: the sample in Slurm's guide to the multifactor plugin (PriorityMaxAge
// 14-0, PriorityWeightAge 1000, PriorityWeightFairshare 10000, PriorityWeightJobSize 1000, large
// jobs favoured; the half-life is in fairtree.go).
const (
	maxAge          = 14 * cluster.Day
	weightAge       = 1000
	weightFairshare = 10000
	weightJobSize   = 1000
	// noLimit is the assumed run time of a job without a time limit.
	noLimit = cluster.Day
)

// newMultifactor makes Slurm's own scheduling with its usual plugins:
//
//	priority = age + fair share + job size, each a factor from 0 to 1 with its weight
//
// Jobs start by priority. The first that does not fit gets a claim on the nodes where it can
// start soonest, by the time limits of running jobs. Others may overtake it on other nodes, or if
// their own limit ends earlier (EASY backfill). As in Slurm's plan the claim is for whole nodes.
// There is one such job for each GPU model. Nothing is preempted, and the run time is the limit.
//
// Slurm leaves much open. Here priorities are updated in every round rather than every
// PriorityCalcPeriod, and every job is tried for backfill, not only the first of each user.
func newMultifactor(Options) Rule {
	tree := &fairTree{}
	return func(r *Round) {
		tree.charge(r)
		r.Hold()
		if !r.Idle() {
			return
		}
		kept := make([]cluster.Instant, r.Pools) // until when the first waiting job can wait
		for _, k := range byPriority(r, tree) {
			j := &r.Jobs[k]
			if !r.backfill(j, kept) && !slices.ContainsFunc(j.Pools, func(p int) bool { return kept[p] > 0 }) {
				r.keep(j, kept)
			}
		}
	}
}

// byPriority gives the waiting jobs and those that may lose their GPUs, highest priority first, then in order of arrival.
func byPriority(r *Round, tree *fairTree) []int {
	all := cluster.GPUCount(0)
	for i := range r.Field.Due.Ledger.Pools {
		all += r.Field.Due.Ledger.Pools[i].GPUs
	}
	of, share := tree.factors(r)
	priority := make([]float64, len(r.Jobs))
	line := make([]int, 0, len(r.Jobs))
	for k := range r.Jobs {
		j := &r.Jobs[k]
		if j.Lease != nil && !j.Soft {
			continue
		}
		age := min(float64(r.Now.Sub(r.Field.Can[j.Case].First))/float64(maxAge), 1)
		size := float64(j.GPUs) / max(cluster.MicroGPU(all).Float(), 1)
		priority[k] = weightAge*age + weightFairshare*share[of[k]] + weightJobSize*size
		line = append(line, k)
	}
	slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(priority[b], priority[a]) })
	return line
}

// backfill starts a waiting job if it delays no claim.
func (r *Round) backfill(j *Job, kept []cluster.Instant) bool {
	for _, p := range j.Pools {
		if r.Board.Idle(p) == 0 {
			continue
		}
		end := kept[p] // jobs that end by then are equivalent
		if end > 0 && r.Now.Add(r.limit(j)) > end {
			end++
		}
		if found, ok := r.Board.Fit(place.Ask{Shape: j.Shape, Pool: p, Now: r.Now, End: end, Max: -1}); ok {
			r.Take(j, found, 0)
			return true
		}
	}
	return false
}

// keep reserves the nodes on which a job that does not fit now can start soonest.
func (r *Round) keep(j *Job, kept []cluster.Instant) {
	board := r.Site.Clear(&r.later, freely)
	for _, i := range r.Rest {
		board.Hold(r.onSite(r.Snapshot.Cases[i].Job.Holds), 0)
	}
	var running []int
	for k := range r.Jobs {
		if r.Jobs[k].Lease != nil {
			running = append(running, k)
		}
	}
	slices.SortStableFunc(running, func(a, b int) int { return cmp.Compare(r.ends(&r.Jobs[b]), r.ends(&r.Jobs[a])) })
	board.Await(len(r.Snapshot.Cases))
	for rank, k := range running {
		o := &r.Jobs[k]
		board.Soften(o.Case, o.Tenant, rank, r.ends(o), r.Holds(o), 0)
	}
	var best place.Placement
	for _, p := range j.Pools {
		found, ok := board.Fit(place.Ask{Shape: j.Shape, Pool: p, Now: r.Now, End: r.Now, Displace: place.Anybodys, Max: -1})
		if ok && (best.Nodes == nil || found.At < best.At) {
			best = found
		}
	}
	for _, p := range j.Pools {
		kept[p] = max(best.At, r.Now+1)
	}
	r.Board.Claim(best.Nodes, max(best.At, r.Now+1))
}

// limit gives a job's time limit.
func (r *Round) limit(j *Job) cluster.Span {
	if limit := r.Snapshot.Cases[j.Case].Job.Limit; limit > 0 {
		return limit
	}
	return noLimit
}

// ends gives the latest end of a running job; an overdue one ends soon.
func (r *Round) ends(j *Job) cluster.Instant {
	start := r.Now
	if j.Runs {
		start = r.Snapshot.Cases[j.Case].Job.Start
	}
	return max(start.Add(r.limit(j)), r.Now.Add(r.Settings.Interval))
}
