package cluster

// LeaseClass is the kind of right to the GPUs of a lease.
type LeaseClass string

// The classes. Guaranteed leases need cells of a virtual cluster. Opportunistic leases use GPUs
// beyond the tenant's entitlement, and end when the owner recalls them.
const (
	Guaranteed    LeaseClass = "guaranteed"
	Shared        LeaseClass = "shared"
	Opportunistic LeaseClass = "opportunistic"
)

// LeaseState is the stage of a lease's life.
type LeaseState string

// A lease is Granted until the job is seen running: while its nodes boot, too, and the term begins only then. It is Active until its notice, Noticed from then to
// the requeue, Ending until its GPUs are free, then Over.
const (
	Granted LeaseState = "granted"
	Active  LeaseState = "active"
	Noticed LeaseState = "noticed"
	Ending  LeaseState = "ending"
	Over    LeaseState = "over"
)

// Lease is the right of a job to hold GPUs for a term. A renewal is a new Lease with the next
// Term and the same nodes.
type Lease struct {
	Job   JobKey     `json:"job"`
	Term  int        `json:"term"` // 1 for the job's first lease
	State LeaseState `json:"state"`
	Class LeaseClass `json:"class"`
	Pool  string     `json:"pool"`
	Size  Size       `json:"gpus"`
	Nodes []Holding  `json:"nodes"` // sorted by node
	// Granted is when the lease was decided, Start when the job first held it (0 until seen), End
	// when the term ends.
	Granted Instant `json:"granted,omitzero"`
	Start   Instant `json:"start,omitempty"`
	End     Instant `json:"end,omitzero"`
	// NoticedAt is when the job was notified that its lease will not be renewed. Ended is when a
	// lease that is Over really ended.
	NoticedAt Instant `json:"noticed_at,omitempty"`
	// Notice is the length of the job's notice, if it is not the usual one; see Settings.NoticeMax.
	Notice Span    `json:"notice,omitempty"`
	Ended  Instant `json:"ended,omitempty"`
	// Adopted is true if the job ran before it had a lease.
	Adopted bool `json:"adopted,omitempty"`
	// Behind is the job whose GPUs this granted lease takes over when that job has ended, on the same node; 0 = none. Its
	// own gate is open already. Until then the lease has the node but no GPUs, so that they count once.
	Behind JobKey `json:"behind,omitempty"`
	// Parts lists the GPUs of a lease in cells.
	Parts []CellPart `json:"parts,omitempty"`
	// Why gives the cause of the end: "finished", "renewed", "reclaimed", "recalled", "taken
	// back", "lost". A lease that is being recalled has it before it ends.
	Why string `json:"why,omitempty"`
}

// NoticeIn returns the length of the notice before the lease's end.
func (l *Lease) NoticeIn(s *Settings) Span {
	if l.Notice != 0 {
		return l.Notice
	}
	return s.Notice
}

// Claim keeps GPUs from being renewed until a waiting gang fits on them.
type Claim struct {
	Job   JobKey    `json:"job"`
	Pool  string    `json:"pool"`
	Nodes []Holding `json:"nodes"`
	At    Instant   `json:"at,omitzero"` // when the leases there end
	Made  Instant   `json:"made,omitzero"`
	// Gathers is true if jobs that can never be stopped still hold some of the GPUs. GPUs that
	// become free are kept from other such jobs, and At is unknown.
	Gathers bool `json:"gathers,omitempty"`
	// Parts lists the GPUs that a claim to a VC's cells keeps.
	Parts []CellPart `json:"parts,omitempty"`
}
