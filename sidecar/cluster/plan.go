package cluster

// Plan is the output of the engine for one round.
type Plan struct {
	Round int64   `json:"round"`
	At    Instant `json:"at,omitzero"`
	// State is the state to keep for the next round.
	State State `json:"state"`
	// Ended lists the leases that ended in this round, with their reasons.
	Ended []Lease `json:"ended,omitempty"`
	// Losses lists, by job, the work destroyed by stops that were seen to end in this round.
	Losses []Loss `json:"losses,omitempty"`
	// Actions must be carried out in this order.
	Actions []Action `json:"actions,omitempty"`
	// Statuses says why each live job runs or waits, by key.
	Statuses []JobStatus `json:"statuses"`
	// Bound lists the running jobs whose GPUs cannot be taken back soon, by key.
	Bound []BoundJob `json:"bound,omitempty"`
	// Tenants reports the state of every tenant, by tenant and pool.
	Tenants []TenantStatus `json:"tenants"`
	// Cells reports the state of the cells; nil = there are none.
	Cells  *CellReport `json:"cells,omitempty"`
	Events []Event     `json:"events,omitempty"`
	// EndedOverrides lists the overrides that end before their time, since their jobs have ended.
	EndedOverrides []OverrideEnd `json:"ended_overrides,omitempty"`
	// AllocationRequest is the next input of the policy; nil = the known division stays in force.
	AllocationRequest *AllocationRequest `json:"allocation_request,omitempty"`
	// Next is the first moment at which time alone changes a decision. Until then, and while the
	// cluster does not change, no round is needed. 0 = never.
	Next Instant `json:"next,omitempty"`
}

// Verb is the kind of an action.
type Verb string

// The verbs. Action documents the fields that each uses.
const (
	// Lock makes or extends the reservation Reservation of Licenses until Until. No job that
	// requests such a licence can start meanwhile.
	Lock Verb = "lock"
	// Gate sets the begin time of a waiting job to Until, or makes it request our licence. A running
	// job gets the licence for its next requeue, or, with Unlock, loses it.
	Gate Verb = "gate"
	// Reserve makes the reservation Reservation on Nodes for Accounts until Until.
	Reserve Verb = "reserve"
	// Grant opens the gate on Nodes in one call: required nodes, begin time now, Limit, and
	// Reservation if there is one.
	Grant Verb = "grant"
	// RevokeGrant revokes a grant that did not start: gate until Until, and the user's NodeList
	// restored.
	RevokeGrant Verb = "take_back"
	// Notify sends Signal to a running job whose lease will not be renewed.
	Notify Verb = "notice"
	// Reclaim requeues the job (never a finished one), gates it until Until, and restores the
	// user's NodeList. It makes the job requeueable first, where its owner has changed that since
	// its grant: the engine reclaims no job that was not requeueable when it was granted.
	Reclaim Verb = "reclaim"
	// Release clears the Reservation of a running job, and deletes it after the last job. With Lock the job gets our
	// licence back.
	Release Verb = "release"
	// Unreserve deletes a reservation of ours that is no longer needed.
	Unreserve Verb = "unreserve"
	// Suspend ends the turn of a running job on its GPU, and Resume begins it; see Slice.
	Suspend Verb = "suspend"
	Resume  Verb = "resume"
	// Open removes our gate and pin and leaves the job to Slurm (exempt jobs, release). The begin
	// time is Until if that is in the future, else now; the user's NodeList is restored.
	Open Verb = "open"
)

// Verbs are all of them, with words for docs/operations.md. A cluster, real or virtual, refuses any other.
var Verbs = []Named{
	{string(Lock), "prolongs the reservation that holds all licences of gates"},
	{string(Gate), "shuts the gate of a waiting job, or changes the licence of a running job for its next requeue"},
	{string(Reserve), "makes or changes a reservation of fairlease"},
	{string(Grant), "opens the gate of a job on the nodes of its lease"},
	{string(RevokeGrant), "revokes a grant that did not start"},
	{string(Notify), "sends notice to a running job whose lease ends"},
	{string(Reclaim), "requeues a job whose lease is over, behind its gate"},
	{string(Release), "removes a running job from its reservation"},
	{string(Unreserve), "deletes a reservation of fairlease"},
	{string(Suspend), "ends the turn of a job on its GPU"},
	{string(Resume), "begins the turn of a job on its GPU"},
	{string(Open), "leaves a waiting job to Slurm, as its user submitted it"},
}

// Action is one change of Slurm's state. Actions are idempotent.
type Action struct {
	Verb         Verb   `json:"verb"`
	Job          JobKey `json:"job,omitempty"`
	ID           JobID  `json:"id,omitzero"`
	Record       int64  `json:"record,omitempty"`
	UnsplitArray bool   `json:"whole,omitempty"` // Record stands for several waiting tasks
	Array        bool   `json:"array,omitempty"` // act on the whole Record, not on task ID (Gate, Open)

	Until       Instant  `json:"until,omitempty"`
	Nodes       []string `json:"nodes,omitempty"`
	NodeList    []string `json:"node_list,omitempty"`  // the user's own, which will be restored
	MaxNodes    int      `json:"max_nodes,omitempty"`  // the user's own, which will be restored; -1 = no limit, 0 = unchanged
	Partitions  []string `json:"partitions,omitempty"` // those of its own that let it start (Grant), or the user's own, which will be restored; nil = unchanged
	Reservation string   `json:"reservation,omitempty"`
	Accounts    []string `json:"accounts,omitempty"`
	Limit       Span     `json:"limit,omitempty"`       // time limit to set; 0 = unchanged
	SiteFactor  int64    `json:"site_factor,omitempty"` // ours, of a grant or a gate; else the original, which will be restored
	// Scatter takes the option for contiguous nodes away (Grant).
	Scatter bool `json:"scatter,omitempty"`
	// Lock makes the job request Licenses and ours (Gate, RevokeGrant, Reclaim, Release; its begin time
	// stays). Unlock makes it request Licenses alone (Grant, Open). Licenses are the user's own.
	Lock     bool   `json:"lock,omitempty"`
	Unlock   bool   `json:"unlock,omitempty"`
	Licenses string `json:"licenses,omitempty"`
	Resume   bool   `json:"resume,omitempty"` // resume the suspended job first (Notify, Reclaim)
	// Ask is what it asks for instead of the GPU, in Slurm's words, or its user's own words, which are restored (Grant, RevokeGrant, Open);
	// "" = unchanged.
	Ask      string `json:"ask,omitempty"`
	Restarts int    `json:"restarts,omitempty"`
	Signal   string `json:"signal,omitempty"`
	SignalTo string `json:"signal_to,omitempty"`

	// Unhold releases the hold that Slurm put on the job when it was requeued while it was suspended (RevokeGrant, Open).
	Unhold bool `json:"unhold,omitempty"`

	// Suppressed is true if the mode or the job's partition forbids acting: the action is recorded,
	// not carried out.
	Suppressed bool   `json:"suppressed,omitempty"`
	Reason     Reason `json:"reason"`
}

// Outcome is the result of an action.
type Outcome struct {
	OK bool `json:"ok"`
	// Skipped is true if the action was not tried: it was suppressed, the job's state had changed,
	// or a prerequisite had failed.
	Skipped bool    `json:"skipped,omitempty"`
	Error   string  `json:"error,omitempty"`
	At      Instant `json:"at,omitzero"`
	Took    Span    `json:"took"`
	// Stopped is when a successful reclaim's requeue ended the attempt: the middle between that
	// request and its answer. 0 = unknown.
	Stopped Instant `json:"stopped,omitempty"`
}

// JobStatus is the engine's decision on one job.
type JobStatus struct {
	Job    JobKey `json:"job"`
	Rho    Rho    `json:"rho"`
	Reason Reason `json:"reason"`
}

// BoundJob is a running job whose GPUs cannot be taken back soon: it cannot be stopped, or not within an hour or two terms,
// whichever is longer. With WayNoGPUs it has none, and GPUs idle since it holds their CPUs or memory.
type BoundJob struct {
	Job  JobKey   `json:"job"`
	Way  Way      `json:"way"`
	Pool string   `json:"pool"` // of its lease, or of the first GPUs that it holds or keeps idle
	GPUs GPUCount `json:"gpus"` // that it holds or keeps idle
	// Since is when it could last have been stopped, at the earliest the start of the attempt. Until is when it ends at the latest,
	// or can be stopped; 0 = unknown.
	Since Instant `json:"since,omitzero"`
	Until Instant `json:"until,omitempty"`
}

// TenantStatus reports the state of a tenant in one pool.
type TenantStatus struct {
	Tenant      string   `json:"tenant"`
	Pool        string   `json:"pool"`
	Weight      int64    `json:"weight"`
	Base        MicroGPU `json:"base"`
	Entitlement MicroGPU `json:"entitlement"`
	Demand      MicroGPU `json:"demand"`
	Holds       GPUCount `json:"holds"`
	// Lent is how many GPUs of its entitlement others hold now. Borrowed is how many it holds
	// above its entitlement.
	Lent     MicroGPU `json:"lent"`
	Borrowed MicroGPU `json:"borrowed"`
	Waiting  int      `json:"waiting"` // jobs
	Deficit  GPUTime  `json:"deficit"`
	// Behind is the deficit, as time at the tenant's own entitlement.
	Behind Span `json:"behind"`
	// Owed is the entitled GPU time that others used, negative if the tenant used others'. Repays
	// is the rate at which others' entitlements are given to it in return, negative if it gives.
	Owed   GPUTime  `json:"owed,omitempty"`
	Repays MicroGPU `json:"repays,omitempty"`
	Rho    Rho      `json:"rho"`     // in the window
	RhoAll Rho      `json:"rho_all"` // since the beginning
}

// EvenIn gives the time until the debt is settled, at the current rate of repayment: GPUs that
// the tenant is given and holds beyond its own entitlement, or gives and does not hold. False =
// never, or nothing is owed.
func (s *TenantStatus) EvenIn() (Span, bool) {
	owed, repays, beyond := s.Owed, s.Repays, MicroGPU(s.Holds)-(s.Entitlement-s.Repays)
	if owed < 0 {
		owed, repays, beyond = -owed, -repays, -beyond
	}
	pace := min(repays, beyond)
	if owed == 0 || pace <= 0 {
		return 0, false
	}
	return Span(MulDiv(int64(owed), int64(WholeGPU), int64(pace))), true
}

// Noise counts the events that a user has caused within an hour, so that one command does not fill the journal.
type Noise struct {
	User  string  `json:"user"`
	Since Instant `json:"since,omitzero"`
	Told  int     `json:"told"`           // events that were written
	Left  int     `json:"left,omitempty"` // events beyond, which were left out
}

// Event is a line of the log and a row of the journal.
type Event struct {
	Kind string `json:"kind"`
	Job  JobKey `json:"job,omitempty"`
	Node string `json:"node,omitempty"`
	Text string `json:"text"`
}
