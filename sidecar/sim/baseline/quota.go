package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// budget is the quota and the use of GPUs, by pool and tenant.
type budget struct{ quota, holds [][]int }

// budgets sums the tenants' use over the jobs that counts selects.
func (r *Round) budgets(counts func(*Job) bool) *budget {
	b := &budget{make([][]int, r.Pools), make([][]int, r.Pools)}
	for p := range r.Pools {
		b.quota[p], b.holds[p] = r.quotas(p), make([]int, len(r.Field.In.Tenants))
	}
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Lease != nil && j.Tenant >= 0 && counts(j) {
			b.holds[r.pool(j)][j.Tenant] += j.Lease.Size.Devices
		}
	}
	return b
}

// within tells whether a job with so many GPUs of a pool stays within its tenant's quota.
func (b *budget) within(j *Job, gpus, p int) bool {
	return b.holds[p][j.Tenant]+gpus <= b.quota[p][j.Tenant]
}

// quotas gives every tenant's whole GPUs of a pool: its share by weight (ASTRAEA eq. 6), rounded
// by largest remainders so that none is left.
func (r *Round) quotas(pool int) []int {
	exact := make([]cluster.MicroGPU, len(r.Field.In.Tenants))
	left := cluster.MicroGPU(0)
	for i := range r.Field.Due.Ledger.Tenants {
		if p := i % len(r.Field.In.Pools); r.Mixed || p == pool {
			exact[i/len(r.Field.In.Pools)] += r.Field.Due.Ledger.Tenants[i].Base
			left += r.Field.Due.Ledger.Tenants[i].Base
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
func (r *Round) pool(j *Job) int {
	if r.Mixed {
		return 0
	}
	return max(slices.Index(r.Field.In.Pools, j.Lease.Pool), 0)
}
