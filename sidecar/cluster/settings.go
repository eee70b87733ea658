package cluster

// Settings configures the engine. It is part of every snapshot, so that a replay uses the
// settings of that time.
type Settings struct {
	Preset string `json:"preset"` // "astraea"
	// Differs lists the settings that differ from the usual defaults by the preset, if it is that of a paper.
	Differs []string `json:"differs,omitempty"`
	// Schedule is the schedule whose settings these are; nil = none.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Tuned is a term that tuning has put in place of the configuration's; nil = none.
	Tuned *Tuned `json:"tuned,omitempty"`

	Interval Span `json:"interval"` // between two rounds
	Term     Span `json:"term"`
	MinLease Span `json:"min_lease"`
	Notice   Span `json:"notice"`
	// MinLeaseTerms bounds the minimum lease that a job may ask for (Hints.MinLease), in terms; 0 = such wishes do not count.
	MinLeaseTerms int `json:"min_lease_terms,omitempty"`
	// NoticeMin and NoticeMax bound the notice of a job whose save is known to take a certain time; NoticeMax 0 = all
	// notices have the length Notice.
	NoticeMin Span `json:"notice_min,omitempty"`
	NoticeMax Span `json:"notice_max,omitempty"`
	// NoticeConcurrent is the maximum number of jobs that save at the end of their leases at the same time; 0 = any.
	NoticeConcurrent int  `json:"notice_concurrent,omitempty"`
	GrantTimeout     Span `json:"grant_timeout"`
	GateTTL          Span `json:"gate_ttl"`
	// MaxBeginTimes is the number of waiting jobs whose gates are begin times that end within GateTTL. With more, they last longer in
	// proportion. 0 = they never do.
	MaxBeginTimes int `json:"max_begin_times,omitempty"`

	// RhoSelect is the equation of ASTRAEA for a tenant's entitlement when tenants are ranked: 16
	// (its quota) or 8 (at most its demand).
	RhoSelect int `json:"rho_select"`
	// CreditCap is how much of its own quota an idle tenant may accumulate.
	CreditCap Span `json:"credit_cap"`
	// BurstMaxMilli is the maximum that a tenant may hold while others wait, in thousandths of
	// its quota; 0 = no limit.
	BurstMaxMilli int64 `json:"burst_max_milli"`
	// RepayFloorPercent is the part of its entitled demand that a tenant keeps while it repays a
	// debt; 0 = no repayments.
	RepayFloorPercent int  `json:"repay_floor_percent,omitempty"`
	Window            Span `json:"window"`
	HalfLife          Span `json:"half_life,omitempty"` // 0 = none

	// Threshold is the minimum deficit, relative to a running tenant and in time at its quota,
	// with which a tenant may reclaim. MaxReclaims is per round; 0 = no limit.
	Threshold   Span `json:"threshold"`
	MaxReclaims int  `json:"max_reclaims"`

	// CompactPercent lets running jobs move to idle GPUs at the end of their terms, so that a waiting gang fits, if the
	// moves cost at most that much of the GPU time of the gang in a term; 0 = they do not move for that.
	CompactPercent int `json:"compact_percent,omitempty"`
	// ScatterWait is how long a gang that is known to be slower on more nodes, or under more switches, waits for its fewest, at most; 0 = none does.
	ScatterWait Span `json:"scatter_wait,omitempty"`

	// SlowNodePercent is the part of the usual speed on other nodes below which a node counts as slow; 0 = nodes are not compared.
	SlowNodePercent int `json:"slow_node_percent,omitempty"`

	// Across is whose jobs may have shards of one GPU.
	Across Across `json:"across,omitempty"`

	// Slices lets jobs take turns on a GPU; nil = none do.
	Slices *Slices `json:"slices,omitempty"`

	// StopAllowance, and StopOverheadMilli in thousandths of its run time, limit what stops may
	// cost a job. Both 0 = any job may be stopped at any time, as the papers assume. StartCost is
	// the cost of a start that has not been measured.
	StopAllowance     Span  `json:"stop_allowance,omitempty"`
	StopOverheadMilli int64 `json:"stop_overhead_milli,omitempty"`
	// StopTotalMilli limits what stops may cost all jobs of a pool together, in thousandths of
	// their run time; 0 = no limit.
	StopTotalMilli int64 `json:"stop_total_milli,omitempty"`
	// StopsPerHour limits the GPUs whose jobs are stopped within an hour.
	StopsPerHour StopsPerHour `json:"stops_per_hour,omitzero"`
	// Breaker has the bounds beyond which fairlease only observes.
	Breaker BreakerRule `json:"breaker,omitzero"`
	// BindQuiet is how long a tenant must have wanted no GPUs until jobs of other tenants that cannot be stopped may hold
	// all of its due; 0 = no limit on such jobs. BindHorizon is how soon such a job must end for the limit not to matter,
	// in terms. BindMaxPercent of a pool's GPUs are not limited.
	BindQuiet      Span `json:"bind_quiet,omitempty"`
	BindHorizon    int  `json:"bind_horizon,omitempty"`
	BindMaxPercent int  `json:"bind_max_percent,omitempty"`
	StartCost      Span `json:"start_cost,omitempty"`
	// Saves says how jobs save that have neither shown nor declared it. The first matching rule
	// applies.
	Saves []SavingRule `json:"saves,omitempty"`

	// RecallFirst lets a job's first lease begin in the middle of other jobs' terms: their leases
	// are recalled for it, with a notice of RecallNotice.
	RecallFirst  bool `json:"recall_first,omitempty"`
	RecallNotice Span `json:"recall_notice,omitempty"`

	// IdleReclaim is how long all GPUs of a job must have been idle for its lease not to be renewed while others wait; 0 =
	// idleness does not matter.
	IdleReclaim Span `json:"idle_reclaim,omitempty"`

	// Users says whether a tenant's users share its GPUs equally; see the constants.
	Users Users `json:"users,omitempty"`
	// JobOrder is the order of a tenant's jobs; see the constants.
	JobOrder JobOrder `json:"job_order,omitempty"`
	// Patience is the most that a job falls behind in orders other than ByRho, as time at its GPUs, before it goes first,
	// up to NewSharePercent of its tenant's GPUs; 0 = no limit.
	Patience Span `json:"patience,omitempty"`
	// NewFirst ranks jobs that have had no lease first, up to NewSharePercent of their tenant's
	// GPUs.
	NewFirst        bool `json:"new_first"`
	NewSharePercent int  `json:"new_share_percent"`
	// LongTerms > 0: within its tenant, a job with that many past leases has precedence when it
	// renews.
	LongTerms int      `json:"long_terms,omitempty"`
	UrgentQOS []string `json:"urgent_qos,omitempty"`
	// JobWeights gives weights other than 1 by QOS (ASTRAEA's W_job).
	JobWeights []JobWeight `json:"job_weights,omitempty"`

	// Signal is the signal sent as notice. SignalTo is "steps", "batch" or "all".
	Signal   string       `json:"signal"`
	SignalTo string       `json:"signal_to"`
	Signals  []SignalRule `json:"signals,omitempty"`

	// Chooser is the order in which jobs get a VC's cells; see the constants.
	Chooser string `json:"chooser,omitempty"`
	// AffinityWait is how long a job waits for its GPUs on few nodes before it accepts any, if it
	// did not request a number of nodes.
	AffinityWait Span `json:"affinity_wait,omitempty"`
	// Levels are the levels of jobs inside their VC by QOS; a VC may have its own.
	Levels []QOSLevel `json:"levels,omitempty"`
	// StrictQOS lists the QOS whose jobs use only cells of their own tenant.
	StrictQOS []string `json:"strict_qos,omitempty"`

	// Divide is the policy that divides heterogeneous GPUs ("gavel:las", "oef:coop",
	// "gandiva-fair", …); "" = by weight. It divides them between jobs if DivideJobs is set, else
	// between tenants' kinds of jobs. Changes by time alone lead to a new division every
	// DivideEvery rounds; 0 = never.
	Divide      string `json:"divide,omitempty"`
	DivideJobs  bool   `json:"divide_jobs,omitempty"`
	DivideEvery int64  `json:"divide_every,omitempty"`
	// MostKinds is the maximum number of a tenant's kinds of jobs that a policy keeps apart; 0 = any.
	MostKinds int `json:"most_kinds,omitempty"`
	// Mechanism turns the division into jobs that run; see the constants. "" = nearest.
	Mechanism string `json:"mechanism,omitempty"`
	// Kinds assigns jobs to kinds; the first matching rule applies. With NoEstimates, rates that
	// were neither declared nor observed stay unknown. Speedups are relative to the model Reference;
	// "" = the slowest that most tenants can use. Prices are per GPU and hour, by model. NoCompletions and NoCounters
	// turn off what jobs without reports show.
	Kinds         []KindRule `json:"kinds,omitempty"`
	NoEstimates   bool       `json:"no_estimates,omitempty"`
	NoCompletions bool       `json:"no_completions,omitempty"`
	NoCounters    bool       `json:"no_counters,omitempty"`
	Reference     string     `json:"reference,omitempty"`
	Prices        []Price    `json:"prices,omitempty"`

	// Worths has the GPU models whose devices count as parts of a GPU, by model: the instances of GPUs that MIG splits.
	Worths []Worth `json:"worths,omitempty"`

	// SiteFactor is added to the priority of a job with a new lease, so that no ungated job
	// precedes it in Slurm's queue; 0 = unchanged.
	SiteFactor int64 `json:"site_factor,omitempty"`
}

// SavingRule says how jobs save that have neither shown nor declared it, if all its set fields
// match.
type SavingRule struct {
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Manner    Manner `json:"manner"`
	Every     Span   `json:"every,omitempty"`
	// Source is FromSite, or FromDeclaration if the site calls the QOS or partition preemptible.
	// Evidence words it.
	Source   SavingSource `json:"source,omitempty"`
	Evidence string       `json:"evidence,omitempty"`
}

// JobWeight is the weight in thousandths of jobs of a QOS inside their tenant.
type JobWeight struct {
	QOS   string `json:"qos"`
	Milli int64  `json:"milli"`
}

// Price is the cost of a GPU of a model per hour, in any currency.
type Price struct {
	Model string  `json:"model"`
	Price float64 `json:"price"`
}

// Worth is the part of a GPU that each device of a model counts as.
type Worth struct {
	Model string   `json:"model"`
	Worth MicroGPU `json:"worth"`
}

// Worth gives the part of a GPU that a device of a model counts as: all of it, unless Worths says otherwise.
func (s *Settings) Worth(model string) MicroGPU {
	for i := range s.Worths {
		if s.Worths[i].Model == model {
			return s.Worths[i].Worth
		}
	}
	return WholeGPU
}

// PoolWorths has what a device of each pool counts as; nil = a GPU each.
type PoolWorths []MicroGPU

// PoolWorths gives those of pools, by their models.
func (s *Settings) PoolWorths(pools []string) PoolWorths {
	if len(s.Worths) == 0 {
		return nil
	}
	out := make(PoolWorths, len(pools))
	for p := range pools {
		out[p] = s.Worth(pools[p])
	}
	return out
}

// Of gives the worth of a device of a pool, by its number.
func (w PoolWorths) Of(pool int) MicroGPU {
	if w == nil {
		return WholeGPU
	}
	return w[pool]
}

// In gives what a number of devices counts in a pool.
func (w PoolWorths) In(pool int, devices MicroGPU) MicroGPU { return devices.At(w.Of(pool)) }

// Counted gives the size of holdings as it counts in accounts.
func (s *Settings) Counted(holds []Holding) (all Size) {
	if len(s.Worths) == 0 {
		return SizeHeld(holds)
	}
	for i := range holds {
		all = all.And(holds[i].Size.At(s.Worth(holds[i].Model)))
	}
	return all
}

// CountHeld gives the GPUs of holdings as they count in accounts.
func (s *Settings) CountHeld(holds []Holding) (n GPUCount) {
	for i := range holds {
		n += holds[i].Size.At(s.Worth(holds[i].Model)).Count()
	}
	return n
}

// KindRule assigns the jobs that match it to a kind. In patterns * matches any letters and ? one
// letter; an empty pattern matches everything.
type KindRule struct {
	Tenant string `json:"tenant,omitempty"`
	User   string `json:"user,omitempty"`
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind"`
}

// SignalRule overrides Signal and SignalTo if all its set fields match.
type SignalRule struct {
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Account   string `json:"account,omitempty"`
	Signal    string `json:"signal"`
	To        string `json:"to"`
}

// Users is how the users of a tenant share its GPUs.
type Users string

// The ways.
const (
	// UsersByJob ranks the jobs of a tenant without regard to their users.
	UsersByJob Users = ""
	// UsersEqual serves the user first that is furthest behind an equal part of what the tenant receives; JobOrder holds
	// between the jobs of a user.
	UsersEqual Users = "equal"
	// UsersBooked keeps the accounts of users, and ranks jobs as UsersByJob does.
	UsersBooked Users = "booked"
)

// JobOrder is an order of the jobs inside a tenant.
type JobOrder string

// The orders.
const (
	// ByRho serves the job that is furthest behind (ASTRAEA §4.1).
	ByRho JobOrder = ""
	// ByAttained serves the jobs with the least GPU time first, by powers of two from a term of one GPU on: least
	// attained service, which needs no run times.
	ByAttained JobOrder = "attained"
	// ByExpected serves the jobs first that are expected to end for the least GPU time, as jobs of the same user did:
	// the Gittins index.
	ByExpected JobOrder = "expected"
)

// Schedule is a schedule of the configuration that is in force.
type Schedule struct {
	Name  string  `json:"name"`
	Until Instant `json:"until,omitzero"`
	Sets  string  `json:"sets"` // its settings, in words
}

// Tuned is a term of leases that was chosen by the journal (ASTRAEA §5.1.3) in place of the one in the configuration.
type Tuned struct {
	Term  Span    `json:"term"` // a schedule's own term has precedence: see Settings.Term
	File  Span    `json:"file"` // the configuration's term; equal to Term when none is in its place any more
	Since Instant `json:"since,omitzero"`
	By    string  `json:"by"`
	Why   string  `json:"why"`
	News  string  `json:"news,omitempty"` // the change in words, in the first round with it; "" = no news
}

// Divides tells whether a policy divides heterogeneous GPUs.
func (s *Settings) Divides() bool { return s.Divide != "" }

// Orders in which the jobs of a virtual cluster get its cells.
const (
	CellsByShare   = "astraea"      // by JobOrder; where a policy divides GPU models, by Mechanism
	CellsFirstCome = "fifo"         // without preemption
	CellsByService = "tiresias-l"   // in two queues by attained service
	CellsByStride  = "gandiva-fair" // by stride
)

// Mechanisms that turn a division of GPU models into jobs that run.
const (
	Nearest  = "nearest" // the jobs that bring what parties got nearest to what they are due
	ByDebt   = "debt"    // the tenant furthest behind first, job by job
	ByStride = "stride"  // Gandiva_fair's gang-aware stride (§3.1)
	ByGavel  = "gavel"   // Gavel's Algorithm 1, with moves
	ByOEF    = "oef"     // OEF's rounding (§4.3)
)

// Mechanisms lists them, the default first.
var Mechanisms = []string{Nearest, ByDebt, ByStride, ByGavel, ByOEF}

// Across says whose jobs may have parts of one GPU. Nothing keeps them apart there: each can use up the memory of the others.
type Across string

// Anybody's jobs, as Slurm has it; those of one tenant; or those of one user.
const (
	AnyUser    Across = ""
	SameTenant Across = "same-tenant"
	SameUser   Across = "same-user"
)
