package field

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// lastSeen is the maximum age of the evidence that GPUs are idle.
const lastSeen = 10 * cluster.Minute

// Resting reports whether all GPUs of a running job have been idle for as long as the settings allow. GPUs whose
// counters are old, missing or contradictory are not idle.
func Resting(s *cluster.Snapshot, i int) bool {
	if s.Settings.IdleReclaim == 0 {
		return false
	}
	j := &s.Cases[i].Job
	idle, since := Idle(s, i)
	return idle > 0 && idle == j.GPUsHeld() && s.Now.Sub(since) >= s.Settings.IdleReclaim
}

// Idle gives the number of a job's GPUs that are idle, and since when all of these have been.
func Idle(s *cluster.Snapshot, i int) (idle int, since cluster.Instant) {
	j := &s.Cases[i].Job
	at, _ := slices.BinarySearchFunc(s.Uses, j.ID, func(u cluster.GPUUse, id cluster.JobID) int { return u.Job.Compare(id) })
	for ; at < len(s.Uses) && s.Uses[at].Job == j.ID; at++ {
		if u := &s.Uses[at]; u.Start == j.Start && s.Now.Sub(u.At) <= lastSeen {
			idle, since = idle+u.Idle, max(since, u.IdleSince)
		}
	}
	return idle, since
}
