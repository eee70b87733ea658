package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

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
func newGandivaFair(baseline.Options) rule {
	g := &passes{}
	return func(r *round) {
		r.Grid = true
		g.advance(r)
		r.UpForRenewal()
		line := r.Contenders()
		slices.SortStableFunc(line, func(a, b int) int {
			return cmp.Compare(g.pass(r, a), g.pass(r, b))
		})
		r.Contest(line)
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
	i, _ := g.find(r.Field.In.Records[r.Jobs[k].Case].Key)
	return g.jobs[i].Pass
}

// advance updates every job's pass. It uses received GPU time, so that a preview leaves no trace.
func (g *passes) advance(r *round) {
	strides := r.strides()
	var now passes
	var known []stride.Job
	for k := range r.Jobs { // by key
		j := &r.Jobs[k]
		p := stride.Job{Key: r.Field.In.Records[j.Case].Key, GPUs: j.GPUs, Pass: stride.Never}
		if i, ok := g.find(p.Key); ok {
			p = g.jobs[i].After(cluster.Span(r.Alloc(j)-g.alloc[i])/cluster.Span(max(j.GPUs, 1)), r.Settings.Term)
			known = append(known, p)
		}
		if j.Tenant >= 0 {
			p.Stride = strides[j.Tenant]
		}
		now.jobs, now.alloc = append(now.jobs, p), append(now.alloc, r.Alloc(j))
	}
	least := stride.Join(stride.Never, known)
	for i := range now.jobs {
		now.jobs[i].Pass = max(now.jobs[i].Pass, least)
	}
	*g = now
}

// strides gives the stride of every tenant's jobs, by their effective tickets.
func (r *round) strides() []stride.Pass {
	wanted, weights := make([]int, len(r.Field.In.Tenants)), make([]int64, len(r.Field.In.Tenants))
	wants := make([]cluster.MicroGPU, len(r.Field.In.Tenants))
	for _, t := range r.Snapshot.Tenants {
		if i, ok := slices.BinarySearch(r.Field.In.Tenants, t.Name); ok {
			weights[i] = t.Weight
		}
	}
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Tenant >= 0 {
			wanted[j.Tenant] += j.GPUs
			wants[j.Tenant] += cluster.MicroGPU(j.GPUs) * cluster.WholeGPU
		}
	}
	capacity := cluster.MicroGPU(0)
	for i := range r.Field.Due.Ledger.Pools {
		capacity += cluster.MicroGPU(r.Field.Due.Ledger.Pools[i].GPUs - r.Field.Due.Ledger.Pools[i].BadGPUs)
	}
	strides := make([]stride.Pass, len(r.Field.In.Tenants))
	for t, tickets := range policy.Readjust(capacity, weights, wants) {
		strides[t] = max(stride.Stride(wanted[t], tickets), stride.One)
	}
	return strides
}
