package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Job is what a round works out about a case. It repeats what many steps ask: cases are large, and to walk over all
// of them is what costs most.
type Job struct {
	Touch     cluster.Touch
	Live      bool              // in Slurm, and not done
	Waits     bool              // there, with the state waiting
	Runs      bool              // there, running or suspended
	Eligible  bool              // it could be granted a lease now
	Began     bool              // its lease begins in this round
	Noticed   bool              // its notice is due in this round
	Stoppable bool              // its job may be stopped when its lease ends
	Dear      bool              // its pool cannot afford to stop it
	Tenant    int               // index into tenants, -1 = none
	Party     int               // index into parties, -1 = none
	Queue     int               // index into queues, -1 = none
	GPUs      int               // that it asks for; 0 of one that can never have them: it costs the books nothing
	Held      int               // that it holds
	Rho       cluster.Rho       // its own
	Order     *cluster.Override // that is in force for it; nil = none
	Shape     int               // of what it asks for; set where it may be placed
	Pools     []int
	May       []int           // pools that could serve it, wherever it runs; set where a policy divides them
	Passed    *Passed         // why it was given nothing; nil = it was, or it could not be
	Rank      int             // place in its tenant's queue
	Claimed   bool            // GPUs are kept for it; noted of cells only
	Heir      cluster.JobKey  // for whom its lease was recalled in this round
	Cell      *cluster.Reason // why it has none of its VC's cells, nor lent GPUs
	Why       cluster.Code
	Note      string
	Until     cluster.Instant
}

// Ordered tells whether an administrator's order of a kind is in force for the case.
func (j *Job) Ordered(kind cluster.OverrideKind) bool {
	return j.Order != nil && j.Order.Kind == kind
}

// Ours tells whether a case belongs to a round of choosing.
func (j *Job) Ours(touch cluster.Touch) bool {
	return j.Touch == touch || touch == cluster.Act && j.Touch == cluster.Keep
}
