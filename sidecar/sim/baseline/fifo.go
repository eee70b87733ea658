package baseline

// newFIFO makes the plainest scheduler: first come, first served, to the end. Nobody who
// wants GPUs of a model overtakes the first who waits for them; nothing is preempted. A
// job that a failure put back keeps its place.
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
