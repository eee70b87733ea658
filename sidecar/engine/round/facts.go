package round

import (
	"hash/fnv"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Facts are what a round knows before it decides anything: its snapshot, the accounts up to now, and the state of every case. Open sets them,
// and nothing changes them afterwards.
type Facts struct {
	Snapshot *cluster.Snapshot
	Now      cluster.Instant
	Settings *cluster.Settings
	Pools    []string // GPU models
	Tenants  []string // of the ledger, in order
	// Orders are the administrators' overrides in force.
	Orders  cluster.Overrides
	Ledger  cluster.Ledger
	Records []cluster.Record // by case
	Cases   []Status         // by case
	// Stranded are the GPUs that idle, charged to the tenants of jobs that hold their CPUs or memory.
	Stranded []cluster.Stranding
	weights  []int64 // by tenant
	spent    map[string]*cluster.TenantBudget
	pools    ofPools
	keys     []cluster.JobKey  // by case: cases are too large to search in them
	controls []cluster.Control // that cases have
}

// ofPools has what is made for each pool.
type ofPools struct {
	single [][]int // a list of that pool alone
	worths cluster.PoolWorths
	whole  bool // no node has shards
}

// Owned is the GPUs of tenants in cells of their own, by pool, then tenant.
type Owned struct {
	GPUs [][]int // with the trades of cells in force
	Base [][]int // without them
	// Lots are the cells that tenants may trade, by tenant; nil = no tenant may.
	Lots [][]cluster.CellLot
}

// Opening is what a round begins with, after the time since the last round was charged and leases were reconciled with the snapshot. The
// facts take its lists over.
type Opening struct {
	Ledger   cluster.Ledger
	Records  []cluster.Record // by case
	Failures []Failure        // of their grants, which the records do not have yet
	Stranded []cluster.Stranding
	Keys     []cluster.JobKey // by case
	Rows     []int            // by case: the first row of its tenant in the ledger; -1 = none
	Users    []int            // by case: the account of its user in the ledger; -1 = none
	GPUs     int              // of all nodes
	Leases   []*cluster.Lease // by case
}

// Failure is what the look at a case's lease changes of its record.
type Failure struct {
	Case int
	Trouble
}

// Trouble is what a record tells of grants that failed and of requeues by others; see cluster.Record.
type Trouble struct {
	Failed     int
	AvoidUntil cluster.Instant
	AvoidNodes []string
	SlurmSaid  string
	Others     *cluster.Requeues
	Terms      int
	Lost       cluster.GPUTime
	MostLost   cluster.GPUTime
}

// TroubleOf returns that of a record.
func TroubleOf(r *cluster.Record) Trouble {
	return Trouble{r.Failed, r.AvoidUntil, r.AvoidNodes, r.SlurmSaid, r.Others, r.Terms, r.Lost, r.MostLost}
}

// Same reports whether another trouble is the same. Lists are replaced, never changed.
func (t *Trouble) Same(o *Trouble) bool {
	return t.Failed == o.Failed && t.AvoidUntil == o.AvoidUntil && len(t.AvoidNodes) == len(o.AvoidNodes) && (len(t.AvoidNodes) == 0 || &t.AvoidNodes[0] == &o.AvoidNodes[0]) &&
		t.SlurmSaid == o.SlurmSaid && t.Others == o.Others && t.Terms == o.Terms && t.Lost == o.Lost && t.MostLost == o.MostLost
}

// Put sets a record's.
func (t *Trouble) Put(r *cluster.Record) {
	r.Failed, r.AvoidUntil, r.AvoidNodes, r.SlurmSaid = t.Failed, t.AvoidUntil, t.AvoidNodes, t.SlurmSaid
	r.Others, r.Terms, r.Lost, r.MostLost = t.Others, t.Terms, t.Lost, t.MostLost
}

// Open sets the facts of a round, in the memory of earlier ones. It returns events of cases that are set aside, or no longer.
func (f *Facts) Open(s *cluster.Snapshot, o *Opening) (events []cluster.Event) {
	f.Snapshot, f.Now, f.Settings = s, s.Now, &s.Settings
	f.Orders = cluster.OverridesOf(s.Overrides, s.Now)
	f.Ledger, f.Records, f.Stranded, f.keys = o.Ledger, o.Records, o.Stranded, o.Keys
	for k := range o.Failures {
		o.Failures[k].Put(&f.Records[o.Failures[k].Case])
	}
	f.Pools = f.Pools[:0]
	for p := range o.Ledger.Pools {
		f.Pools = append(f.Pools, o.Ledger.Pools[p].Pool)
		if p == len(f.pools.single) {
			f.pools.single = append(f.pools.single, []int{p})
		}
	}
	f.pools.worths = s.Settings.PoolWorths(f.Pools)
	n := len(f.Pools)
	f.Tenants = f.Tenants[:0]
	for i := 0; n > 0 && i < len(o.Ledger.Tenants); i += n {
		f.Tenants = append(f.Tenants, o.Ledger.Tenants[i].Tenant)
	}
	f.weigh(s.Tenants)
	f.pools.whole = true
	for i := range s.Nodes {
		f.pools.whole = f.pools.whole && s.Nodes[i].Shards == 0
	}
	f.Cases = slices.Grow(f.Cases[:0], len(s.Cases))[:len(s.Cases)]
	f.controls = f.controls[:0]
	for i := range f.Cases {
		st := &f.Cases[i]
		*st = Status{Tenant: -1, User: int32(o.Users[i])}
		if o.Rows[i] >= 0 {
			st.Tenant = TenantIndex(o.Rows[i] / n)
		}
		if f.see(i, o); st.Before < 0 {
			events = f.aside(i, events)
		}
	}
	return events
}

// see fills in a case's status from the snapshot, its record and its lease.
func (f *Facts) see(i int, o *Opening) {
	c, r, st := &f.Snapshot.Cases[i], &f.Records[i], &f.Cases[i]
	st.Control, st.Rho, st.Before = c.Control, cluster.RhoOf(r.Work(f.Now)), int32(f.Snapshot.Before(i))
	if !slices.Contains(f.controls, st.Control) {
		f.controls = append(f.controls, st.Control)
	}
	st.Asks = c.Job.Request.Size.Amount()
	st.Live = !c.Gone && c.Job.State != cluster.Done
	st.Waits = st.Live && c.Job.State == cluster.Waiting
	st.Readied = st.Live && c.Job.State == cluster.Configuring
	st.Runs = st.Live && (c.Job.State == cluster.Running || c.Job.State == cluster.Suspended)
	if l := o.Leases[i]; l != nil && st.Runs && len(f.Settings.Worths) == 0 {
		st.Held = l.Size.Amount() // computed already
	} else {
		st.Held = cluster.SizeHeld(r.Slice.Has(c.Job.Holds)).Amount()
	}
	if st.Runs && r.Slice != nil && r.Slice.Turn.Part > 0 {
		st.Asks = st.Held
	}
	if c.Job.Request.Size.Devices > o.GPUs && st.Held == 0 {
		st.Asks = 0
	}
	if !f.Orders.None() {
		st.Order, st.Boosted = f.Orders.Of(r)
	}
}

// weigh sets the weights. A tenant whose budget is used up has none, unless that holds for all tenants with a weight: they
// then share by weight as ever.
func (f *Facts) weigh(tenants []cluster.Tenant) {
	f.weights = slices.Grow(f.weights[:0], len(f.Tenants))[:len(f.Tenants)]
	clear(f.weights)
	f.spent = nil
	left := cluster.Funded(tenants)
	at := 0 // both are by name
	for i := range tenants {
		t := &tenants[i]
		for at < len(f.Tenants) && f.Tenants[at] != t.Name {
			at++
		}
		if at == len(f.Tenants) { // there are no pools
			return
		}
		if !left || t.Budget.Since == 0 {
			f.weights[at] = t.Weight
			continue
		}
		if f.spent == nil {
			f.spent = map[string]*cluster.TenantBudget{}
		}
		f.spent[t.Name] = &cluster.TenantBudget{Since: t.Budget.Since, Until: t.Budget.Until}
	}
}

// Spent returns the budget of a tenant that has used it up, and gets idle GPUs only; else nil.
func (f *Facts) Spent(tenant string) *cluster.TenantBudget { return f.spent[tenant] }

// Weight returns the weight of a tenant; 0 = none.
func (f *Facts) Weight(tenant TenantIndex) int64 { return f.weights[tenant] }

// Pool returns the index of a GPU model, or -1.
func (f *Facts) Pool(model string) int {
	for i, p := range f.Pools {
		if p == model {
			return i
		}
	}
	return -1
}

// Worths returns what devices of the pools count as.
func (f *Facts) Worths() cluster.PoolWorths { return f.pools.worths }

// HeldIn returns what the GPUs that a case holds count in a pool.
func (f *Facts) HeldIn(pool, i int) cluster.MicroGPU { return f.Worths().In(pool, f.Cases[i].Held) }

// Just returns a list of one pool, which must not be changed.
func (f *Facts) Just(pool int) []int { return f.pools.single[pool] }

// PoolOf returns the pool of a lease as a list of one, which must not be changed.
func (f *Facts) PoolOf(l *cluster.Lease) []int {
	if len(f.Pools) == 0 {
		return nil
	}
	return f.pools.single[max(f.Pool(l.Pool), 0)]
}

// Accounts returns the accounts of tenants as of the last look.
func (f *Facts) Accounts() Table[TenantIndex, cluster.TenantPool] {
	return TableOf[TenantIndex](f.Ledger.Tenants, len(f.Pools))
}

// Find returns the case of a job, or -1.
func (f *Facts) Find(key cluster.JobKey) int {
	if i, ok := slices.BinarySearch(f.keys, key); ok {
		return i
	}
	return -1
}

// Configures reports whether the nodes of a job are made ready: it holds them, and has not begun.
func (f *Facts) Configures(i int) bool { return f.Cases[i].Readied }

// Any reports whether a case belongs to a control level.
func (f *Facts) Any(touch cluster.Control) bool {
	return slices.ContainsFunc(f.controls, func(c cluster.Control) bool { return ours(c, touch) })
}

// Comes reports whether a job is in its first round. One-time events about it are reported now.
func (f *Facts) Comes(i int) bool {
	return f.Cases[i].Before < 0 && f.Snapshot.Cases[i].Record.ChargedTo == 0
}

// Limit returns the time limit of a case's next attempt, which is what earlier ones have left, in whole minutes as Slurm counts it; 0 = none.
func (f *Facts) Limit(i int) cluster.Span {
	c, r := &f.Snapshot.Cases[i], &f.Records[i]
	switch {
	case r.UserLimit == 0:
		return c.Job.Limit
	case r.RanInLimit() == 0:
		return r.UserLimit
	}
	return max((r.UserLimit-r.RanInLimit()+cluster.Minute-1)/cluster.Minute, 1) * cluster.Minute
}

// Expiring reports whether a lease of a case ends within the notice, and its job may be reclaimed by its control level: if the job may be stopped,
// the lease is up for renewal.
func (f *Facts) Expiring(i int, l *cluster.Lease) bool {
	st := &f.Cases[i]
	if l == nil || !st.Runs {
		return false
	}
	notice := l.NoticeIn(f.Settings)
	if l.Notice > 0 && l.Why == Recalled {
		notice = max(notice, f.Settings.RecallNotice)
	}
	return l.End.Sub(f.Now) <= notice && (l.State == cluster.Active || l.State == cluster.Noticed) &&
		(st.Control == cluster.FullControl || st.Control == cluster.ObserveOnly) && !st.Ordered(cluster.Exempt)
}

// Sharer returns with whom a case may be on one GPU, if it asks for a part of one, or has one: with those of the same number; 0 = with anybody. The
// numbers are the same in all rounds with the same settings and nodes.
func (f *Facts) Sharer(i int) int {
	if f.pools.whole {
		return 0
	}
	c := &f.Snapshot.Cases[i]
	part := func(h cluster.Holding) bool { return !h.Size.IsWhole() }
	switch {
	case c.Record.Slice != nil:
		return f.SlicesWith(i)
	case c.Job.Request.MPS: // one user's server runs on a GPU
		return hashed("mps " + c.Record.User)
	case f.Settings.Across == cluster.AnyUser && f.Settings.Slices == nil, c.Job.Request.Shards == 0 && !slices.ContainsFunc(c.Job.Holds, part):
		return 0
	}
	return f.sharer("", i)
}

// SlicesWith returns the same for a case that takes turns on a GPU: it shares none with jobs that do not.
func (f *Facts) SlicesWith(i int) int { return f.sharer("slices ", i) }

func (f *Facts) sharer(what string, i int) int {
	r := &f.Snapshot.Cases[i].Record
	switch f.Settings.Across {
	case cluster.SameTenant:
		what += r.Tenant
	case cluster.SameUser:
		what += r.User
	}
	return hashed(what)
}

func hashed(name string) int {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	return int(sum.Sum64() | 1)
}
