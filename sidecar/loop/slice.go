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
	if !s.Runs && (j.State == cluster.Running || j.State == cluster.Suspended) {
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
		// Slurm holds a job that is requeued while it is suspended. A look may have seen it end before.
		if requeued := r.State == cluster.Running && j.Restarts > r.Restarts || r.State == cluster.Completing; requeued && !s.Runs && j.Inactive != "" {
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

// recallSlice takes a job's part of a GPU from what it had before a dump of the journal was restored. Of a job that agreed to turns, has shards and is
// suspended, but is not known to this daemon either, it takes that it was suspended for a partner: else nobody would resume it.
func recallSlice(r *cluster.Record, j *cluster.Job, m *cluster.State) {
	if r.Slice != nil || m.Restored == nil {
		return
	}
	k, ok := slices.BinarySearchFunc(m.Had, j.ID, func(h cluster.Record, id cluster.JobID) int { return h.ID.Compare(id) })
	switch {
	case ok && m.Had[k].Slice != nil && m.Had[k].User == j.User && m.Had[k].Submit <= j.Submit:
		r.Slice = m.Had[k].Slice
	case j.State == cluster.Suspended && j.Hints != nil && j.Hints.Share && j.Request.Shards > 0 && !j.Request.MPS:
		own := j.Request
		own.Size, own.Shards, own.PerNode = cluster.Whole(1), 0, 1
		r.Slice = &cluster.Slice{Ask: "gres/gpu:1", Request: own, Shards: j.Request.Shards}
	}
}
