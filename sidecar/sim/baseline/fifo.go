package baseline

// newFIFO makes the simplest scheduler: first come, first served, without preemption. A job that
// waits for GPUs of a model blocks all later ones for that model. A job requeued by a failure
// keeps its place.
func newFIFO(Options) Rule {
	return func(r *Round) {
		r.Hold()
		shut := make([]bool, r.Pools)
		open := func(p int) bool { return !shut[p] }
		for k := range r.Jobs {
			if j := &r.Jobs[k]; j.Lease == nil && r.Start(j, 0, open) < 0 {
				for _, p := range j.Pools {
					shut[p] = true
				}
			}
		}
	}
}
