package cluster

// Control says how far fairlease controls a job.
type Control string

// FullControl: gate, grant and reclaim it. ObserveOnly: decide and record, but change nothing (observe mode, or
// a partition that is not acted on yet). NoReclaim: charge its tenant and perhaps grant it a lease,
// but never reclaim it (not requeueable). Unmanaged: only count its GPUs as occupied.
const (
	FullControl Control = "act"
	ObserveOnly Control = "watch"
	NoReclaim   Control = "keep"
	Unmanaged   Control = "leave"
)

// Left is the kind of reason why a job is left alone.
type Left string

// The reasons: its user chose an option that excludes leases; the site excludes it, or does not
// manage its partition or QOS; it uses a reservation of others; its account belongs to no tenant;
// it is set aside.
const (
	LeftOptOut      Left = "opt_out"
	LeftExcluded    Left = "excluded"
	LeftReservation Left = "reservation"
	LeftNoTenant    Left = "no_tenant"
	LeftAside       Left = "aside"
)

// Way is a way in which a job keeps its GPUs from being leased, or from being reclaimed.
type Way string

// The ways that users choose: --no-requeue; --contiguous; salloc, and srun outside of a batch job; heterogeneous jobs; all other options that fairlease
// cannot place; and jobs without GPUs, which take CPUs and memory of nodes with GPUs. They are keys of opt_out in the configuration.
const (
	WayNoRequeue  Way = "no_requeue"
	WayContiguous Way = "contiguous"
	WaySession    Way = "session"
	WayHet        Way = "het"
	WayOther      Way = "other"
	WayNoGPUs     Way = "no_gpus"
)

// WayExpedite is a key of opt_out, too: --requeue=expedite, by which a job that others requeue may start again before it has a lease. It can be
// leased, and reclaimed, like others.
const WayExpedite Way = "expedite"

// Ways that are no keys of opt_out. Stops would cost the job more than its stop budget allows: it has run for too long since its
// start (age), or its saves are rare or slow (saves). Its minimum lease has hours to go (min_lease). Its pool cannot afford its stop
// (pool). An administrator exempts it (exempt). It is left alone for another reason: see Left.
const (
	WayAge      Way = "age"
	WaySaves    Way = "saves"
	WayMinLease Way = "min_lease"
	WayPool     Way = "pool"
	WayExempt   Way = "exempt"
)

// Values of Request.Unplaceable with a meaning of their own.
const (
	Contiguous  = "contiguous nodes"
	Several     = "several GPU models in one job"
	PartsOfGPUs = "parts of GPUs"
	Cron        = "scrontab" // Slurm lets nobody change such a job
	Unread      = "a GPU request that we cannot read"
	UnreadNodes = "a list of required nodes that we cannot read"
	HetParts    = "heterogeneous components"
	Apart       = "exclusive=" // and who may share its nodes: user, mcs or topo
)

// Case is a job together with its record.
type Case struct {
	Job     Job     `json:"job"`
	Record  Record  `json:"record"`
	Control Control `json:"control"`
	// ControlWhy says in words why the job is not under FullControl.
	ControlWhy string `json:"control_why,omitempty"`
	// Left is the kind of reason why the job is left alone; "" = it is not, or requests no GPUs.
	Left Left `json:"left,omitempty"`
	// Way is the way in which its user keeps its GPUs from leases or from reclaims; "" = none.
	Way Way `json:"way,omitempty"`
	// Changed are the facts of the job that its owner has changed since it was granted its lease. They do not count
	// before its next start: Job has those of Record.Basis.
	Changed Changes `json:"changed,omitempty"`
	// Gone is true if Slurm no longer lists the job. Job then repeats the last observation.
	Gone bool `json:"gone,omitempty"`
	// Was is 1 + the index of this case in the snapshot of the last round if all of the case but its Record is the same there, bit for bit. 0 = the
	// case is new, has changed, or may have. It spares work, and changes no decision.
	Was int32 `json:"-"`
}

// Scatters reports whether the grant of a lease takes the option for contiguous nodes away.
func (c *Case) Scatters() bool {
	return c.Job.Request.Unplaceable == Contiguous && c.Way != WayContiguous && c.Way != WayHet
}

// Loose reports whether only Slurm can choose the job's nodes.
func (c *Case) Loose() bool { return c.Job.Request.Loose() && !c.Scatters() }

// Snapshot is the whole input of the engine. It is sorted when it is built: cases by key,
// everything else as in Observation and State.
type Snapshot struct {
	Round        int64         `json:"round"`
	Now          Instant       `json:"now,omitzero"`
	Settings     Settings      `json:"settings"`
	Nodes        []Node        `json:"nodes"`
	NodesVersion int64         `json:"-"` // see Observation; a decider sets it to 0 if its last decision was not that of the round before
	Reservations []Reservation `json:"reservations,omitempty"`
	// License is the licence that gates jobs; zero if the site has none, or no partition is acted
	// on.
	License License `json:"license,omitzero"`
	// Admission is what Slurm's own rules let start; nil = there are no rules.
	Admission *Admission `json:"admission,omitempty"`
	// Boot is the last start of the cluster's controller if it was started since the last round; 0 = it was not.
	Boot     Instant   `json:"boot,omitempty"`
	Tenants  []Tenant  `json:"tenants"` // by name
	Cases    []Case    `json:"cases"`   // by key
	Attempts []Attempt `json:"attempts,omitempty"`
	NextKey  JobKey    `json:"next_key"`
	Former   []Record  `json:"former,omitempty"` // as in State; jobs that the look shows, or the history, are among Cases
	Ledger   Ledger    `json:"ledger"`
	Leases   []Lease   `json:"leases"` // in force, by job key
	Claims   []Claim   `json:"claims,omitempty"`
	// Cells describes virtual clusters; nil = there are none.
	Cells      *Cells      `json:"cells,omitempty"`
	VCOrders   []VCOrder   `json:"vc_orders,omitempty"` // of VCs with schedulers of their own, by VC
	Lost       []CellLoss  `json:"lost,omitempty"`
	Lent       []Lending   `json:"lent,omitempty"`
	CellTrades []CellTrade `json:"cell_trades,omitempty"` // that changed the VCs' cells, in the order in which they took effect
	Parties    []PartyPool `json:"parties,omitempty"`
	Allocation *Allocation `json:"allocation,omitempty"`
	// Profiles holds the jobs' declarations and the observations; Declared holds the
	// administrator's declarations. Paces is the state of jobs that report progress; Progress
	// their reports since the last round.
	Profiles []Profile  `json:"profiles,omitempty"`
	Declared []Profile  `json:"declared,omitempty"`
	Paces    []Pace     `json:"paces,omitempty"`
	Progress []Progress `json:"progress,omitempty"`
	// Uses, Memory and Sizes are as in Observation. Memory has types of jobs in Cases only.
	Uses   []GPUUse    `json:"uses,omitempty"`
	Memory []MemoryUse `json:"memory,omitempty"`
	Sizes  []GPUMemory `json:"sizes,omitempty"`
	// Completions and Usages are what jobs that report nothing show of the speed of their kind. History is ended attempts
	// of the time before the first round; it is given until it was learnt from.
	Completions []Completion `json:"completions,omitempty"`
	Usages      []Usage      `json:"usages,omitempty"`
	History     []Attempt    `json:"history,omitempty"`
	// Habits summarises the behaviour of jobs, by type.
	Habits []Habit `json:"habits,omitempty"`
	// Causes are why Slurm did not start granted jobs, sorted.
	Causes []Cause `json:"causes,omitempty"`
	// Managed lists the partitions that are acted on, if there are cells and no partition is only
	// watched.
	Managed []string `json:"managed,omitempty"`
	// Preempted lists the partitions that are only watched since Slurm may stop their jobs by itself, by name, and
	// WasPreempted those of the last round. Unpreempted lists those that are acted on and known to be clear of that, where Slurm
	// preempts at all.
	Preempted    []Preempted `json:"preempted,omitempty"`
	Unpreempted  []string    `json:"unpreempted,omitempty"`
	WasPreempted []Preempted `json:"was_preempted,omitempty"`
	Overrides    []Override  `json:"overrides,omitempty"`
	// Noise counts the events that users have caused within the last hour, by user.
	Noise []Noise `json:"noise,omitempty"`
	// Stops and Shadow are as in State.
	Stops  []Stopped `json:"stops,omitempty"`
	Shadow Shadow    `json:"shadow,omitzero"`
	// Breaker is as in State. Resumed is an operator's word after its trip, and Latency as in Observation.
	Breaker Breaker `json:"breaker,omitzero"`
	Resumed GoAhead `json:"resumed,omitzero"`
	Latency Span    `json:"latency,omitempty"`
	// NodeSpeeds is as in State.
	NodeSpeeds NodeSpeeds `json:"node_speeds,omitzero"`
	// Restored is set in the first round after the journal got younger.
	Restored *Restored `json:"restored,omitempty"`
	// Apart is as in Observation.
	Apart string `json:"apart,omitempty"`
	// Follows is set by a decider whose last decision was that of the round before: what it has kept of its cases holds by Before.
	Follows bool `json:"-"`
}

// Before gives the index of a case in the snapshot that the decider decided last, if all of the case but its Record was the same there; -1 = it was
// not, or that is not known.
func (s *Snapshot) Before(i int) int {
	if !s.Follows {
		return -1
	}
	return int(s.Cases[i].Was) - 1
}

// Restored says that the journal lost rounds: a dump was restored, PostgreSQL failed over, or another database is in use.
type Restored struct {
	Knew  int64 `json:"knew"`  // the newest round that the daemon had seen
	Found int64 `json:"found"` // the newest round now; 0 = there is none
}

// Limits gives the limits that the round knew; nil = none.
func (s *Snapshot) Limits() *Limits {
	if s.Admission == nil {
		return nil
	}
	return &s.Admission.Limits
}
