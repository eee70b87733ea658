package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// attemptsByCase assigns every attempt of the history to its job: the same id and user, and of several
// such jobs the one that fits in time.
func attemptsByCase(s *cluster.Snapshot) map[int][]cluster.Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	ids := make([]cluster.JobID, len(s.Attempts))
	for k := range s.Attempts {
		ids[k] = s.Attempts[k].ID
	}
	slices.SortFunc(ids, cluster.JobID.Compare)
	cases := make([][]int, len(ids)) // of each id, by key: oldest first
	for i := range s.Cases {
		if k, ok := slices.BinarySearchFunc(ids, s.Cases[i].Record.ID, cluster.JobID.Compare); ok {
			cases[k] = append(cases[k], i)
		}
	}
	out := map[int][]cluster.Attempt{}
	for _, a := range s.Attempts {
		best := -1
		at, _ := slices.BinarySearchFunc(ids, a.ID, cluster.JobID.Compare)
		for _, i := range cases[at] {
			r := &s.Cases[i].Record
			if r.User != a.User || earlier(r, &a, s.Ledger.At) { // Slurm reuses ids
				continue
			}
			if best = i; r.Submit == a.Submit || r.HeldSince == a.Start {
				break
			}
		}
		if best >= 0 {
			out[best] = append(out[best], a)
		}
	}
	return out
}

// earlier tells whether an attempt is of a job that had the record's id before it, or of the job itself before its last requeue: slurmdbd may
// learn late, or never, that it was over.
func earlier(r *cluster.Record, a *cluster.Attempt, from cluster.Instant) bool {
	const blur = 2 * cluster.Second // Slurm's times are whole seconds
	return a.Submit < r.Submit && a.Start != r.HeldSince && a.Submit.Add(blur) < from
}

// startedSince tells whether the current or last attempt of a job began after the last look.
// Slurm's seconds are whole: a job that waited then may seem to have begun before.
func startedSince(r *cluster.Record, j *cluster.Job, from cluster.Instant) bool {
	switch r.State {
	case cluster.Done:
		return false
	case cluster.Waiting, cluster.Configuring, "":
		return true
	}
	return j.Start >= from && j.Start > r.HeldSince
}

// began gives the start of the current or last attempt of a job. If Slurm gives only the second,
// a job granted in the last round began as early in that second as possible: gates open at once.
func began(r *cluster.Record, j *cluster.Job) cluster.Instant {
	if r.Acted > 0 && r.Acted < j.Start.Add(j.Blur) {
		return max(j.Start.Add(-j.Blur), r.Acted)
	}
	return j.Start
}

// endOf gives the end of an attempt of the history. slurmdbd may never learn that of a job that slurmctld lost.
func endOf(b *books, r *cluster.Record, c *cluster.Case, a *cluster.Attempt) cluster.Instant {
	switch {
	case a.End > 0:
		return min(a.End, b.now)
	case forgot(b, r, c):
		return lost(b, r, a.Start)
	}
	return b.now
}

// forgot tells whether slurmctld does not know the last attempt of a job, which may have run when it was started: it no longer lists
// the job, or as one that waits for that attempt.
func forgot(b *books, r *cluster.Record, c *cluster.Case) bool {
	return b.boot > 0 && (c.Gone || c.Job.State == cluster.Waiting && c.Job.Restarts == r.Restarts)
}

// lost gives when an attempt ended that slurmctld forgot when it was started. The nodes went on with it until then, and end
// jobs that slurmctld does not know. It may have ended earlier by itself, and had a time limit.
func lost(b *books, r *cluster.Record, start cluster.Instant) cluster.Instant {
	end := b.boot
	if r.UserLimit > 0 {
		end = min(end, start.Add(r.UserLimit+r.Suspend))
	}
	return min(max(end, b.run.charged), b.now)
}

// endOfStretch gives the end of a finished attempt. For our requeue it is when that was carried
// out, or the last look if that is unknown. For a job that disappeared it is the last look, unless
// slurmctld lost it. For a requeue by others it is the new submit time, which Slurm sets when the job
// has cleaned up, so this is an upper bound. For a finished job it is Slurm's end time.
func (b *books) endOfStretch(r *cluster.Record, c *cluster.Case, l *cluster.Lease) cluster.Instant {
	j := &c.Job
	end := b.now
	switch {
	case forgot(b, r, c) && l.State != cluster.Ending:
		end = lost(b, r, r.HeldSince)
	case c.Gone || j.Restarts > r.Restarts && l.State == cluster.Ending:
		end = max(b.run.charged, r.Acted)
	case j.Restarts > r.Restarts && j.Submit > 0:
		end = j.Submit
	case j.State == cluster.Done || j.State == cluster.Completing:
		if j.End > 0 {
			end = j.End
		}
	}
	return min(max(end, b.run.charged), b.now)
}
