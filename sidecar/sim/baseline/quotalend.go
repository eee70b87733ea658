package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// newQuotaLend makes HiveD's YARN-CS (§5.1: a capacity scheduler that packs jobs as close as
// possible). A job within its tenant's quota has high priority, beyond it low priority. A
// high-priority job without suitable idle GPUs preempts low-priority jobs: those that make space
// for its affinity with the fewest freed GPUs, "instead of preempting the latest jobs". Idle GPUs
// then go to low-priority jobs, the tenant with the least of its quota first, as YARN orders its
// queues.
//
// Left open by the paper, and chosen for the baseline: priorities are recomputed in every round,
// oldest grant first, so that a job is promoted when its tenant's others end. Within a tenant, a
// job that does not fit is skipped. A preempted job gets the site's notice to save.
func newQuotaLend(Options) Rule {
	return func(r *Round) {
		b := r.byPriority()
		r.Hold()
		r.Board.Await(len(r.Snapshot.Cases))
		for k := range r.Jobs {
			if j := &r.Jobs[k]; j.Soft {
				rank, end := 0, r.Now.Add(r.Settings.Notice)
				if j.Lease.State == cluster.Noticed { // a job with a notice goes first
					rank, end = 1, max(j.Lease.End, r.Now)
				}
				r.Board.Soften(j.Case, j.Tenant, rank, end, r.Holds(j), 0)
			}
		}
		low := r.guaranteed(b)
		r.lend(low)
		for k := range r.Jobs {
			switch j := &r.Jobs[k]; {
			case !j.Soft:
			case !r.Board.Renew(j.Case):
				r.Dismiss(j)
			case j.Lease.State == cluster.Noticed:
				r.Field.Renew(j.Case, 0)
			}
		}
	}
}

// byPriority marks the low-priority jobs among those with GPUs, and gives the use of the others.
func (r *Round) byPriority() *budget {
	b := r.budgets(func(*Job) bool { return false })
	var running []int
	for k := range r.Jobs {
		if r.Jobs[k].Lease != nil && r.Jobs[k].Tenant >= 0 {
			running = append(running, k)
		}
	}
	slices.SortStableFunc(running, func(a, c int) int { return cmp.Compare(r.Jobs[a].Lease.Granted, r.Jobs[c].Lease.Granted) })
	for _, k := range running {
		j := &r.Jobs[k]
		p := r.pool(j)
		if !b.within(j, j.Lease.Size.Devices, p) {
			j.Soft = j.Movable && j.Runs && j.Lease.State != cluster.Ending
			continue
		}
		b.holds[p][j.Tenant] += j.Lease.Size.Devices
		if j.Lease.State == cluster.Noticed {
			r.Field.Renew(j.Case, 0)
		}
	}
	return b
}

// guaranteed starts the waiting jobs within their tenants' quotas, preempting low-priority jobs
// if needed, and gives the other waiting jobs.
func (r *Round) guaranteed(b *budget) []int {
	r.Line = r.Line[:0]
	for k := range r.Jobs {
		j := &r.Jobs[k]
		if j.Lease != nil || j.Tenant < 0 {
			continue
		}
		if p := r.Displace(j, 0, func(p int) bool { return b.within(j, j.GPUs, p) }); p >= 0 {
			b.holds[p][j.Tenant] += j.GPUs
		} else {
			r.Line = append(r.Line, k)
		}
	}
	return r.Line
}

// lend gives idle GPUs to low-priority jobs.
func (r *Round) lend(low []int) {
	if !r.Idle() || len(low) == 0 {
		return
	}
	has, quota := make([]int, len(r.Field.In.Tenants)), make([]int, len(r.Field.In.Tenants))
	waiting := make([][]int, len(r.Field.In.Tenants))
	all := r.budgets(func(*Job) bool { return true })
	for t := range r.Field.In.Tenants {
		for p := range r.Pools {
			has[t] += all.holds[p][t]
			quota[t] += all.quota[p][t]
		}
	}
	for _, k := range low {
		t := r.Jobs[k].Tenant
		waiting[t] = append(waiting[t], k)
	}
	for r.Idle() {
		next := -1
		for t := range waiting { // least of its quota: a/b < c/d as a*d < c*b
			if len(waiting[t]) > 0 && (next < 0 || has[t]*quota[next] < has[next]*quota[t]) {
				next = t
			}
		}
		if next < 0 {
			return
		}
		j := &r.Jobs[waiting[next][0]]
		waiting[next] = waiting[next][1:]
		if r.Start(j, 0, nil) >= 0 {
			has[next] += j.GPUs
		}
	}
}
