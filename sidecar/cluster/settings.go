package cluster

// Settings is what the engine is told about how to decide. It is part of every
// snapshot, so that a replay decides with what was in force then.
type Settings struct {
	Preset string `json:"preset"` // "astraea"

	Interval     Span `json:"interval"` // between two rounds
	Term         Span `json:"term"`
	MinLease     Span `json:"min_lease"`
	Notice       Span `json:"notice"`
	GrantTimeout Span `json:"grant_timeout"`
	GateTTL      Span `json:"gate_ttl"`

	// RhoSelect is which equation says what a tenant is due when tenants are
	// chosen: 16 (its quota) or 8 (no more than it wants).
	RhoSelect int `json:"rho_select"`
	// CreditCap is how much of its own quota an idle tenant may save up.
	CreditCap Span `json:"credit_cap"`
	// BurstMaxMilli is how many thousandths of its quota a tenant may hold while
	// others wait; 0 = no limit.
	BurstMaxMilli int64 `json:"burst_max_milli"`
	// RepayFloorPercent is how much of what it wants of its due a tenant keeps while it repays what it owes; 0 = nothing is repaid.
	RepayFloorPercent int  `json:"repay_floor_percent,omitempty"`
	Window            Span `json:"window"`
	HalfLife          Span `json:"half_life,omitempty"` // 0 = none

	// Threshold is how far behind, in time at its quota, a tenant must be of the
	// one that runs before it reclaims. MaxReclaims is per round; 0 = no limit.
	Threshold   Span `json:"threshold"`
	MaxReclaims int  `json:"max_reclaims"`

	// StopAllowance and StopOverheadMilli, thousandths of its run time, are what stops may cost a job; both 0 = any
	// job may be stopped at any time, as the papers assume. StartCost is what a start costs where nothing is learnt.
	StopAllowance     Span  `json:"stop_allowance,omitempty"`
	StopOverheadMilli int64 `json:"stop_overhead_milli,omitempty"`
	// StopTotalMilli is what stops may cost all jobs of a pool together, thousandths of their run time; 0 = any number.
	StopTotalMilli int64 `json:"stop_total_milli,omitempty"`
	StartCost      Span  `json:"start_cost,omitempty"`
	// Saves says how jobs save that have neither shown nor declared it; the first rule that fits counts.
	Saves []SavingRule `json:"saves,omitempty"`

	// RecallFirst lets a job's first lease begin in the middle of others' terms: leases are
	// recalled for it, RecallNotice before they end.
	RecallFirst  bool `json:"recall_first,omitempty"`
	RecallNotice Span `json:"recall_notice,omitempty"`

	// NewFirst puts jobs without a lease so far first, for at most NewSharePercent
	// of their tenant's GPUs.
	NewFirst        bool `json:"new_first"`
	NewSharePercent int  `json:"new_share_percent"`
	// LongTerms > 0: a job with that many leases behind it keeps its lease more
	// readily (within its tenant).
	LongTerms int      `json:"long_terms,omitempty"`
	UrgentQOS []string `json:"urgent_qos,omitempty"`
	// JobWeights gives weights other than 1 by QOS (ASTRAEA's W_job).
	JobWeights []JobWeight `json:"job_weights,omitempty"`

	// Signal is sent as notice; SignalTo is "steps", "batch" or "all".
	Signal   string       `json:"signal"`
	SignalTo string       `json:"signal_to"`
	Signals  []SignalRule `json:"signals,omitempty"`

	// Chooser says who holds a VC's cells next: "astraea", "fifo", "tiresias-l",
	// "gandiva-fair".
	Chooser string `json:"chooser,omitempty"`
	// AffinityWait is how long a job waits for its GPUs on few nodes before any will
	// do, where it did not ask for nodes.
	AffinityWait Span `json:"affinity_wait,omitempty"`
	// StrictQOS are those whose jobs run on their tenant's own cells only.
	StrictQOS []string `json:"strict_qos,omitempty"`

	// Divide is the policy that divides the GPUs of unlike models ("gavel:las", "oef:coop",
	// "gandiva-fair", …); "" = by weight. DivideJobs tells that it divides them between jobs, else
	// it does between tenants' kinds of jobs. What time alone changes makes it divide anew every
	// DivideEvery rounds; 0 = never.
	Divide      string `json:"divide,omitempty"`
	DivideJobs  bool   `json:"divide_jobs,omitempty"`
	DivideEvery int64  `json:"divide_every,omitempty"`
	// Kinds says which jobs are of a kind; the first rule that fits counts. NoEstimates leaves
	// rates that nobody declared or observed unknown. Prices of a GPU and hour are by model.
	Kinds       []KindRule `json:"kinds,omitempty"`
	NoEstimates bool       `json:"no_estimates,omitempty"`
	Prices      []Price    `json:"prices,omitempty"`

	// SiteFactor is added to the priority of a job that was granted a lease, so
	// that nothing ungated stands before it in Slurm's queue; 0 = leave it alone.
	SiteFactor int64 `json:"site_factor,omitempty"`
}

// SavingRule says how jobs save that have neither shown nor declared it, where all its set fields match.
type SavingRule struct {
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Manner    Manner `json:"manner"`
	Every     Span   `json:"every,omitempty"`
	// Source is FromSite, or FromDeclaration where the site calls the QOS or partition preemptible; Evidence says it.
	Source   SavingSource `json:"source,omitempty"`
	Evidence string       `json:"evidence,omitempty"`
}

// JobWeight is the weight in thousandths of jobs of a QOS inside their tenant.
type JobWeight struct {
	QOS   string `json:"qos"`
	Milli int64  `json:"milli"`
}

// Price is what a GPU of a model costs an hour, in any currency.
type Price struct {
	Model string  `json:"model"`
	Price float64 `json:"price"`
}

// KindRule says of which kind the jobs are that it fits. Its patterns know * for any letters
// and ? for one; an empty one fits everything.
type KindRule struct {
	Tenant string `json:"tenant,omitempty"`
	User   string `json:"user,omitempty"`
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind"`
}

// SignalRule overrides Signal and SignalTo where all its set fields match.
type SignalRule struct {
	Partition string `json:"partition,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Account   string `json:"account,omitempty"`
	Signal    string `json:"signal"`
	To        string `json:"to"`
}
