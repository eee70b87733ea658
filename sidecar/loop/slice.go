package loop

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// takeSlice makes what Slurm shows of a job that takes turns on a GPU what its lease is: it runs while it is suspended for its partner, and
// while it waits for a lease it asks for what its user wrote. A job has no slice any more that waits and asks for anything else, or that holds a
// whole GPU.
func takeSlice(j *cluster.Job, r *cluster.Record, leases []cluster.Lease, at cluster.Instant) {
	s := r.Slice
	if s == nil {
		return
	}
	j.Version = 0 // its case is not of the job alone
	if s.Ran > 0 && (j.State == cluster.Running || j.State == cluster.Suspended) {
		now, ran := *s, j.Ran(at)
		if now.Took = max(ran-s.Ran, 0); now.Took > 0 && s.Paused {
			now.Taken++
		}
		if now.Ran, now.Paused = max(ran, s.Ran), j.State == cluster.Suspended; now != *s {
			r.Slice = &now
		}
	}
	switch l := grantOf(r, leases); j.State {
	case cluster.Waiting:
		switch {
		case l != nil && !cluster.SizeHeld(l.Nodes).IsWhole(): // its grant may not have been carried out
		case j.Request.Shards != s.Shards:
			r.Slice = nil
			return
		case l == nil:
			j.Request = s.Request
		}
		// Slurm holds a job that is requeued while it is suspended.
		if r.State == cluster.Running && !s.Runs && j.Inactive != "" && j.Restarts > r.Restarts {
			held := *s
			held.Held, r.Slice = true, &held
		}
	case cluster.Suspended:
		j.State, j.Paused = cluster.Running, true
	case cluster.Running, cluster.Configuring:
		if len(j.Holds) > 0 && j.Holds[0].Size.IsWhole() {
			r.Slice = nil
			return
		}
	}
	j.Ask = s.Ask
}

// noteAct notes an action of ours on a job that was carried out since the last round.
func noteAct(r *cluster.Record, a act) {
	if !a.suspends {
		r.Acted = a.at
	} else if r.Slice != nil && !r.Slice.Runs {
		paused := *r.Slice
		paused.Paused, r.Slice = true, &paused
	}
}

// recallSlice takes a job's part of a GPU from what it had before a dump of the journal was restored: else nobody would resume it.
func recallSlice(r *cluster.Record, j *cluster.Job, had []cluster.Record) {
	if r.Slice != nil || len(had) == 0 {
		return
	}
	k, ok := slices.BinarySearchFunc(had, j.ID, func(h cluster.Record, id cluster.JobID) int { return h.ID.Compare(id) })
	if ok && had[k].User == j.User && had[k].Submit <= j.Submit {
		r.Slice = had[k].Slice
	}
}
