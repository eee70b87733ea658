package loop

import "github.com/fairlease/fairlease/sidecar/cluster"

// takeSlice makes what Slurm shows of a job that takes turns on a GPU what its lease is: it runs while it is suspended for its partner, and
// while it waits for a lease it asks for what its user wrote. A job that asks for or holds anything else has no slice any more.
func takeSlice(j *cluster.Job, r *cluster.Record, leases []cluster.Lease) {
	s := r.Slice
	if s == nil {
		return
	}
	j.Version = 0 // its case is not of the job alone
	switch j.State {
	case cluster.Waiting:
		if j.Request.Shards != s.Shards {
			r.Slice = nil
		} else if grantOf(r, leases) == nil {
			j.Request, j.Ask = s.Request, s.Ask
		}
	case cluster.Running, cluster.Suspended, cluster.Configuring:
		if len(j.Holds) != 1 || j.Holds[0].Size.IsWhole() {
			r.Slice = nil
		} else if j.State == cluster.Suspended {
			j.State, j.Paused = cluster.Running, true
		}
	}
}
