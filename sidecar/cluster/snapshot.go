package cluster

// Touch tells what we may do with a job.
type Touch string

// Act: gate, grant and reclaim it. Watch: decide and record, but change nothing
// (observe mode, or a partition that is not acted on yet). Keep: it is charged
// to its tenant and may be granted a lease, but is never reclaimed (not
// requeueable). Leave: its GPUs are seen as taken, nothing more.
const (
	Act   Touch = "act"
	Watch Touch = "watch"
	Keep  Touch = "keep"
	Leave Touch = "leave"
)

// Left is the kind of reason for which a job is left alone.
type Left string

// The reasons for which jobs are left alone: its user chose something that cannot be leased; the site excludes it, or does
// not manage its partition or QOS; it uses a reservation of others; its account is no tenant's; it is set aside.
const (
	LeftOptOut      Left = "opt_out"
	LeftExcluded    Left = "excluded"
	LeftReservation Left = "reservation"
	LeftNoTenant    Left = "no_tenant"
	LeftAside       Left = "aside"
)

// Case is a job together with what is remembered of it.
type Case struct {
	Job    Job    `json:"job"`
	Record Record `json:"record"`
	Touch  Touch  `json:"touch"`
	// TouchWhy says why the job is not Act, in words.
	TouchWhy string `json:"touch_why,omitempty"`
	// Left says for which kind of reason the job is left alone; "" = it is not, or asks for no GPUs.
	Left Left `json:"left,omitempty"`
	// Gone is true where Slurm no longer lists the job: Job repeats what was seen last.
	Gone bool `json:"gone,omitempty"`
}

// Snapshot is all that the engine may know. It is sorted when it is built:
// cases by key, everything else as in Sighting and Memory.
type Snapshot struct {
	Round        int64         `json:"round"`
	Now          Instant       `json:"now"`
	Settings     Settings      `json:"settings"`
	Nodes        []Node        `json:"nodes"`
	Reservations []Reservation `json:"reservations,omitempty"`
	// License is the licence by which jobs are gated; zero where the site has none, or jobs of no partition are acted on.
	License  License   `json:"license,omitzero"`
	Tenants  []Tenant  `json:"tenants"` // by name
	Cases    []Case    `json:"cases"`   // by key
	Attempts []Attempt `json:"attempts,omitempty"`
	NextKey  JobKey    `json:"next_key"`
	Ledger   Ledger    `json:"ledger"`
	Leases   []Lease   `json:"leases"` // in force, by job key
	Claims   []Claim   `json:"claims,omitempty"`
	// Cells describes virtual clusters; nil = there are none.
	Cells    *Cells      `json:"cells,omitempty"`
	Lost     []CellLoss  `json:"lost,omitempty"`
	Lent     []Lending   `json:"lent,omitempty"`
	Parties  []PartyPool `json:"parties,omitempty"`
	Division *Division   `json:"division,omitempty"`
	// Profiles is what jobs have declared and what was observed; Declared is the administrator's
	// word. Paces is what is remembered of jobs that report; Progress their reports since the
	// last round.
	Profiles []Profile  `json:"profiles,omitempty"`
	Declared []Profile  `json:"declared,omitempty"`
	Paces    []Pace     `json:"paces,omitempty"`
	Progress []Progress `json:"progress,omitempty"`
	// Habits is what jobs of each type did so far, by type.
	Habits []Habit `json:"habits,omitempty"`
	// Managed is the partitions that are acted on, where there are cells and no partition is only
	// watched.
	Managed   []string   `json:"managed,omitempty"`
	Overrides []Override `json:"overrides,omitempty"`
}
