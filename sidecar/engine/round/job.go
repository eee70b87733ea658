package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Job is what a round works out about a case: it is what the steps write on. It repeats what many of them ask: cases are
// large, and to walk over all of them is what costs most.
type Job struct {
	Status                 // written when the books are opened
	Eligibility            // by eligible
	Outcome                // by who chooses
	Party       PartyIndex // by entitle
	Queue       QueueIndex // by entitle
	Dear        bool       // by budget: its pool cannot afford to stop it
	Stoppable   bool       // by budget, and by who grants or recalls a lease: it may be stopped when its lease ends
}

// Status is what the snapshot, the record and the lease of a case tell.
type Status struct {
	Control cluster.Control
	Live    bool // in Slurm, and not done
	Waits   bool // live, with the state waiting
	Runs    bool // live, running or suspended
	Tenant  TenantIndex
	GPUs    int               // that it asks for; 0 of one that can never have them: it costs the books nothing
	Held    int               // GPUs that it holds
	Rho     cluster.Rho       // its own
	Order   *cluster.Override // an administrator's that is in force for it; nil = none
}

// Eligibility is where a job could run, and of one that waits and could be granted no lease now, why.
type Eligibility struct {
	Eligible bool  // it could be granted a lease now
	Shape    int   // of what it asks for; set where it may be placed
	Pools    []int // that could serve it; of a job that runs the one on which it does
	May      []int // pools that could serve it, wherever it runs; set where a policy divides them
	Why      cluster.Code
	Note     string
	Until    cluster.Instant
}

// Outcome is what became of a job in a round of choosing.
type Outcome struct {
	Began       bool           // its lease begins in this round
	Noticed     bool           // its notice is due in this round
	Claimed     bool           // GPUs are kept for it; noted of cells only
	Beneficiary cluster.JobKey // for whom its lease was recalled in this round
}

// Ordered tells whether an administrator's order of a kind is in force for the case.
func (j *Job) Ordered(kind cluster.OverrideKind) bool {
	return j.Order != nil && j.Order.Kind == kind
}

// Ours tells whether a case belongs to a round of choosing.
func (j *Job) Ours(touch cluster.Control) bool {
	return j.Control == touch || touch == cluster.FullControl && j.Control == cluster.NoReclaim
}
