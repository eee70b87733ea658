package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Status is the state of a case in the snapshot, its record and its lease. It repeats what many steps read, because cases are large and
// walking over all of them costs most.
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
	Asks    cluster.MicroGPU  // GPUs that it asks for, in devices; 0 if it can never have them: it costs the accounts nothing
	Held    cluster.MicroGPU  // GPUs that it holds, in devices: see Facts.HeldIn
	Rho     cluster.Rho       // its own
	Order   *cluster.Override // the administrator's order that counts for it: see cluster.Overrides.Of; nil = none
}

// Ordered reports whether an administrator's order of a kind is in force for the case.
func (st *Status) Ordered(kind cluster.OverrideKind) bool {
	return st.Order != nil && st.Order.Kind == kind
}

// Ours reports whether a case belongs to a control level. NoReclaim jobs belong to FullControl.
func (st *Status) Ours(touch cluster.Control) bool { return ours(st.Control, touch) }

func ours(c, touch cluster.Control) bool {
	return c == touch || touch == cluster.FullControl && c == cluster.NoReclaim
}

// Eligibility is where a job could run, and why a waiting job could not be granted a lease now.
type Eligibility struct {
	Eligible bool // it could be granted a lease now
	Probes   Probe
	Shape    int              // of its request; set where it may be placed
	GPUs     cluster.MicroGPU // that it counts for, in devices: it asks for them, or for whole nodes
	Pools    []int            // that could serve it; for a running job its own
	May      []int            // pools that could serve it, wherever it runs; set if a policy allocates them
	Gate     *Gate            // where Slurm's rules let a waiting job start; nil = no rule concerns it
	Why      cluster.Code
	Note     string
	Until    cluster.Instant
	For      cluster.JobKey  // with ReasonRefused: the job of its kind that was tried last
	First    cluster.Instant // when it first became eligible; 0 = not yet
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

// Queued is where a case queues for GPUs.
type Queued struct {
	Tenant TenantIndex
	User   UserIndex
	Party  PartyIndex // -1 = none
	Queue  QueueIndex // -1 = none
}

// Mark is what the choice finds for a case.
type Mark struct {
	Signal      string         // of the notice; "" = no signal is sent
	SignalTo    string         // the processes that get it (see cluster.Settings)
	Beneficiary cluster.JobKey // the job for which its lease was recalled in this round
	Terms       int            // leases of this round
	Stoppable   bool           // it may be stopped when its lease ends
	Began       bool           // its lease begins in this round
	Noticed     bool           // its notice is due in this round
	Claimed     bool           // GPUs are kept for it; set for cells only
	Together    bool           // it could begin on more nodes than it needs, or under more switches, and waits for fewer
	Forgiven    bool           // it may have the nodes of its last failed grant again
	Slice       *cluster.Slice // its new lease is for this part of a GPU; nil = for what it asks for
}
