package cluster

// Plan is all that the engine wants after one round.
type Plan struct {
	Round int64   `json:"round"`
	At    Instant `json:"at"`
	// Memory is what to remember for the next round.
	Memory Memory `json:"memory"`
	// Ended are the leases that came to an end in this round, with their reason.
	Ended []Lease `json:"ended,omitempty"`
	// Losses are what stops destroyed whose end was seen in this round, by job.
	Losses []Loss `json:"losses,omitempty"`
	// Actions are in the order in which they must be carried out.
	Actions []Action `json:"actions,omitempty"`
	// Verdicts says for every live job why it runs or waits, by key.
	Verdicts []Verdict `json:"verdicts"`
	// Tenants is every tenant's standing, for reports, by tenant and pool.
	Tenants []Standing `json:"tenants"`
	// Cells is how the cells stand; nil = there are none.
	Cells  *CellReport `json:"cells,omitempty"`
	Events []Event     `json:"events,omitempty"`
	// Question is what is to be divided anew; nil = the division that was known holds.
	Question *Question `json:"question,omitempty"`
	// Next is the first moment at which time alone changes something: until then,
	// and as long as the cluster does not change, no round is needed. 0 = never.
	Next Instant `json:"next,omitempty"`
}

// Verb is what an action does.
type Verb string

// The verbs. See Action for the fields that each uses.
const (
	// Lock makes the reservation Reservation of Licenses, or prolongs it, until Until: no job that asks for one starts.
	Lock Verb = "lock"
	// Gate sets the begin time of a waiting job to Until, or has it ask for our licence.
	Gate Verb = "gate"
	// Reserve makes the reservation Reservation on Nodes for Accounts until Until.
	Reserve Verb = "reserve"
	// Grant opens the gate on Nodes: required nodes, begin time now, Limit, and
	// Reservation if there is one, in one call.
	Grant Verb = "grant"
	// TakeBack ends a grant that did not start: gate to Until, the user's NodeList back.
	TakeBack Verb = "take_back"
	// Notify sends Signal to a running job whose lease will not be renewed.
	Notify Verb = "notice"
	// Reclaim requeues the job (never a finished one) and gates it to Until, with the
	// user's NodeList back.
	Reclaim Verb = "reclaim"
	// Release clears the Reservation of a running job and deletes it when it is the last.
	Release Verb = "release"
	// Unreserve deletes a reservation of ours that nobody needs any more.
	Unreserve Verb = "unreserve"
	// Open lifts our gate and pin and leaves the job to Slurm (exempt jobs, release):
	// begin time Until if that is to come, else now; the user's NodeList back.
	Open Verb = "open"
)

// Action is one change that we ask of Slurm. Actions are idempotent: carried
// out twice they do no more than once.
type Action struct {
	Verb   Verb   `json:"verb"`
	Job    JobKey `json:"job,omitempty"`
	ID     JobID  `json:"id,omitzero"`
	Record int64  `json:"record,omitempty"`
	Whole  bool   `json:"whole,omitempty"` // Record stands for several waiting tasks
	Array  bool   `json:"array,omitempty"` // act on the whole Record, not on task ID (Gate, Open)

	Until       Instant  `json:"until,omitempty"`
	Nodes       []string `json:"nodes,omitempty"`
	NodeList    []string `json:"node_list,omitempty"` // the user's own, to be put back
	Reservation string   `json:"reservation,omitempty"`
	Accounts    []string `json:"accounts,omitempty"`
	Limit       Span     `json:"limit,omitempty"`       // time limit to set; 0 = leave
	SiteFactor  int64    `json:"site_factor,omitempty"` // of a grant or a gate: ours; else the one to be put back
	// Lock has the job ask for Licenses and ours (Gate, TakeBack, Reclaim; its begin time stays), Unlock for Licenses alone
	// (Grant, Open). Licenses are the user's own.
	Lock     bool   `json:"lock,omitempty"`
	Unlock   bool   `json:"unlock,omitempty"`
	Licenses string `json:"licenses,omitempty"`
	Resume   bool   `json:"resume,omitempty"` // resume the suspended job first
	Restarts int    `json:"restarts,omitempty"`
	Signal   string `json:"signal,omitempty"`
	SignalTo string `json:"signal_to,omitempty"`

	// Withheld is true where the mode or the job's partition forbids acting:
	// recorded, not carried out.
	Withheld bool   `json:"withheld,omitempty"`
	Because  Reason `json:"because"`
}

// Outcome is what became of an action.
type Outcome struct {
	OK bool `json:"ok"`
	// Skipped is true where the action was not tried (withheld, the job had
	// moved on, or what it needed had failed).
	Skipped bool    `json:"skipped,omitempty"`
	Error   string  `json:"error,omitempty"`
	At      Instant `json:"at"`
	Took    Span    `json:"took"`
}

// Verdict is the engine's word on one job.
type Verdict struct {
	Job    JobKey `json:"job"`
	Rho    Rho    `json:"rho"`
	Reason Reason `json:"reason"`
}

// Standing is how a tenant stands in one pool.
type Standing struct {
	Tenant      string   `json:"tenant"`
	Pool        string   `json:"pool"`
	Weight      int64    `json:"weight"`
	Base        MicroGPU `json:"base"`
	Entitlement MicroGPU `json:"entitlement"`
	Demand      MicroGPU `json:"demand"`
	Holds       int      `json:"holds"`
	// Lent is how many of the GPUs that it is due others hold now; Borrowed how
	// many it holds above its entitlement.
	Lent     MicroGPU `json:"lent"`
	Borrowed MicroGPU `json:"borrowed"`
	Waiting  int      `json:"waiting"` // jobs
	Deficit  GPUTime  `json:"deficit"`
	// Behind is the deficit as time at the tenant's own entitlement.
	Behind Span `json:"behind"`
	// Owed is what others had of its due, negative what it had of others'; Repays what of others' dues it is given for
	// that now, negative what it gives.
	Owed   GPUTime  `json:"owed,omitempty"`
	Repays MicroGPU `json:"repays,omitempty"`
	Rho    Rho      `json:"rho"`     // over the window
	RhoAll Rho      `json:"rho_all"` // since the beginning
}

// EvenIn gives how long it takes until nothing is owed, at the pace at which GPUs are repaid now: those that the tenant is
// given and holds beyond its own due, or gives and does not hold. False = never, or nothing is owed.
func (s *Standing) EvenIn() (Span, bool) {
	owed, repays, beyond := s.Owed, s.Repays, MicroGPU(s.Holds)*WholeGPU-(s.Entitlement-s.Repays)
	if owed < 0 {
		owed, repays, beyond = -owed, -repays, -beyond
	}
	pace := min(repays, beyond)
	if owed == 0 || pace <= 0 {
		return 0, false
	}
	return Span(MulDiv(int64(owed), int64(WholeGPU), int64(pace))), true
}

// Event is something worth a line in the log and a row in the journal.
type Event struct {
	Kind string `json:"kind"`
	Job  JobKey `json:"job,omitempty"`
	Node string `json:"node,omitempty"`
	Text string `json:"text"`
}
