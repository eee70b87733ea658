package cluster

// Code identifies a reason. Reasons are data: package explain words them for people; tests and
// SQL read the code and the numbers.
type Code string

// Reasons of jobs that hold a lease.
const (
	ReasonGranted  Code = "granted"  // its turn: the tenant was furthest behind
	ReasonRenewed  Code = "renewed"  // still its turn, or the GPUs were not needed
	ReasonHolding  Code = "holding"  // in the middle of its term
	ReasonAdopted  Code = "adopted"  // ran before we saw it
	ReasonStarting Code = "starting" // granted, not yet seen running
	ReasonFollows  Code = "follows"  // granted behind the job For on node Note: starts when that ends
	ReasonNotice   Code = "notice"   // not renewed: others are further behind
	ReasonEnding   Code = "ending"   // requeue ordered, GPUs not free yet
	ReasonRecalled Code = "recalled" // requeue ordered in mid-term, for another job's first lease
	ReasonExempt   Code = "exempt"
	ReasonKept     Code = "kept"   // must not be requeued: never reclaimed
	ReasonTurn     Code = "turn"   // has its turn on the GPU that it shares with For; as an action, its turn begins
	ReasonBeside   Code = "beside" // runs at the same time as For on their GPU
	ReasonPaused   Code = "paused" // is suspended while For has its turn on their GPU
)

// Reasons of jobs that wait.
const (
	ReasonBehind     Code = "behind"     // others are further behind; see Until
	ReasonCells      Code = "cells"      // its VC has no free cells where it fits, and no lent GPUs fit
	ReasonBudget     Code = "budget"     // same; its stop budget is used up, and lent GPUs would probably be recalled before its time limit ends
	ReasonLost       Code = "lost"       // same, because of cells that its VC lost to bad hardware
	ReasonUnsafe     Code = "unsafe"     // reservations of VCs exceed the hardware: no grants until that is repaired
	ReasonShape      Code = "shape"      // enough GPUs may be free, but not where it fits
	ReasonTogether   Code = "together"   // could begin on more nodes than it needs, or under more switches, and waits for fewer until Until at the latest
	ReasonClaim      Code = "claim"      // GPUs are kept for it at Until
	ReasonClaimed    Code = "claimed"    // the free GPUs are kept for another gang
	ReasonBurst      Code = "burst"      // its tenant holds its maximum while others wait
	ReasonLane       Code = "lane"       // it could never be stopped, and the remaining GPUs are kept for new jobs
	ReasonBound      Code = "bound"      // it could never be stopped, and such jobs hold what they may of the due of absent tenants; see Bound
	ReasonGather     Code = "gather"     // GPUs are gathered for it as unstoppable jobs end
	ReasonLimit      Code = "limit"      // the limit of reclaims per round is reached
	ReasonStops      Code = "stops"      // as many GPUs as may be were taken from running jobs within the hour; see Until
	ReasonThreshold  Code = "threshold"  // not far enough behind to reclaim
	ReasonInactive   Code = "inactive"   // held, dependency, begin time, array limit
	ReasonFailed     Code = "failed"     // a grant did not start; tried again at Until
	ReasonRefused    Code = "refused"    // Slurm does not start jobs of its kind; For is tried first, at Until
	ReasonUnstarted  Code = "unstarted"  // grants of its user or tenant have not started, and hold as many GPUs as they may
	ReasonIdleOnly   Code = "idle_only"  // it requested idle GPUs only, and none are idle where it fits
	ReasonSpent      Code = "spent"      // its tenant's budget is used up, and none are idle where it fits; see Budget
	ReasonFrozen     Code = "frozen"     // by an administrator
	ReasonTooBig     Code = "too_big"    // no set of healthy nodes could ever hold it
	ReasonRule       Code = "rule"       // Slurm's own rules do not let it start; Note names the rule
	ReasonReserved   Code = "reserved"   // its time limit runs into reservations wherever it could run
	ReasonUntouched  Code = "untouched"  // fairlease does not manage it
	ReasonCompleting Code = "completing" // its last attempt still cleans up
	ReasonDone       Code = "done"
)

// Reasons of actions other than decisions on a job's turn.
const (
	ReasonGate     Code = "gate"     // waits for a lease: keep the gate shut
	ReasonNoStart  Code = "no_start" // granted, but Slurm did not start it in time
	ReasonTidy     Code = "tidy"     // no longer needed
	ReasonHandOver Code = "hand_over"
	ReasonFence    Code = "fence" // keeps jobs of other partitions off a virtual cluster's cells
)

// Reason explains a decision in numbers.
type Reason struct {
	Code Code   `json:"code"`
	Pool string `json:"pool,omitempty"`
	// Need is how many GPUs the job wants, Free how many were available to it.
	Need GPUCount `json:"need,omitempty"`
	Free GPUCount `json:"free,omitempty"`
	// Behind is its tenant's deficit, as time at the tenant's entitlement. Other and OtherBehind
	// are the tenant that went first. Where a policy divides heterogeneous GPUs between jobs, not
	// tenants, Queue is set, Behind is of the job itself, and OtherJob went first. Of three jobs that take turns on a GPU, OtherJob is the third, beside
	// this one and For.
	Behind      Span   `json:"behind,omitempty"`
	Other       string `json:"other,omitempty"`
	OtherBehind Span   `json:"other_behind,omitempty"`
	Queue       Queuer `json:"queue,omitempty"`
	OtherJob    JobKey `json:"other_job,omitempty"`
	// Time is the part of the time that a job has on a GPU whose turns are not equal, in millionths; 0 = they are, or it takes none.
	Time MicroGPU `json:"time,omitempty"`
	// Inside says which jobs of its own tenant go first; nil = its place in the tenant's queue says all.
	Inside *Inside `json:"inside,omitempty"`
	Rho    Rho     `json:"rho,omitempty"` // the job's own
	Rank   int     `json:"rank,omitempty"`
	// Until is when the answer may change: the end of the next lease that could serve it, of its
	// own lease, or of a back-off.
	Until Instant `json:"until,omitempty"`
	// For is the job that gets or holds the GPUs.
	For JobKey `json:"for,omitempty"`
	// To is the GPU model where the job moves when its lease in Pool ends; Pool itself = from a GPU that it shares to another one. Speed is its speed
	// there relative to Pool, in thousandths; 0 = unknown. Trial is true if the move measures its
	// kind there.
	To    string `json:"to,omitempty"`
	Speed int64  `json:"speed_milli,omitempty"`
	Trial bool   `json:"trial,omitempty"`
	// Cell is the type of the missing cell, Chain its chain. For then holds one of them, by
	// Right, until Until. Cut is true if the search did not consider all choices of cells.
	Cell  string     `json:"cell,omitempty"`
	Chain string     `json:"chain,omitempty"`
	Right LeaseClass `json:"right,omitempty"`
	Cut   bool       `json:"cut,omitempty"`
	// Spent is what stops have cost it. Fits is the longest time limit with which it would get
	// lent GPUs; 0 = none.
	Spent Span   `json:"spent,omitempty"`
	Fits  Span   `json:"fits,omitempty"`
	Note  string `json:"note,omitempty"` // a message of Slurm or of an administrator, or a rule of Slurm's
	// Budget is that of its tenant, if it is used up; nil = it is not, or matters not.
	Budget *TenantBudget `json:"budget,omitempty"`
	// Bound is the limit of jobs that cannot be stopped, if it holds the job back; nil = it does not.
	Bound *BindLimit `json:"bound,omitempty"`
}

// BindLimit is why a job that could not be stopped gets no GPUs beyond its tenant's due.
type BindLimit struct {
	// Tenant is the one that wants most of what it is due, now or lately, and Kept the GPUs that are kept for all such tenants, until
	// Until if it stays away; 0 = it wants them now. Of these, jobs that cannot be stopped may hold Max, and hold Held.
	Tenant string   `json:"tenant"`
	Kept   MicroGPU `json:"kept"`
	Held   MicroGPU `json:"held,omitempty"`
	Max    MicroGPU `json:"max,omitempty"`
	Until  Instant  `json:"until,omitempty"`
}

// Queuer is the kind of claimant that queues for GPUs.
type Queuer string

// The kinds of claimants.
const (
	TenantQueues Queuer = ""
	JobQueues    Queuer = "job"
)

// Inside says which jobs of a job's own tenant go before it.
type Inside struct {
	// Site is true if its virtual cluster's own scheduler orders its jobs.
	Site bool `json:"site,omitempty"`
	// User is the user of its tenant that is served before its own, where users share equally.
	User string `json:"user,omitempty"`
	// Level is its level in its virtual cluster, if jobs of level Above go first.
	Level int32 `json:"level,omitempty"`
	Above int32 `json:"above,omitempty"`
}
