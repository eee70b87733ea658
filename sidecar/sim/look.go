package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// minJobAge is how long Slurm lists a job that is done.
const minJobAge = 5 * cluster.Minute

// Observe implements loop.Cluster.
func (v *Virtual) Observe(_ context.Context, since cluster.Instant) (cluster.Sighting, error) {
	v.Advance(v.now)
	v.unlist()
	s := cluster.Sighting{Now: v.now, Cluster: "virtual", Nodes: slices.Clone(v.nodes), Partitions: slices.Clone(v.partitions),
		Accounts: slices.Clone(v.accounts), Reservations: slices.Clone(v.reservations), Unchanged: !v.changed}
	v.changed = false
	s.Jobs = make([]cluster.Job, len(v.listed))
	for i, j := range v.listed {
		s.Jobs[i] = j.job
	}
	if since > 0 {
		first := v.firstAttempt(since)
		if v.History || v.now.Sub(since) > minJobAge/2 {
			s.Attempts = slices.Clone(v.attempts[first:])
		}
		if v.Forget {
			v.attempts = v.attempts[first:]
		}
	}
	return s, nil
}

// firstAttempt gives the index of the first attempt that ended at since or later.
func (v *Virtual) firstAttempt(since cluster.Instant) int {
	i, _ := slices.BinarySearchFunc(v.attempts, since, func(a cluster.Attempt, t cluster.Instant) int { return cmp.Compare(a.End, t) })
	return i
}

// unlist takes off the list what has been done for long.
func (v *Virtual) unlist() {
	v.listed = slices.DeleteFunc(v.listed, func(j *work) bool {
		old := j.job.State == cluster.Done && v.now.Sub(j.job.End) >= minJobAge
		if old && v.Forget {
			delete(v.jobs, j.job.ID)
		}
		return old
	})
}
