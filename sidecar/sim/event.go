package sim

import "github.com/fairlease/fairlease/sidecar/cluster"

// What is a kind of Event.
type What string

// The kinds of event.
const (
	Submitted What = "submitted"
	Started   What = "started"
	Requeued  What = "requeued" // an attempt is over, the job goes on
	Ended     What = "ended"    // the job is over; Start is 0 if it did not run then
	Joined    What = "joined"   // it works on another's GPUs from now on
	Parted    What = "parted"   // it does no longer: as an attempt that is over
)

// Event is one thing that happened to a job, for whoever keeps the score.
type Event struct {
	At   cluster.Instant
	What What
	Job  cluster.JobID
	Work *Work // what was submitted; it stays the cluster's
	// Outcome is Slurm's final state of an attempt that is over, of Requeued "REQUEUED".
	Outcome string

	// Of Started and Joined, and of an attempt that is over:
	Start cluster.Instant
	Holds []cluster.Holding // stays the cluster's
	Host  cluster.JobID     // of Joined and Parted: whose GPUs they are

	// Of an attempt that is over. Worked is the work that counts and Lost the work that
	// has to be done again, both as time on the reference model; the sum of Worked over a
	// completed job's attempts is its Runs. The costs are time.
	Reclaimed             bool // by the loop, for others
	Worked, Lost          cluster.Span
	Cold, Loading, Saving cluster.Span
	// Terminating is how long after At a job held its GPUs still, to save.
	Terminating cluster.Span
}

// tell tells whoever watches.
func (v *Virtual) tell(e Event) {
	if v.Watch != nil {
		v.Watch(e)
	}
}
