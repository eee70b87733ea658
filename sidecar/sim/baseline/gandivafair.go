package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/policy"
	"github.com/fairlease/fairlease/sidecar/engine/stride"
)

// newGandivaFair makes Gandiva_fair's gang-aware stride (Chaudhary et al., EuroSys'20, §3.1,
// Algorithm 1), without its trading, as in ASTRAEA's evaluation (§6.1.5, footnote 2).
// Users are tenants, with their weights as tickets:
//
//	tickets per GPU = tickets of the user / GPUs that the user's jobs want        (eq. 1)
//	tickets of a job = tickets per GPU * its GPUs                                  (eq. 3)
//
// A job has a pass. When GPUs are assigned for the next quantum, here a term, jobs with the
// smallest pass go first. A job that does not fit keeps its pass, and so becomes first
// eventually. Each quantum of run time increases the pass by the job's stride, the inverse of its
// tickets per GPU; a new job starts at the smallest pass of all. Tickets are effective ones
// (§3.2, "weight readjustment"): what users with few jobs cannot use goes to others. A GPU's
// tickets count 1 if all jobs of a user can always run, and never more.
//
// The paper splits the stride among servers because its jobs live there, and balances tickets by
// migration. That equals one stride for the whole cluster ("but without the inefficiency of
// constant migrations"). Here a paused job leaves its node anyway and returns wherever there is
// space, so there is one stride, in perfect balance. A job that continues stays in place. All
// leases end together, like quanta.
func newGandivaFair(Options) rule {
	g := &passes{}
	return func(r *round) {
		r.grid = true
		g.advance(r)
		r.upForRenewal()
		line := r.contenders()
		slices.SortStableFunc(line, func(a, b int) int {
			return cmp.Compare(g.pass(r, a), g.pass(r, b))
		})
		r.contest(line)
	}
}

// passes holds the pass of every job, and the GPU time up to which it is charged.
type passes struct {
	jobs  []stride.Job // by key
	alloc []cluster.GPUTime
}

// find gives the index of a job.
func (g *passes) find(key cluster.JobKey) (int, bool) {
	return slices.BinarySearchFunc(g.jobs, key, func(j stride.Job, key cluster.JobKey) int { return cmp.Compare(j.Key, key) })
}

func (g *passes) pass(r *round, k int) stride.Pass {
	i, _ := g.find(r.f.Books.Records[r.jobs[k].at].Key)
	return g.jobs[i].Pass
}

// advance updates every job's pass. It uses received GPU time, so that a preview leaves no trace.
func (g *passes) advance(r *round) {
	strides := r.strides()
	var now passes
	var known []stride.Job
	for k := range r.jobs { // by key
		j := &r.jobs[k]
		p := stride.Job{Key: r.f.Books.Records[j.at].Key, GPUs: j.gpus, Pass: stride.Never}
		if i, ok := g.find(p.Key); ok {
			p = g.jobs[i].After(cluster.Span(r.alloc(j)-g.alloc[i])/cluster.Span(max(j.gpus, 1)), r.set.Term)
			known = append(known, p)
		}
		if j.tenant >= 0 {
			p.Stride = strides[j.tenant]
		}
		now.jobs, now.alloc = append(now.jobs, p), append(now.alloc, r.alloc(j))
	}
	least := stride.Join(stride.Never, known)
	for i := range now.jobs {
		now.jobs[i].Pass = max(now.jobs[i].Pass, least)
	}
	*g = now
}

// strides gives the stride of every tenant's jobs, by their effective tickets.
func (r *round) strides() []stride.Pass {
	wanted, weights := make([]int, len(r.f.Books.In.Tenants)), make([]int64, len(r.f.Books.In.Tenants))
	wants := make([]cluster.MicroGPU, len(r.f.Books.In.Tenants))
	for _, t := range r.s.Tenants {
		if i, ok := slices.BinarySearch(r.f.Books.In.Tenants, t.Name); ok {
			weights[i] = t.Weight
		}
	}
	for k := range r.jobs {
		if j := &r.jobs[k]; j.tenant >= 0 {
			wanted[j.tenant] += j.gpus
			wants[j.tenant] += cluster.MicroGPU(j.gpus) * cluster.WholeGPU
		}
	}
	capacity := cluster.MicroGPU(0)
	for i := range r.f.Books.Ledger.Pools {
		capacity += cluster.MicroGPU(r.f.Books.Ledger.Pools[i].GPUs-r.f.Books.Ledger.Pools[i].BadGPUs) * cluster.WholeGPU
	}
	strides := make([]stride.Pass, len(r.f.Books.In.Tenants))
	for t, tickets := range policy.Readjust(capacity, weights, wants) {
		strides[t] = max(stride.Stride(wanted[t], tickets), stride.One)
	}
	return strides
}
