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
func newMultifactor(Options) rule {
	tree := &fairTree{}
	return func(r *round) {
		tree.charge(r)
		r.hold()
		if !r.idle() {
			return
		}
		kept := make([]cluster.Instant, r.pools) // until when the first waiting job can wait
		for _, k := range byPriority(r, tree) {
			j := &r.jobs[k]
			if !r.backfill(j, kept) && !slices.ContainsFunc(j.pools, func(p int) bool { return kept[p] > 0 }) {
				r.keep(j, kept)
			}
		}
	}
}

// byPriority gives the waiting jobs and those that may lose their GPUs, highest priority first, then in order of arrival.
func byPriority(r *round, tree *fairTree) []int {
	all := 0
	for i := range r.f.Books.Ledger.Pools {
		all += r.f.Books.Ledger.Pools[i].GPUs
	}
	share := tree.factors(r)
	priority := make([]float64, len(r.jobs))
	line := make([]int, 0, len(r.jobs))
	for k := range r.jobs {
		j := &r.jobs[k]
		if j.lease != nil && !j.soft {
			continue
		}
		age := min(float64(r.now.Sub(r.f.Books.Records[j.at].First))/float64(maxAge), 1)
		size := float64(j.gpus) / float64(max(all, 1))
		priority[k] = weightAge*age + weightFairshare*share[r.userOf(j)] + weightJobSize*size
		line = append(line, k)
	}
	slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(priority[b], priority[a]) })
	return line
}

// backfill starts a waiting job if it delays no claim.
func (r *round) backfill(j *job, kept []cluster.Instant) bool {
	for _, p := range j.pools {
		if r.board.Idle(p) == 0 {
			continue
		}
		end := kept[p] // jobs that end by then are equivalent
		if end > 0 && r.now.Add(r.limit(j)) > end {
			end++
		}
		if found, ok := r.board.Fit(place.Ask{Shape: j.shape, Pool: p, Now: r.now, End: end, Max: -1}); ok {
			r.take(j, found, 0)
			return true
		}
	}
	return false
}

// keep reserves the nodes on which a job that does not fit now can start soonest.
func (r *round) keep(j *job, kept []cluster.Instant) {
	board := r.empty()
	for _, i := range r.rest {
		board.Hold(r.onSite(r.s.Cases[i].Job.Holds))
	}
	var running []int
	for k := range r.jobs {
		if r.jobs[k].lease != nil {
			running = append(running, k)
		}
	}
	slices.SortStableFunc(running, func(a, b int) int { return cmp.Compare(r.ends(&r.jobs[b]), r.ends(&r.jobs[a])) })
	board.Await(len(r.s.Cases))
	for rank, k := range running {
		o := &r.jobs[k]
		board.Soften(o.at, o.tenant, rank, r.ends(o), r.holds(o))
	}
	var best place.Placement
	for _, p := range j.pools {
		found, ok := board.Fit(place.Ask{Shape: j.shape, Pool: p, Now: r.now, End: r.now, Displace: place.Anybodys, Max: -1})
		if ok && (best.Nodes == nil || found.At < best.At) {
			best = found
		}
	}
	for _, p := range j.pools {
		kept[p] = max(best.At, r.now+1)
	}
	r.board.Claim(best.Nodes, max(best.At, r.now+1))
}

// limit gives a job's time limit.
func (r *round) limit(j *job) cluster.Span {
	if limit := r.s.Cases[j.at].Job.Limit; limit > 0 {
		return limit
	}
	return noLimit
}

// ends gives the latest end of a running job; an overdue one ends soon.
func (r *round) ends(j *job) cluster.Instant {
	start := r.now
	if j.runs {
		start = r.s.Cases[j.at].Job.Start
	}
	return max(start.Add(r.limit(j)), r.now.Add(r.set.Interval))
}
