package lease

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Ask is one attempt to find GPUs for a gang; see place.Ask. Leases that may be displaced are identified by
// their cases.
type Ask struct {
	Shape, Pool int
	Now, End    cluster.Instant
	Displace    int  // owner of the leases: ofNobody, ofAnybody, or ofOwner + the tenant
	Spares      int  // 1 + the tenant whose gangs of at least this size stay; 0 = none
	Sharer      int  // with whom it may share a GPU; 0 = with anybody
	Stops       bool // its lease can be ended again
	Max         int
	Together    bool // only on as few nodes as it can be on
	Near        bool // only under as few switches as these need
}

// Placement is the nodes of a gang, the ending leases that it displaces, and the time at which it can start;
// see place.Placement.
type Placement struct {
	Nodes     []cluster.Holding
	Displaced []int // cases
	At        cluster.Instant
	Sharer    int // of the ask
}

// Board is the state of the cluster during a decision. Package place implements it.
type Board interface {
	Fit(Ask) (Placement, bool)
	Take(Placement)
	Renew(who int) bool
	Claim(nodes []cluster.Holding, at cluster.Instant)
	Idle(pool int) int
	Free(pool int) []int
	Prefer(who int)
}

// Room is when Slurm's limits leave room for a job.
type Room int

// Now, Later = when leases that end now have ended, Never = neither.
const (
	Now Room = iota
	Later
	Never
)

// Limits are Slurm's limits on what jobs use together. Jobs are cases. Package admit implements it.
type Limits interface {
	// Room tells when there is room for a job that waits, or that gives up its lease otherwise.
	Room(i int) Room
	// Take counts a job from now on, or from the time when leases that end now have ended.
	Take(i int, now bool)
	// Settle tells which leases end now. Before, all did that may.
	Settle(ends func(i int) bool)
}

// Stops limits what is stopped within an hour. Jobs and leases are cases. Package field implements it.
type Stops interface {
	// May reports whether leases may end for a job.
	May(who int, leases []int) bool
	// Count counts leases that end for it.
	Count(who int, leases []int)
	// Shut reports whether none may end for others any more.
	Shut() bool
	// Held reports whether leases in a pool go on only because no more may be stopped.
	Held(pool int) bool
	// Until is when more may end; 0 = unknown.
	Until() cluster.Instant
}

// Share is a tenant's entitlement in a pool, and its use of it.
type Share struct {
	Behind      cluster.Span // with every lease in force charged to its end
	Entitlement cluster.MicroGPU
	Own         cluster.MicroGPU // the entitlement without repayments; 0 = the same
	Siblings    cluster.MicroGPU // of both, what others below the same account leave to it for now: it must not be bound
	Holds       cluster.MicroGPU // GPUs of leases that do not end now
	Bound       cluster.MicroGPU // GPUs of leases that can never be ended
	Owed        cluster.GPUTime  // GPU time of its share that others received
	Lacks       cluster.GPUTime  // of its floor, if debts are repaid, in the hour until a lease that begins now ends, with every lease in force
	Lane        cluster.MicroGPU // GPUs kept for its young jobs
	Long        cluster.MicroGPU // of Bound, GPUs of jobs that do not end soon
	Wants       cluster.MicroGPU // of its share, if GPUs that others want may not be bound
	Away        Away
}

// Away is what a tenant wanted of its share lately and does not want now.
type Away struct {
	GPUs  cluster.MicroGPU
	Until cluster.Instant // the end of this, if it wants nothing until then
}

// Tenant is a tenant with its candidates, in the order of Order.
type Tenant struct {
	Name   string
	Boost  bool
	Spent  bool    // its budget is used up: it goes last, and the others may have the GPUs of its ending leases
	Shares []Share // by pool
	Jobs   []int   // indices of candidates
	// Turns lists, by pool, the candidates that may use it, in their order there; nil = the order of Jobs.
	Turns [][]int
	// Line is the turns of all pools in one order, if the tenant may have cells.
	Line []Turn
	Gang cluster.MicroGPU // of its largest job, in devices, where debts are repaid
}

// Turn is the turn of a candidate in a pool.
type Turn struct{ Candidate, Pool int }

// Each calls f for every candidate of the tenant and every pool that could serve it. at is the pool's index
// in the candidate's Pools. Within a pool, candidates come in order.
func (t *Tenant) Each(cs []Candidate, f func(i, pool, at int)) {
	if t.Turns == nil {
		for _, i := range t.Jobs {
			for at, p := range cs[i].Pools {
				f(i, p, at)
			}
		}
	}
	for p, turn := range t.Turns {
		for _, i := range turn {
			f(i, p, slices.Index(cs[i].Pools, p))
		}
	}
}

// Input is the input of Choose.
type Input struct {
	Now        cluster.Instant
	Settings   *cluster.Settings
	Candidates []Candidate
	Tenants    []Tenant
	// Claims of earlier rounds that still hold, with the candidate and the shape that asks for exactly the
	// claimed nodes.
	Claims    []Claimed
	Trials    []Trial
	Lanes     []Lane // by pool; nil = no lanes
	Worths    cluster.PoolWorths
	Limits    Limits          // nil = no limits
	Stops     Stops           // nil = no limit
	Mechanism Mechanism       // nil = tenants queue for all GPUs
	Parties   []int           // by candidate, with a mechanism
	Sharer    func(i int) int // with whom a case may be on one GPU; 0 = with anybody; nil = all may share
	// Together is until when a case that waits takes its fewest nodes of a pool only, and until when only such under as few switches as they need;
	// past = it takes any; nil = all do.
	Together func(i, pool int) (nodes, switches cluster.Instant)
	Memory   *Memory // of an earlier choice, which is void then; nil = none
}

// Claimed is a claim with its candidate, the pool's index, and the shape that asks for exactly its nodes.
type Claimed struct {
	cluster.Claim
	Candidate, InPool, Shape int
}

// Trial is a candidate that gets a lease in a pool before all others.
type Trial struct {
	Candidate, Pool int
	Even            bool // its tenant owes no time there; else it has the lease unless another tenant is much further behind
	Idle            bool // it takes only idle GPUs
}

// Grant is a new lease for a waiting job.
type Grant struct {
	Candidate, Pool int
	Placement
	End cluster.Instant
}

// Choice is the result of Choose.
type Choice struct {
	Grants  []Grant
	Renewed []int           // candidates
	Passed  []round.Passed  // by candidate
	Due     []Due           // gangs that are due but fit nowhere, furthest behind first
	Kept    []cluster.Claim // claims that go on
	// Scattered lists gangs without a lease for which idle GPUs suffice, but not on their nodes, in the order of turns.
	Scattered []Due
	by        *chooser // to decide on candidates after the choice
}

// Due is a gang that is due in a pool but fits nowhere in it.
type Due struct{ Candidate, Pool int }
