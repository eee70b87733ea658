package baseline

// newQuotaStatic makes ASTRAEA's YARN-CS (§6.1.5: "a static quota strategy is adopted to allocate
// resources according to users' weights"). Every tenant's jobs run within its quota, whole GPUs
// by weight, first come, first served. GPUs that a tenant leaves idle stay idle. Nothing is
// preempted.
//
// Left open by the paper, and chosen for the baseline: a job that does not fit is skipped
// (waiting behind it more than doubles the mean completion time on our traces). A job with more
// GPUs than its tenant's quota, which could never run, runs once its tenant has no other job on
// that model.
func newQuotaStatic(Options) Rule {
	return func(r *Round) {
		r.Hold()
		if !r.Idle() {
			return
		}
		b := r.budgets(func(*Job) bool { return true })
		for k := range r.Jobs {
			j := &r.Jobs[k]
			if j.Lease != nil || j.Tenant < 0 {
				continue
			}
			may := func(p int) bool { return b.within(j, j.GPUs, p) || b.holds[p][j.Tenant] == 0 }
			if p := r.Start(j, 0, may); p >= 0 {
				b.holds[p][j.Tenant] += j.GPUs
			}
		}
	}
}
