package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// budget is the quota and the use of GPUs, by pool and tenant.
type budget struct{ quota, holds [][]int }

// budgets sums the tenants' use over the jobs that counts selects.
func (r *round) budgets(counts func(*job) bool) *budget {
	b := &budget{make([][]int, r.pools), make([][]int, r.pools)}
	for p := range r.pools {
		b.quota[p], b.holds[p] = r.quotas(p), make([]int, len(r.f.Books.In.Tenants))
	}
	for k := range r.jobs {
		if j := &r.jobs[k]; j.lease != nil && j.tenant >= 0 && counts(j) {
			b.holds[r.pool(j)][j.tenant] += j.lease.GPUs
		}
	}
	return b
}

// within tells whether a job with so many GPUs of a pool stays within its tenant's quota.
func (b *budget) within(j *job, gpus, p int) bool {
	return b.holds[p][j.tenant]+gpus <= b.quota[p][j.tenant]
}

// quotas gives every tenant's whole GPUs of a pool: its share by weight (ASTRAEA eq. 6), rounded
// by largest remainders so that none is left.
func (r *round) quotas(pool int) []int {
	exact := make([]cluster.MicroGPU, len(r.f.Books.In.Tenants))
	left := cluster.MicroGPU(0)
	for i := range r.f.Books.Ledger.Tenants {
		if p := i % len(r.f.Books.In.Pools); r.mixed || p == pool {
			exact[i/len(r.f.Books.In.Pools)] += r.f.Books.Ledger.Tenants[i].Base
			left += r.f.Books.Ledger.Tenants[i].Base
		}
	}
	whole, order := make([]int, len(exact)), make([]int, len(exact))
	left = (left + cluster.WholeGPU/2) / cluster.WholeGPU
	for t, q := range exact {
		whole[t], order[t] = int(q/cluster.WholeGPU), t
		left -= q / cluster.WholeGPU
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(exact[b]%cluster.WholeGPU, exact[a]%cluster.WholeGPU) })
	for _, t := range order[:min(max(int(left), 0), len(order))] {
		whole[t]++
	}
	return whole
}

// pool gives the pool of a job's GPUs.
func (r *round) pool(j *job) int {
	if r.mixed {
		return 0
	}
	return max(slices.Index(r.f.Books.In.Pools, j.lease.Pool), 0)
}
