package cluster

import (
	"cmp"
	"iter"
	"slices"
)

// Record is the state of a job that is kept from round to round. Records are sorted by Key.
type Record struct {
	Key     JobKey `json:"key"`
	ID      JobID  `json:"id"`
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Account string `json:"account"`
	Name    string `json:"name,omitempty"`

	Submit   Instant  `json:"submit,omitzero"` // as Slurm reports it, of the attempt last seen
	Restarts int      `json:"restarts,omitempty"`
	State    JobState `json:"state"`
	First    Instant  `json:"first,omitzero"` // when it first became eligible; 0 = not yet
	Done     Instant  `json:"done,omitempty"` // when it was seen finished or gone

	// The user's own request, from before fairlease changed anything.
	UserBegin Instant  `json:"user_begin,omitempty"`
	UserNodes []string `json:"user_nodes,omitempty"`
	UserLimit Span     `json:"user_limit,omitempty"`
	// UserMaxNodes is the user's maximum number of nodes while a grant has lowered it; -1 = no limit,
	// 0 = it is not lowered.
	UserMaxNodes int `json:"user_max_nodes,omitempty"`
	// UserPartitions are the user's partitions while a grant has narrowed them; nil = it has not.
	UserPartitions []string `json:"user_partitions,omitempty"`
	// SiteFactor is the administrator's value, as last seen while the job had no grant.
	SiteFactor int64 `json:"site_factor,omitempty"`
	// Gate is the begin time that we set last (0 = none). Pinned is true from the moment we set
	// required nodes until they are seen to be gone.
	Gate   Instant `json:"gate,omitempty"`
	Locked bool    `json:"locked,omitempty"` // it requested our licence at the last look
	Pinned bool    `json:"pinned,omitempty"`

	// Alloc and Due are the integrals of ASTRAEA eq. 2 and 14. DueCarry is the fraction of a
	// GPU-millisecond not yet in Due (see Accrue).
	Alloc    GPUTime `json:"alloc,omitempty"`
	Due      GPUTime `json:"due,omitempty"`
	DueCarry int64   `json:"due_carry,omitempty"`
	// DueRate is the job's entitlement since DueSince, the moment of Due: see DueBy (eq. 13, capped by the demand as in eq. 14). As long as it
	// is the same, the record of a job that waits does not change. DueSince 0 = Due is of the last round.
	DueRate  MicroGPU `json:"due_rate,omitempty"`
	DueSince Instant  `json:"due_since,omitempty"`
	Extra    Extra    `json:"extra,omitzero"`
	// ChargedTo is the first round up to which its run time was charged; 0 = none yet. Since then it is charged in every round, up to the moment of
	// the ledger.
	ChargedTo Instant `json:"charged_to,omitempty"`
	// Held is its allocation when last seen, so that an attempt that ended between two looks is
	// still charged. HeldSince is the start of that attempt.
	Held      []ModelSize `json:"held,omitempty"`
	HeldSince Instant     `json:"held_since,omitempty"`
	// Scattered is true if the newest attempt, as last seen with its allocation, has more nodes than the fewest on which its GPUs fit.
	Scattered bool `json:"scattered,omitempty"`
	// Across is the same of switches, on the fewest nodes: they are more than so many nodes need.
	Across bool `json:"across,omitempty"`
	// Configured is the last look at which the nodes of the current attempt booted or were prepared: the attempt has begun since. 0 = they
	// were ready at once, or that is unknown.
	Configured Instant `json:"configured,omitempty"`
	// Acted is when our grant or requeue of the last round was carried out; 0 = it was not, or
	// that is unknown. No attempt began before that grant, and the attempt ended with that
	// requeue.
	Acted Instant `json:"acted,omitempty"`
	// Suspend is the part of the current attempt's suspension that has been counted.
	Suspend Span `json:"suspend,omitempty"`
	// Ran is the run time of ended attempts. It reduces the time limit.
	Ran Span `json:"ran,omitempty"`
	// RanOn is the run time of ended attempts by GPU model, where a policy divides models, and of gangs that have been scattered. Replace it, never
	// modify it.
	RanOn []ModelTime `json:"ran_on,omitempty"`
	// Measured is the start of the attempt whose GPU counters count in the usage of its kind.
	Measured Instant `json:"measured,omitempty"`

	// Pass is its place in the stride of its virtual cluster, if that chooses by stride: time on its GPUs since it
	// joined, plus the pass at which it joined. 0 = it has not joined.
	Pass  Span    `json:"pass,omitempty"`
	Terms int     `json:"terms,omitempty"` // leases so far
	Moved Instant `json:"moved,omitempty"` // when it last changed its GPU model; 0 = never
	// Together is since when it has waited for its fewest nodes, or for few switches, although it could have begun on others; 0 = it does not.
	Together Instant `json:"together,omitempty"`
	// Failed counts consecutive grants that did not start, or whose start did not last. The job gets no grant before Avoid.
	Failed     int      `json:"failed,omitempty"`
	AvoidUntil Instant  `json:"avoid,omitempty"`
	AvoidNodes []string `json:"avoid_nodes,omitempty"` // nodes of the last failed grant
	SlurmSaid  string   `json:"said,omitempty"`        // Slurm's message about it, or RequeuedAtStart

	// Lost is the GPU time that our stops destroyed so far. KnownLost and UnknownLost are parts
	// of it, by Certainty; the rest is bounded. None of it is in Alloc. Without a stop budget,
	// Lost is the GPU time after notices, all of it bounded, and included in Alloc. MostLost is
	// an upper bound of what they destroyed, whatever the job declares: see Loss.
	Lost        GPUTime `json:"lost,omitempty"`
	MostLost    GPUTime `json:"most_lost,omitempty"`
	KnownLost   GPUTime `json:"known_lost,omitempty"`
	UnknownLost GPUTime `json:"unknown_lost,omitempty"`
	// Stops counts our stops. Spent is their cost: destroyed work, saves, starts. Saved is the newest
	// reported save of the current attempt; 0 = none.
	Stops int     `json:"stops,omitempty"`
	Spent Span    `json:"spent,omitempty"`
	Saved Instant `json:"saved,omitempty"`
	// Stopping is the ordered stop of the current attempt; nil = none. Replace it, never modify
	// it.
	Stopping *PendingStop `json:"stopping,omitempty"`
	// Beyond counts stops in excess of its stop budget: recalls of lent GPUs and administrators'
	// orders do not wait for the budget.
	Beyond int `json:"beyond,omitempty"`
	// Others are its requeues that fairlease did not order; nil = none.
	Others *Requeues `json:"others,omitempty"`
	// Conduct summarises the job's behaviour over its attempts; nil = unknown.
	Conduct *Conduct `json:"conduct,omitempty"`
	// Aside says why it was set aside when last seen (see Job.Aside).
	Aside string `json:"aside,omitempty"`
	// Uncharged is true if no tenant pays for its GPU time: it opts out of leases, and the site
	// allows that.
	Uncharged bool `json:"uncharged,omitempty"`
	// Slice is its part of a GPU on which it takes turns; nil = it takes none. Replace it, never modify it.
	Slice *Slice `json:"slice,omitempty"`
	// Basis is what its lease was granted on; nil = it waits without a lease.
	Basis *Basis `json:"base,omitempty"`
}

// A job is a former one from FormerAfter after it was seen finished or gone: by default Slurm lists it no longer. Its record is kept for
// FormerFor, in case its id is used again, or the history has more of it.
const (
	FormerAfter = 5 * Minute
	FormerFor   = Hour
)

// IsFormer tells whether the job is a former one at a moment.
func (r *Record) IsFormer(at Instant) bool { return r.Done != 0 && at.Sub(r.Done) >= FormerAfter }

// CompareFormer orders the records of former jobs.
func CompareFormer(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Done, b.Done), cmp.Compare(a.Key, b.Key))
}

// Part moves the records of jobs that are former ones at a moment from Records, which it changes in place, to Former.
func (m *State) Part(at Instant) {
	m.Records = slices.DeleteFunc(m.Records, func(r Record) bool {
		former := r.IsFormer(at)
		if former {
			m.Former = append(m.Former, r)
		}
		return former
	})
	slices.SortFunc(m.Former, CompareFormer)
}

// All iterates over the records of all jobs, former ones last.
func (m State) All() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		for _, list := range [][]Record{m.Records, m.Former} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// ModelTime is run time on a GPU model; see Spread.
type ModelTime struct {
	Model string `json:"model"`
	Ran   Span   `json:"ran"`
}

// Payer gives the tenant that is charged for the job's GPU time; "" = none.
func (r *Record) Payer() string {
	if r.Uncharged {
		return ""
	}
	return r.Tenant
}

// ConfiguredIn gives Configured of the attempt that a job is in, which has had so many restarts; 0 = it is another one than before.
func (r *Record) ConfiguredIn(restarts int, state JobState) Instant {
	if restarts != r.Restarts || state == Waiting {
		return 0
	}
	return r.Configured
}

// Received returns the work that the job received, in GPU-milliseconds of the reference model.
func Received(r *Record) GPUTime { return r.Alloc + r.Extra.Alloc }

// Work returns the work that the job received and was due, in GPU-milliseconds of the reference model.
// at is the moment of the accounts: that of the ledger.
func (r *Record) Work(at Instant) (received, due GPUTime) {
	due, _ = DueBy(r, at)
	return Received(r), due + r.Extra.Due
}

// DueBy returns the GPU time due by a moment, and its carry. Before DueSince they are Due and DueCarry.
func DueBy(r *Record, at Instant) (GPUTime, int64) {
	if r.DueRate <= 0 || r.DueSince == 0 || at <= r.DueSince {
		return r.Due, r.DueCarry
	}
	more, carry := Accrue(r.DueRate, at.Sub(r.DueSince), r.DueCarry)
	return r.Due + more, carry
}

// AsOf returns a record with its accounts as of a moment, up to which it is charged: for who reads it by itself.
func AsOf(r *Record, at Instant) *Record {
	out := *r
	out.Due, out.DueCarry = DueBy(r, at)
	if out.DueRate > 0 {
		out.DueSince = at
	}
	if out.ChargedTo > 0 {
		out.ChargedTo = max(at, out.ChargedTo)
	}
	return &out
}

// Rest writes Due as it was written in the last round, if the job is still due as that record says: then the record stays as it is. now is the
// moment of Due, and at that of the last round's accounts.
func Rest(r, was *Record, at, now Instant) {
	if r.DueSince = now; r.DueRate == 0 {
		r.DueSince = 0
		return
	}
	if r.DueRate != was.DueRate || was.DueSince == 0 || now < at {
		return
	}
	if due, carry := DueBy(was, now); due == r.Due && carry == r.DueCarry {
		r.Due, r.DueCarry, r.DueSince = was.Due, was.DueCarry, was.DueSince
	}
}

// Bucket is one slice of the sliding window in which rho is reported. Extra and ExtraDue are work beyond Alloc and Due.
type Bucket struct {
	Start    Instant `json:"start,omitzero"`
	Alloc    GPUTime `json:"alloc"`
	Due      GPUTime `json:"due"`
	Extra    GPUTime `json:"extra,omitempty"`
	ExtraDue GPUTime `json:"extra_due,omitempty"`
}

// Extra is the work of an account beyond its GPU time. Work is GPU time times speedup, in GPU-milliseconds of the
// reference model (SEMANTICS §2). Where no policy divides GPU models, GPU time is work and Extra is zero.
type Extra struct {
	// Faster is the speedup on the account's GPUs since the last look, less 1, in millionths: 0 = 1 or unknown, -1_000_000 =
	// they are of no use. It prices the work from the last look on; past work stays as it was counted.
	Faster int64 `json:"faster,omitempty"`
	// Alloc and Due are the work received and due, less the GPU time received and due.
	Alloc GPUTime `json:"alloc,omitempty"`
	Due   GPUTime `json:"due,omitempty"`
}

// Of returns the work that GPU time at the speedup of Faster is, less that GPU time; rounded to the nearest.
func (x *Extra) Of(time GPUTime) GPUTime {
	if x.Faster == 0 {
		return 0
	}
	more, _ := Accrue(MicroGPU(max(x.Faster, -x.Faster)), Span(max(time, -time)), int64(WholeGPU)/2)
	if (x.Faster < 0) != (time < 0) {
		return -more
	}
	return more
}

// Lot is the debt that arose in one slice of the window, from Start on.
type Lot struct {
	Start Instant `json:"start,omitzero"`
	Time  GPUTime `json:"time"`
}

// TenantPool is a tenant's account in one pool of GPUs of one model.
type TenantPool struct {
	Tenant string `json:"tenant"`
	Pool   string `json:"pool"`
	// Base is the tenant's quota at the last look (ASTRAEA eq. 6), whether or not it wanted it.
	// Entitlement is Base after divide and trade. Demand is the request of its active jobs, with
	// each GPU counted in one pool only.
	Base        MicroGPU `json:"base"`
	Entitlement MicroGPU `json:"entitlement"`
	Demand      MicroGPU `json:"demand"`
	// Deficit is the only error that is carried forward: GPU time owed to the tenant, negative if
	// it received too much.
	Deficit GPUTime `json:"deficit"`
	// Owed is the entitled GPU time that others used while the tenant wanted it; negative if the
	// tenant used others'. The accounts of a pool sum to 0. Lots is the same by age, oldest
	// first, all of one sign. Repays is the rate at which others' entitlements are given to it
	// until the debt is settled, negative if it gives. Entitlement includes Repays.
	Owed      GPUTime  `json:"owed,omitempty"`
	OwedCarry int64    `json:"owed_carry,omitempty"`
	Lots      []Lot    `json:"lots,omitempty"`
	Repays    MicroGPU `json:"repays,omitempty"`
	Repaying  bool     `json:"repaying,omitempty"`
	// Lacks is the GPU time by which it held less than its floor in the last hour while it repays, negative if more, in lots by time.
	Lacks []Lot `json:"lacks,omitempty"`
	// Destroyed is GPU time that stops destroyed and that has not yet been deducted from the
	// tenant's use, as Owed counts it.
	Destroyed GPUTime `json:"destroyed,omitempty"`
	// Young is the demand of jobs that can still be stopped, though not for long: the mean of
	// about a day.
	Young MicroGPU `json:"young,omitempty"`
	// Wanted is what its jobs could use of its entitlement at WantedAt (0 = at the last look). It counts less as time
	// passes, and the present demand replaces it as soon as that counts more; see Lately.
	Wanted   MicroGPU `json:"wanted,omitempty"`
	WantedAt Instant  `json:"wanted_at,omitempty"`
	SelCarry int64    `json:"sel_carry,omitempty"`
	// Alloc and Due are all-time integrals (eq. 11 and 9); Buckets are those of the window. Alloc
	// omits work that our stops destroyed.
	Alloc    GPUTime  `json:"alloc"`
	Due      GPUTime  `json:"due"`
	DueCarry int64    `json:"due_carry,omitempty"`
	Buckets  []Bucket `json:"buckets,omitempty"`
	// Usable is the part of Base that its active jobs can use at once, fastest models first, where a policy divides GPU
	// models. The work due is that of Usable.
	Usable MicroGPU `json:"usable,omitempty"`
	Extra  Extra    `json:"extra,omitzero"`
	// Under is the tenant's Under when it was last seen.
	Under string `json:"under,omitempty"`
}

// Own gives the tenant's current entitlement without repayments.
func (t *TenantPool) Own() MicroGPU { return t.Entitlement - t.Repays }

// OfSiblings gives the part of that which tenants below the same account leave to it for now.
func (t *TenantPool) OfSiblings() MicroGPU { return max(t.Own()-t.Lasting(), 0) }

// Lasting gives the entitlement that the tenant has if it and all tenants below the same account want theirs.
func (t *TenantPool) Lasting() MicroGPU {
	if t.Under == "" {
		return t.Own()
	}
	return t.Base
}

// Lately gives the part of its entitlement that the tenant is expected to want again: what it wanted last, less in
// proportion to the time since then, and nothing after quiet.
func (t *TenantPool) Lately(now Instant, quiet Span) MicroGPU {
	if t.WantedAt == 0 && quiet > 0 {
		return t.Wanted
	}
	left := quiet - now.Sub(t.WantedAt)
	if left <= 0 || quiet <= 0 {
		return 0
	}
	return MicroGPU(MulDiv(int64(t.Wanted), int64(min(left, quiet)), int64(quiet)))
}

// PoolAccount balances a pool to the GPU-millisecond:
// Capacity = Tenants + Untouchable + Overhead + Idle + Bad.
type PoolAccount struct {
	Pool        string   `json:"pool"`
	GPUs        GPUCount `json:"gpus"`     // at the last look, bad ones too, by the worth of its devices
	BadGPUs     GPUCount `json:"bad_gpus"` // at the last look, with nothing running on them
	Capacity    GPUTime  `json:"capacity"`
	Tenants     GPUTime  `json:"tenants"`
	Untouchable GPUTime  `json:"untouchable"` // jobs that are charged to no tenant
	Overhead    GPUTime  `json:"overhead"`    // completing or suspended, neither used nor free; and work destroyed by stops
	Idle        GPUTime  `json:"idle"`
	Bad         GPUTime  `json:"bad"`
	Stops       GPUTime  `json:"stops,omitempty"` // remaining allowance for stops of all its jobs; negative = exceeded
}

// UserAccount is a user's account inside its tenant, over all pools. A user's due in an interval is an equal part of the
// GPU time that its tenant's users received in each pool, at most what its jobs could use; the parts that others leave go
// to the rest (max-min).
type UserAccount struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	// Wants is the demand of its active jobs by pool, with each GPU counted in one pool only; pools in which it had
	// demand before are kept.
	Wants []UserDemand `json:"wants,omitempty"`
	// Owed is GPU time of its due that other users of the tenant received; negative if it received theirs. The accounts of
	// a tenant sum to 0. Lent is GPU time of equal parts that it left to the others, at most Settings.CreditCap.
	Owed GPUTime `json:"owed,omitempty"`
	Lent GPUTime `json:"lent,omitempty"`
	// Alloc and Due are what it received and was due since Since, Before the same in the half window before that.
	Since  Instant  `json:"since,omitzero"`
	Alloc  GPUTime  `json:"alloc,omitempty"`
	Due    GPUTime  `json:"due,omitempty"`
	Before UserTime `json:"before,omitzero"`
	// Seen is when it last had a job, to a 56th of the window. The account is dropped a window later.
	Seen Instant `json:"seen,omitzero"`
}

// Credit gives the GPU time by which a user is behind its equal part, negative if it is ahead.
func (a *UserAccount) Credit() GPUTime { return a.Owed + a.Lent }

// Received gives what the user received and was due in the last half window to whole window.
func (a *UserAccount) Received() UserTime {
	return UserTime{Alloc: a.Alloc + a.Before.Alloc, Due: a.Due + a.Before.Due}
}

// UserDemand is a user's demand in a pool.
type UserDemand struct {
	Pool string   `json:"pool"`
	GPUs MicroGPU `json:"gpus"`
}

// UserTime is what a user received and was due.
type UserTime struct {
	Alloc GPUTime `json:"alloc,omitempty"`
	Due   GPUTime `json:"due,omitempty"`
}

// Ledger holds the accounts of GPU time, up to At.
type Ledger struct {
	At      Instant       `json:"at,omitzero"`
	Tenants []TenantPool  `json:"tenants"`         // sorted by tenant, pool
	Pools   []PoolAccount `json:"pools"`           // sorted by pool
	Users   []UserAccount `json:"users,omitempty"` // sorted by tenant, user
	// Conversions are of the trades in force, in the order in which they were made.
	Conversions []Conversion `json:"conversions,omitempty"`
	// Stranded are the stranded GPUs at At, in order of the jobs: if a job has ended by the next look, that look still charges it.
	Stranded []StrandedGPUs `json:"stranded,omitempty"`
}

// StrandedGPUs are the GPUs of a pool that a job strands; see Stranding.
type StrandedGPUs struct {
	Job  JobKey   `json:"job"`
	Pool string   `json:"pool"`
	GPUs MicroGPU `json:"gpus"`
}

// Conversion is what a trade has moved between the accounts of its two sides. As much of it is moved back as ends of the trade.
type Conversion struct {
	Trade    int64     `json:"trade"`
	Fast     string    `json:"fast"` // models
	Slow     string    `json:"slow"`
	FastTo   PartyName `json:"fast_to"`
	SlowTo   PartyName `json:"slow_to"`
	FastGPUs MicroGPU  `json:"fast_gpus"` // of the trade when it was made: its price
	SlowGPUs MicroGPU  `json:"slow_gpus"`
	Left     MicroGPU  `json:"left"`             // slow GPUs of the trade at the last look
	Tenants  Moved     `json:"tenants,omitzero"` // of the tenants' accounts
	Parties  Moved     `json:"parties,omitzero"` // of the parties'
}

// Moved is what a trade moved: of deficits, and of debts by age, oldest first.
type Moved struct {
	Deficit MovedTime  `json:"deficit,omitzero"`
	Debts   []MovedLot `json:"debts,omitempty"`
}

// MovedTime is GPU time of the slow pool that went to the side that gets slow GPUs, and of the fast pool that
// went to the other side for it.
type MovedTime struct {
	Slow GPUTime `json:"slow,omitempty"`
	Fast GPUTime `json:"fast,omitempty"`
}

// MovedLot is MovedTime of one slice of the window.
type MovedLot struct {
	Start Instant `json:"start,omitzero"`
	MovedTime
}

// Lending is how long opportunistic leases of a pool ran, and how often their owners recalled
// them: since Since, and in the window before that.
type Lending struct {
	Pool    string  `json:"pool"`
	Since   Instant `json:"since,omitzero"`
	Now     Lent    `json:"now"`
	Earlier Lent    `json:"earlier"`
}

// Lent sums opportunistic leases: their run time, and the number of recalls.
type Lent struct {
	Time    Span `json:"time"`
	Recalls int  `json:"recalls"`
}

// State is all state that is kept between two rounds. The journal restores it after a crash.
type State struct {
	Round   int64    `json:"round"`
	NextKey JobKey   `json:"next_key"`
	Ledger  Ledger   `json:"ledger"`
	Records []Record `json:"records"` // sorted by key
	// Former are the records of former jobs, which no round goes through, by Done, then by key. They are not among Records.
	Former []Record `json:"former,omitempty"`
	Leases []Lease  `json:"leases"` // in force: sorted by job key
	Claims []Claim  `json:"claims,omitempty"`
	// Lost counts the cells that VCs cannot use, by VC, chain and type.
	Lost []CellLoss `json:"lost,omitempty"`
	// Lent is how long VCs' GPUs stay lent, by pool.
	Lent []Lending `json:"lent,omitempty"`
	// CellTrades are the trades of cells in force, in the order in which they took effect.
	CellTrades []CellTrade `json:"cell_trades,omitempty"`
	// Parties are the accounts of the parties of a policy, by party, then pool. Allocation is the
	// policy's last answer.
	Parties    []PartyPool `json:"parties,omitempty"`
	Allocation *Allocation `json:"allocation,omitempty"`
	// Profiles is the throughput of each kind of job on each model; Paces is of jobs that report
	// progress.
	Profiles []Profile `json:"profiles,omitempty"`
	Paces    []Pace    `json:"paces,omitempty"`
	// Completions and Usages are what jobs that report nothing show of the speed of their kind.
	Completions []Completion `json:"completions,omitempty"`
	Usages      []Usage      `json:"usages,omitempty"`
	// Habits summarises, by type, how jobs behaved when they were stopped and started.
	Habits []Habit `json:"habits,omitempty"`
	// Causes are why Slurm did not start granted jobs, sorted.
	Causes []Cause `json:"causes,omitempty"`
	// Restored is Snapshot.Restored of the next round. A journal gives it when it is opened: no plan has it.
	Restored *Restored `json:"-"`
	// Had is what jobs had before fairlease changed them, if the journal was restored: their users' own settings, by id, which the journal
	// may have lost. It is not part of a plan either.
	Had []Record `json:"-"`
	// Limits are Snapshot.Limits of the newest round, which the journal gives from its snapshot: no plan has them.
	Limits *Limits `json:"-"`
	// Preempted and Unpreempted are those of the snapshot: they hold after a restart until Slurm's words have been read.
	Preempted   []Preempted `json:"preempted,omitempty"`
	Unpreempted []string    `json:"unpreempted,omitempty"`
	// Noise counts the events that users have caused within the last hour, by user.
	Noise []Noise `json:"noise,omitempty"`
	// Stops are the jobs that fairlease has stopped within the last hour, or is about to stop, by job. Shadow is what it would have stopped
	// where it only observes.
	Stops  []Stopped `json:"stops,omitempty"`
	Shadow Shadow    `json:"shadow,omitzero"`
	// Breaker is the harm that fairlease may have done within the last hour, and what is usual.
	Breaker Breaker `json:"breaker,omitzero"`
	// NodeSpeeds compare the nodes by the jobs that ran on them.
	NodeSpeeds NodeSpeeds `json:"node_speeds,omitzero"`
}
