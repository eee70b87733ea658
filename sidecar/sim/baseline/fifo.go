package baseline

// newFIFO makes the simplest scheduler: first come, first served, without preemption. A job that
// waits for GPUs of a model blocks all later ones for that model. A job requeued by a failure
// keeps its place.
func newFIFO(Options) rule {
	return func(r *round) {
		r.hold()
		shut := make([]bool, r.pools)
		open := func(p int) bool { return !shut[p] }
		for k := range r.jobs {
			if j := &r.jobs[k]; j.lease == nil && r.start(j, 0, open) < 0 {
				for _, p := range j.pools {
					shut[p] = true
				}
			}
		}
	}
}
