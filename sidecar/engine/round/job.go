package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Job is the round's working data of a case, which the steps fill in. It repeats fields that many steps read,
// because cases are large and walking over all of them costs most.
type Job struct {
	Is        Status      // written when the books are opened
	Can       Eligibility // by eligible
	Got       Outcome     // by the chooser
	Party     PartyIndex  // by entitle
	Queue     QueueIndex  // by entitle
	Mark      Marks       // by the chooser
	Dear      bool        // by budget: its pool cannot afford to stop it
	Unpaid    bool        // by budget: its pool could not afford to stop it when its lease ends
	Stoppable bool        // by budget, and by the code that grants or recalls a lease: it may be stopped when its lease ends
}

// Status is the state of a case in the snapshot, its record and its lease.
type Status struct {
	Control cluster.Control
	Live    bool  // in Slurm, and not done
	Waits   bool  // live, with the state waiting
	Runs    bool  // live, running or suspended
	Boosted bool  // by an administrator
	Readied bool  // its nodes are made ready: it holds them, and has not begun
	User    int32 // a UserIndex; small, as there is one for each of many cases
	Before  int32 // the index of the case in the last round if all of it but its record is the same: see cluster.Snapshot.Before; -1 = unknown
	Tenant  TenantIndex
	GPUs    int               // that it asks for; 0 if it can never have them: it costs the books nothing
	Held    int               // GPUs that it holds
	Rho     cluster.Rho       // its own
	Order   *cluster.Override // the administrator's order that counts for it: see cluster.Overrides.Of; nil = none
}

// Eligibility is where a job could run, and why a waiting job could not be granted a lease now.
type Eligibility struct {
	Eligible bool // it could be granted a lease now
	Probes   Probe
	Shape    int   // of its request; set where it may be placed
	Pools    []int // that could serve it; for a running job its own
	May      []int // pools that could serve it, wherever it runs; set if a policy allocates them
	Gate     *Gate // where Slurm's rules let a waiting job start; nil = no rule concerns it
	Why      cluster.Code
	Note     string
	Until    cluster.Instant
	For      cluster.JobKey // with ReasonRefused: the job of its kind that was tried last
}

// Gate is where Slurm's rules let a job start.
type Gate struct {
	Partitions []string // that let it start
	MaxNodes   int      // the largest number of nodes that one of these allows; 0 = no limit
}

// Probe says whether a job is tried although Slurm did not start jobs of its kind. Until it starts, it is due nothing.
type Probe int8

// Idle probes take only idle GPUs, others also GPUs of leases that end with their terms.
const (
	NoProbe Probe = iota
	IdleProbe
	TermProbe
)

// Marks are the results of the choice for a job that are true or false. They lie beside others, to save memory.
type Marks struct {
	Began   bool // its lease begins in this round
	Noticed bool // its notice is due in this round
	Claimed bool // GPUs are kept for it; set for cells only
}

// Outcome is the result of the choice for a job.
type Outcome struct {
	Signal      string         // of the notice; "" = no signal is sent
	SignalTo    string         // the processes that get it (see cluster.Settings)
	Beneficiary cluster.JobKey // the job for which its lease was recalled in this round
}

// Ordered reports whether an administrator's order of a kind is in force for the case.
func (j *Job) Ordered(kind cluster.OverrideKind) bool {
	return j.Is.Order != nil && j.Is.Order.Kind == kind
}

// Ours reports whether a case belongs to a control level. NoReclaim jobs belong to FullControl.
func (j *Job) Ours(touch cluster.Control) bool { return ours(j.Is.Control, touch) }

func ours(c, touch cluster.Control) bool {
	return c == touch || touch == cluster.FullControl && c == cluster.NoReclaim
}
