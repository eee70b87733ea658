package cluster

// RequeueCause is why a job was requeued that fairlease did not requeue.
type RequeueCause string

// The causes. Slurm shows the same for a requeue by the job itself, by its owner, by a recovery agent and by an administrator.
const (
	ByOwner       RequeueCause = ""      // its owner or an administrator
	ByNodeFailure RequeueCause = "node"  // one of its nodes is down, drained or gone
	BySlurm       RequeueCause = "slurm" // as ByOwner, or Slurm itself: it may preempt there, or the job is expedited
)

// RequeuedAtStart is the reason of a failed grant whose job did start, but was requeued in its first minute, not by fairlease. Slurm has no
// such reason.
const RequeuedAtStart = "RequeuedAtStart"

// Requeues are the requeues of a job that fairlease did not order. Only the journal tells: in Slurm's records they look like its own.
// They are nobody's preemption. Replace it, never modify it.
type Requeues struct {
	Count int          `json:"count"`           // of the job's restarts
	At    Instant      `json:"at,omitzero"`     // when the newest of them was seen, at the latest
	Cause RequeueCause `json:"cause,omitempty"` // of the newest
	Node  string       `json:"node,omitempty"`  // the failed one
	// Preempted counts those that may have been preemptions by Slurm: where it preempts by itself, or fairlease only observes.
	Preempted int `json:"preempted,omitempty"`
	// Restart is the job's restart count since the newest of them. Ran is the run time of the attempts up to it: with the requeue
	// Slurm's time limit began anew.
	Restart int  `json:"restart"`
	Ran     Span `json:"ran,omitempty"`
	// Young is true if the newest came in the first minute of an attempt.
	Young bool `json:"young,omitempty"`
}

// RequeuedByOthers tells whether the newest requeue of a job was not ordered by fairlease.
func (r *Record) RequeuedByOthers() bool {
	return r.Others != nil && r.Others.Restart == r.Restarts
}

// Preemptions counts the requeues of a job that were stops by a scheduler, or may have been.
func (r *Record) Preemptions() int {
	if r.Others == nil {
		return r.Restarts
	}
	return r.Restarts - r.Others.Count + r.Others.Preempted
}

// RanInLimit gives the run time of ended attempts that counts against the job's time limit. A requeue that fairlease did not order
// lets the limit begin anew, as in Slurm: jobs that requeue themselves shortly before their limit rely on it.
func (r *Record) RanInLimit() Span {
	if r.Others == nil {
		return r.Ran
	}
	return max(r.Ran-r.Others.Ran, 0)
}
