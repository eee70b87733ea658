package sim

import "github.com/fairlease/fairlease/sidecar/cluster"

// What is a kind of Event.
type What string

// The kinds of event.
const (
	Submitted What = "submitted"
	Started   What = "started"
	Requeued  What = "requeued" // an attempt ended, the job continues
	Ended     What = "ended"    // the job ended; Start is 0 if it did not run then
	Joined    What = "joined"   // it works on another job's GPUs from now on
	Parted    What = "parted"   // it no longer does: as for an ended attempt
)

// Event is one event of a job, for scores.
type Event struct {
	At   cluster.Instant
	What What
	Job  cluster.JobID
	Work *Work // as submitted; owned by the cluster
	// Outcome is Slurm's final state of an ended attempt; "REQUEUED" for Requeued.
	Outcome string

	// For Started and Joined, and for an ended attempt:
	Start cluster.Instant
	Holds []cluster.Holding // owned by the cluster
	Host  cluster.JobID     // of Joined and Parted: the owner of the GPUs

	// For an ended attempt. Worked is the work that counts and Lost the work that must be
	// repeated, both as time on the reference model; the sum of Worked over a completed job's
	// attempts is its Runs. The costs are time.
	Reclaimed             bool // by the loop, for other jobs
	Worked, Lost          cluster.Span
	Cold, Loading, Saving cluster.Span
	// Terminating is how long after At a job still held its GPUs, to save.
	Terminating cluster.Span
}

// tell calls Watch.
func (v *Virtual) tell(e Event) {
	if v.Watch != nil {
		v.Watch(e)
	}
}
