package cluster

// Code names a reason. Reasons are data: people get words from `explain`,
// tests and SQL read the code and the numbers.
type Code string

// Reasons of jobs that hold a lease.
const (
	BecauseGranted  Code = "granted"  // its turn: the tenant was furthest behind
	BecauseRenewed  Code = "renewed"  // still its turn, or nobody needed the GPUs
	BecauseHolding  Code = "holding"  // in the middle of its term
	BecauseAdopted  Code = "adopted"  // ran before we saw it
	BecauseStarting Code = "starting" // granted, not yet seen running
	BecauseNotice   Code = "notice"   // not renewed: others are further behind
	BecauseEnding   Code = "ending"   // requeue ordered, GPUs not free yet
	BecauseRecalled Code = "recalled" // requeue ordered in the middle of the term, for a first lease
	BecauseExempt   Code = "exempt"
	BecauseKept     Code = "kept" // may not be requeued: never reclaimed
)

// Reasons of jobs that wait.
const (
	BecauseBehind     Code = "behind"     // others are further behind; see Until
	BecauseCells      Code = "cells"      // its VC has no free cells that it fits in, and nothing fits that is lent
	BecauseBudget     Code = "budget"     // so too; its stop budget is gone, and what is lent is likely to be recalled before its time limit ends
	BecauseLost       Code = "lost"       // so too, but for cells that its VC lost to bad hardware
	BecauseUnsafe     Code = "unsafe"     // promises to VCs do not add up: nothing is granted until they do
	BecauseShape      Code = "shape"      // enough GPUs may be free, not where it fits
	BecauseClaim      Code = "claim"      // GPUs are kept for it at Until
	BecauseClaimed    Code = "claimed"    // what is free is kept for another gang
	BecauseBurst      Code = "burst"      // its tenant holds the most that it may while others wait
	BecauseLane       Code = "lane"       // it could not be stopped any more, and the rest is kept for new jobs
	BecauseGather     Code = "gather"     // GPUs are gathered for it, as jobs end that cannot be stopped
	BecauseLimit      Code = "limit"      // the limit of reclaims a round is reached
	BecauseThreshold  Code = "threshold"  // not far enough behind to reclaim
	BecauseInactive   Code = "inactive"   // held, dependency, begin time, array limit
	BecauseFailed     Code = "failed"     // a grant did not start; tried again at Until
	BecauseIdleOnly   Code = "idle_only"  // it asked for idle GPUs only, and there are none where it fits
	BecauseFrozen     Code = "frozen"     // by an administrator
	BecauseTooBig     Code = "too_big"    // no healthy nodes could ever hold it
	BecauseReserved   Code = "reserved"   // its time limit runs into reservations wherever it could run
	BecauseUntouched  Code = "untouched"  // not ours to lease
	BecauseCompleting Code = "completing" // its last attempt still cleans up
	BecauseDone       Code = "done"
)

// Reasons of actions that are no verdict on a job's turn.
const (
	BecauseGate     Code = "gate"     // waits for a lease: keep the gate shut
	BecauseNoStart  Code = "no_start" // granted, but Slurm did not start it in time
	BecauseTidy     Code = "tidy"     // no longer needed
	BecauseHandOver Code = "hand_over"
	BecauseFence    Code = "fence" // keeps jobs of other partitions off a virtual cluster's cells
)

// Reason says why, in numbers.
type Reason struct {
	Code Code   `json:"code"`
	Pool string `json:"pool,omitempty"`
	// Need is how many GPUs the job wants, Free how many it could have had.
	Need int `json:"need,omitempty"`
	Free int `json:"free,omitempty"`
	// Behind is how far its tenant is behind, in time at its entitlement;
	// Other and OtherBehind are the tenant that went before it. Where a policy that knows jobs only
	// divides unlike GPU models, Queue says that it is of the job itself, before which OtherJob went.
	Behind      Span   `json:"behind,omitempty"`
	Other       string `json:"other,omitempty"`
	OtherBehind Span   `json:"other_behind,omitempty"`
	Queue       Queuer `json:"queue,omitempty"`
	OtherJob    JobKey `json:"other_job,omitempty"`
	Rho         Rho    `json:"rho,omitempty"` // the job's own
	Rank        int    `json:"rank,omitempty"`
	// Until is when it may change: the end of the next lease that could serve
	// it, of its own lease, of a back-off.
	Until Instant `json:"until,omitempty"`
	// For is the job that gets the GPUs, or that holds them.
	For JobKey `json:"for,omitempty"`
	// To is the GPU model to which the job moves when its lease in Pool is over; Speed how fast it
	// is there, in thousandths of how fast it is in Pool, 0 = not known. Trial is true where it is
	// to show how fast its kind is there.
	To    string `json:"to,omitempty"`
	Speed int64  `json:"speed_milli,omitempty"`
	Trial bool   `json:"trial,omitempty"`
	// Cell is the type of cell that is missing, Chain its chain; For then has one of them, by
	// Right, until Until. Cut says that not all ways to choose cells were weighed.
	Cell  string     `json:"cell,omitempty"`
	Chain string     `json:"chain,omitempty"`
	Right LeaseClass `json:"right,omitempty"`
	Cut   bool       `json:"cut,omitempty"`
	// Spent is what stops have cost it, Fits the longest time limit with which it would be lent GPUs; 0 = none is.
	Spent Span   `json:"spent,omitempty"`
	Fits  Span   `json:"fits,omitempty"`
	Note  string `json:"note,omitempty"` // words of Slurm or of an administrator
}

// Queuer says who queues for GPUs.
type Queuer string

// Who queues.
const (
	TenantQueues Queuer = ""
	JobQueues    Queuer = "job"
)
