package cluster

// LeaseClass tells by what right a job holds its lease.
type LeaseClass string

// The classes. Guaranteed needs virtual-cluster cells; opportunistic leases are
// lent beyond the tenant's due and end when the owner wants them back.
const (
	Guaranteed    LeaseClass = "guaranteed"
	Shared        LeaseClass = "shared"
	Opportunistic LeaseClass = "opportunistic"
)

// LeaseState is how far a lease has come.
type LeaseState string

// A lease is Granted until the job is seen running, Active until it is told to
// end, Noticed from the notice to the requeue, Ending until its GPUs are free, then Over.
const (
	Granted LeaseState = "granted"
	Active  LeaseState = "active"
	Noticed LeaseState = "noticed"
	Ending  LeaseState = "ending"
	Over    LeaseState = "over"
)

// Lease is the right of a job to hold GPUs for a term. Renewal makes a new
// lease row with the next Term and the same nodes.
type Lease struct {
	Job   JobKey     `json:"job"`
	Term  int        `json:"term"` // 1 for the job's first lease
	State LeaseState `json:"state"`
	Class LeaseClass `json:"class"`
	Pool  string     `json:"pool"`
	GPUs  int        `json:"gpus"`
	Nodes []Holding  `json:"nodes"` // sorted by node
	// Granted is when the lease was decided, Start when it was first held
	// (0 until seen), End when the term ends.
	Granted Instant `json:"granted"`
	Start   Instant `json:"start,omitempty"`
	End     Instant `json:"end"`
	// NoticedAt is when the job was told that the lease will not be renewed; Ended
	// when the lease really ended, of one that has.
	NoticedAt Instant `json:"noticed_at,omitempty"`
	Ended     Instant `json:"ended,omitempty"`
	// Adopted is true where the job ran before we gave it a lease.
	Adopted bool `json:"adopted,omitempty"`
	// Parts is, of a lease in cells, the GPUs that it stands on.
	Parts []CellPart `json:"parts,omitempty"`
	// Why an ended lease ended: "finished", "renewed", "reclaimed",
	// "recalled", "taken back", "lost"; of one that is being recalled it is set before.
	Why string `json:"why,omitempty"`
}

// Claim keeps GPUs from renewal until a gang that is due fits on them.
type Claim struct {
	Job   JobKey    `json:"job"`
	Pool  string    `json:"pool"`
	Nodes []Holding `json:"nodes"`
	At    Instant   `json:"at"` // when the leases there end
	Made  Instant   `json:"made"`
	// Gathers is true where jobs that we can never stop still hold some of the GPUs: they are kept from other such jobs
	// as they become free, and At is not known.
	Gathers bool `json:"gathers,omitempty"`
	// Parts is, of a claim to a VC's cells, the GPUs that are kept.
	Parts []CellPart `json:"parts,omitempty"`
}
