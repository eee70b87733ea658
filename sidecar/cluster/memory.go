package cluster

// Record is what is remembered of a job from round to round. Records are kept
// sorted by Key.
type Record struct {
	Key     JobKey `json:"key"`
	ID      JobID  `json:"id"`
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Account string `json:"account"`
	Name    string `json:"name,omitempty"`

	Submit   Instant  `json:"submit"` // Slurm's, of the attempt last seen
	Restarts int      `json:"restarts,omitempty"`
	State    JobState `json:"state"`
	First    Instant  `json:"first"`          // when it first became eligible; 0 = not yet
	Done     Instant  `json:"done,omitempty"` // when it was seen finished or gone

	// What the user asked for before we changed anything.
	UserBegin Instant  `json:"user_begin,omitempty"`
	UserNodes []string `json:"user_nodes,omitempty"`
	UserLimit Span     `json:"user_limit,omitempty"`
	// SiteFactor is what an administrator has set, as last told while the job was not granted.
	SiteFactor int64 `json:"site_factor,omitempty"`
	// Gate is the begin time that we set last (0 = none). Pinned is true from the
	// moment we set required nodes until we see them gone.
	Gate   Instant `json:"gate,omitempty"`
	Locked bool    `json:"locked,omitempty"` // it asked for our licence at the last look
	Pinned bool    `json:"pinned,omitempty"`

	// Alloc and Due are the integrals of ASTRAEA eq. 2 and 14. DueCarry is the
	// fraction of a GPU-millisecond not yet in Due (see Accrue).
	Alloc    GPUTime `json:"alloc,omitempty"`
	Due      GPUTime `json:"due,omitempty"`
	DueCarry int64   `json:"due_carry,omitempty"`
	// DueRate is what the job is due from now on: it is what the next round
	// integrates (eq. 13, capped by the demand as in eq. 14).
	DueRate MicroGPU `json:"due_rate,omitempty"`
	// ChargedTo is up to when its running time has been charged.
	ChargedTo Instant `json:"charged_to,omitempty"`
	// Held is what it held when last seen, so that a stretch which ended
	// between two looks is still charged. HeldSince is that attempt's start.
	Held      []GPUs  `json:"held,omitempty"`
	HeldSince Instant `json:"held_since,omitempty"`
	// Acted is the time at which our grant or requeue of the last round was carried out; 0 = none was, or nobody heard of it:
	// no attempt began before that grant, and the attempt ended with that requeue.
	Acted Instant `json:"acted,omitempty"`
	// Suspend is how much of the present attempt's suspension has been counted.
	Suspend Span `json:"suspend,omitempty"`
	// Ran is the run time in attempts that ended, of which the time limit is reduced.
	Ran Span `json:"ran,omitempty"`

	Terms int     `json:"terms,omitempty"` // leases so far
	Moved Instant `json:"moved,omitempty"` // when it left one GPU model for another last; 0 = never
	// Failed counts grants in a row that did not start; Avoid holds it back until.
	Failed int      `json:"failed,omitempty"`
	Avoid  Instant  `json:"avoid,omitempty"`
	Shun   []string `json:"shun,omitempty"` // nodes of the grant that failed last
	Said   string   `json:"said,omitempty"` // Slurm's words about it

	// Lost is the GPU time that our stops destroyed so far. KnownLost and UnknownLost are parts of it, by Certainty; the
	// rest is bounded. None of it is in Alloc. Where there is no stop budget Lost is what came after notices, all of it
	// bounded, and in Alloc.
	Lost        GPUTime `json:"lost,omitempty"`
	KnownLost   GPUTime `json:"known_lost,omitempty"`
	UnknownLost GPUTime `json:"unknown_lost,omitempty"`
	// Stops counts how often we stopped it, or its node was drained or failed; Spent is what that cost it: work destroyed,
	// saves, starts. Saved is its newest reported save in the present attempt; 0 = none.
	Stops int     `json:"stops,omitempty"`
	Spent Span    `json:"spent,omitempty"`
	Saved Instant `json:"saved,omitempty"`
	// Stopping is the stop that was ordered of the present attempt; nil = none. A change makes a new one.
	Stopping *PendingStop `json:"stopping,omitempty"`
	// Beyond counts the stops that were beyond its stop budget: recalls of lent GPUs, orders and drains do not wait for it.
	Beyond int `json:"beyond,omitempty"`
	// Conduct is what it did over its attempts; nil = nothing is known.
	Conduct *Conduct `json:"conduct,omitempty"`
	// Aside is why it was set aside when last seen (see Job.Aside).
	Aside string `json:"aside,omitempty"`
	// Uncharged is true where its GPU time is charged to no tenant: it opts out of leases, and the site says so.
	Uncharged bool `json:"uncharged,omitempty"`
}

// Payer gives the tenant to which the job's GPU time is charged; "" = none.
func (r *Record) Payer() string {
	if r.Uncharged {
		return ""
	}
	return r.Tenant
}

// Bucket is one slice of the sliding window over which rho is reported.
type Bucket struct {
	Start Instant `json:"start"`
	Alloc GPUTime `json:"alloc"`
	Due   GPUTime `json:"due"`
}

// Lot is what came to be owed from Start on, in one slice of the window.
type Lot struct {
	Start Instant `json:"start"`
	Time  GPUTime `json:"time"`
}

// TenantPool is a tenant's account in one pool of GPUs of one model.
type TenantPool struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	// Base is what the tenant was due at the last look if it wanted it: its quota
	// (ASTRAEA eq. 6). Entitlement is Base after divide and trade; Demand what its
	// active jobs asked for, each GPU counted in one pool only.
	Base        MicroGPU `json:"base"`
	Entitlement MicroGPU `json:"entitlement"`
	Demand      MicroGPU `json:"demand"`
	// Deficit is the one carried error: what the tenant is owed,
	// negative where it had more.
	Deficit GPUTime `json:"deficit"`
	// Owed is what others had of its due while it wanted that, negative what it had of others'. The accounts of a pool
	// sum to 0. Lots is the same by age, oldest first, all of one sign. Repays is what it is given of others' dues until
	// it has that back, negative what it gives: part of Entitlement.
	Owed      GPUTime  `json:"owed,omitempty"`
	OwedCarry int64    `json:"owed_carry,omitempty"`
	Lots      []Lot    `json:"lots,omitempty"`
	Repays    MicroGPU `json:"repays,omitempty"`
	Repaying  bool     `json:"repaying,omitempty"`
	// Destroyed is what stops destroyed and is not yet taken off what the tenant uses, as Owed counts that.
	Destroyed GPUTime `json:"destroyed,omitempty"`
	// Young is how many GPUs its young jobs want, those that can still be stopped though not for long: the mean of about a day.
	Young    MicroGPU `json:"young,omitempty"`
	SelCarry int64    `json:"sel_carry,omitempty"`
	// Alloc and Due are all-time integrals (eq. 11 and 9), Buckets the window's. What our stops destroyed is not in Alloc.
	Alloc    GPUTime  `json:"alloc"`
	Due      GPUTime  `json:"due"`
	DueCarry int64    `json:"due_carry,omitempty"`
	Buckets  []Bucket `json:"buckets,omitempty"`
}

// Own gives what the tenant is due now but for repayments.
func (t *TenantPool) Own() MicroGPU { return t.Entitlement - t.Repays }

// PoolAccount balances a pool to the GPU-millisecond:
// Capacity = Tenants + Untouchable + Overhead + Idle + Bad.
type PoolAccount struct {
	Pool        string  `json:"pool"`
	GPUs        int     `json:"gpus"`     // at the last look, bad ones too
	BadGPUs     int     `json:"bad_gpus"` // at the last look, with nothing running on them
	Capacity    GPUTime `json:"capacity"`
	Tenants     GPUTime `json:"tenants"`
	Untouchable GPUTime `json:"untouchable"` // jobs that are charged to no tenant
	Overhead    GPUTime `json:"overhead"`    // completing or suspended, neither used nor free; and work that stops destroyed
	Idle        GPUTime `json:"idle"`
	Bad         GPUTime `json:"bad"`
	Stops       GPUTime `json:"stops,omitempty"` // what stops may still cost all its jobs together; below 0 = what they have cost beyond it
}

// Ledger is who got what, up to At.
type Ledger struct {
	At      Instant       `json:"at"`
	Tenants []TenantPool  `json:"tenants"` // sorted by tenant, pool
	Pools   []PoolAccount `json:"pools"`   // sorted by pool
}

// Lending is how long opportunistic leases of a pool ran and how often their owners recalled them: since Since, and in
// the window before that.
type Lending struct {
	Pool    string  `json:"pool"`
	Since   Instant `json:"since"`
	Now     Lent    `json:"now"`
	Earlier Lent    `json:"earlier"`
}

// Lent sums opportunistic leases up: the time that they ran, and the recalls that ended some of them.
type Lent struct {
	Time    Span `json:"time"`
	Recalls int  `json:"recalls"`
}

// Memory is everything that is remembered between two rounds. It is what the
// journal gives back after a crash.
type Memory struct {
	Round   int64    `json:"round"`
	NextKey JobKey   `json:"next_key"`
	Ledger  Ledger   `json:"ledger"`
	Records []Record `json:"records"` // sorted by key
	Leases  []Lease  `json:"leases"`  // in force: sorted by job key
	Claims  []Claim  `json:"claims,omitempty"`
	// Lost is what VCs cannot have of their cells, by VC, chain and type.
	Lost []CellLoss `json:"lost,omitempty"`
	// Lent is how long GPUs of VCs stay lent, by pool.
	Lent []Lending `json:"lent,omitempty"`
	// Parties are the accounts of those between whom a policy divides the GPUs, by party, then
	// pool; Division is what it last made of that.
	Parties  []PartyPool `json:"parties,omitempty"`
	Division *Division   `json:"division,omitempty"`
	// Profiles is how fast each kind of job is on each model; Paces of jobs that report.
	Profiles []Profile `json:"profiles,omitempty"`
	Paces    []Pace    `json:"paces,omitempty"`
	// Habits is what jobs of each type did when they were stopped and started, by type.
	Habits []Habit `json:"habits,omitempty"`
}
