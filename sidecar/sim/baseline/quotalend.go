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
func newQuotaLend(Options) rule {
	return func(r *round) {
		b := r.byPriority()
		r.hold()
		r.board.Await(len(r.s.Cases))
		for k := range r.jobs {
			if j := &r.jobs[k]; j.soft {
				rank, end := 0, r.now.Add(r.set.Notice)
				if j.lease.State == cluster.Noticed { // a job with a notice goes first
					rank, end = 1, max(j.lease.End, r.now)
				}
				r.board.Soften(j.at, j.tenant, rank, end, r.holds(j))
			}
		}
		low := r.guaranteed(b)
		r.lend(low)
		for k := range r.jobs {
			switch j := &r.jobs[k]; {
			case !j.soft:
			case !r.board.Renew(j.at):
				r.dismiss(j)
			case j.lease.State == cluster.Noticed:
				r.f.Renew(j.at, 0)
			}
		}
	}
}

// byPriority marks the low-priority jobs among those with GPUs, and gives the use of the others.
func (r *round) byPriority() *budget {
	b := r.budgets(func(*job) bool { return false })
	var running []int
	for k := range r.jobs {
		if r.jobs[k].lease != nil && r.jobs[k].tenant >= 0 {
			running = append(running, k)
		}
	}
	slices.SortStableFunc(running, func(a, c int) int { return cmp.Compare(r.jobs[a].lease.Granted, r.jobs[c].lease.Granted) })
	for _, k := range running {
		j := &r.jobs[k]
		p := r.pool(j)
		if !b.within(j, j.lease.GPUs, p) {
			j.soft = j.movable && j.runs && j.lease.State != cluster.Ending
			continue
		}
		b.holds[p][j.tenant] += j.lease.GPUs
		if j.lease.State == cluster.Noticed {
			r.f.Renew(j.at, 0)
		}
	}
	return b
}

// guaranteed starts the waiting jobs within their tenants' quotas, preempting low-priority jobs
// if needed, and gives the other waiting jobs.
func (r *round) guaranteed(b *budget) []int {
	r.line = r.line[:0]
	for k := range r.jobs {
		j := &r.jobs[k]
		if j.lease != nil || j.tenant < 0 {
			continue
		}
		if p := r.displace(j, 0, func(p int) bool { return b.within(j, j.gpus, p) }); p >= 0 {
			b.holds[p][j.tenant] += j.gpus
		} else {
			r.line = append(r.line, k)
		}
	}
	return r.line
}

// lend gives idle GPUs to low-priority jobs.
func (r *round) lend(low []int) {
	if !r.idle() || len(low) == 0 {
		return
	}
	has, quota := make([]int, len(r.f.Books.In.Tenants)), make([]int, len(r.f.Books.In.Tenants))
	waiting := make([][]int, len(r.f.Books.In.Tenants))
	all := r.budgets(func(*job) bool { return true })
	for t := range r.f.Books.In.Tenants {
		for p := range r.pools {
			has[t] += all.holds[p][t]
			quota[t] += all.quota[p][t]
		}
	}
	for _, k := range low {
		t := r.jobs[k].tenant
		waiting[t] = append(waiting[t], k)
	}
	for r.idle() {
		next := -1
		for t := range waiting { // least of its quota: a/b < c/d as a*d < c*b
			if len(waiting[t]) > 0 && (next < 0 || has[t]*quota[next] < has[next]*quota[t]) {
				next = t
			}
		}
		if next < 0 {
			return
		}
		j := &r.jobs[waiting[next][0]]
		waiting[next] = waiting[next][1:]
		if r.start(j, 0, nil) >= 0 {
			has[next] += j.gpus
		}
	}
}
