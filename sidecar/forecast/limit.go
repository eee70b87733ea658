package forecast

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// quota is what a job uses of Slurm's limits on GPUs and jobs in use; empty = it uses nothing of them.
type quota []engine.Need

// quotaOf interns what a job uses of Slurm's limits. It also returns the rule that keeps a waiting job from starting even when
// others end, in words.
func (s *site) quotaOf(j *cluster.Job) (int32, string) {
	needs, why := s.rules.Needs(j)
	if why != "" || len(needs) == 0 {
		return 0, why
	}
	at := slices.IndexFunc(s.quotas, func(q quota) bool { return slices.Equal(q, needs) })
	if at < 0 {
		at, s.quotas = len(s.quotas), append(s.quotas, needs)
	}
	return int32(at), ""
}

// arrivalQuota gives what a job that may arrive uses of Slurm's limits: as one of its tenant's account if its own is unknown. A rule that
// forbids it may be one that its QOS lifts, which is unknown, too.
func (s *site) arrivalQuota(x *PastJob) int32 {
	j := x.Job
	j.Account = cmp.Or(j.Account, x.Tenant)
	at, _ := s.quotaOf(&j)
	return at
}

// countUse counts what is in use of Slurm's limits without the jobs that runs begin. It must follow the last quotaOf.
func (s *site) countUse() {
	s.inUse = s.rules.InUse()
	for i := range s.jobs {
		if s.jobs[i].running {
			use(s.inUse, s.quotas[s.jobs[i].quota], -1)
		}
	}
}

// use adds a quota to what is in use, times by.
func use(inUse []int64, q quota, by int64) {
	for i := range q {
		inUse[q[i].Limit] += by * q[i].Count
	}
}

// fits tells whether Slurm's limits leave room for a job of a quota.
func (r *run) fits(at int32) bool {
	for _, x := range r.quotas[at] {
		if r.inUse[x.Limit]+x.Count > x.Most {
			return false
		}
	}
	return true
}

// demand counts the GPUs that waiting jobs want within Slurm's limits: the rest is due to nobody.
func (r *run) demand() {
	if len(r.quotas) == 1 {
		return
	}
	left := append(r.scratch.inUse[:0], r.inUse...)
	r.scratch.inUse = left
	for i := range r.accounts {
		r.accounts[i].waiting = r.accounts[i].free
	}
	for t := range r.clocks {
		for _, x := range r.clocks[t].lines {
			n := int64(x.jobs)
			for _, need := range r.quotas[x.quota] {
				n = min(n, max(need.Most-left[need.Limit], 0)/need.Count)
			}
			if n > 0 && x.quota > 0 {
				use(left, r.quotas[x.quota], n)
				r.account(int32(t), r.poolOf(x.shape)).waiting += float64(n) * float64(r.shapes[x.shape].gpus)
			}
		}
	}
}
