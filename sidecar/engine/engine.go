// Package engine decides. Decide is given everything that it may know and returns
// everything that it wants; it has no clock, no I/O, no log and no goroutine, and
// equal snapshots give equal plans, byte for byte.
//
// It is a hall with rooms; each step is a call into one of them, and the rooms
// do not know each other:
//
//	account  ltgf    who received and was due how much since the last look
//	divide   policy  who is due how many GPUs of each model
//	choose   lease   who holds a lease in the next term
//	place    place   where
//	say              the actions, and the reasons in numbers
package engine

import (
	"cmp"
	"slices"
	"sort"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// Decide makes the plan for one round. It never fails: bad input is refused when
// the snapshot is built.
func Decide(s cluster.Snapshot) cluster.Plan {
	h := open(&s)
	// 3 choose and place: first the jobs that we act on, then, as if those were
	// fixed, the jobs that we only watch
	h.choose(cluster.Act)
	h.choose(cluster.Watch)
	slices.SortFunc(h.claims, func(a, b cluster.Claim) int { return cmp.Compare(a.Job, b.Job) })
	// 4 say
	return h.say()
}

// open takes the steps before anything is chosen.
func open(s *cluster.Snapshot) *hall {
	h := enter(s)
	// 1 account
	h.ledger, h.records = ltgf.Charge(s)
	h.leases, h.ended = lease.Reconcile(s, h.records)
	h.register()
	// 2 divide
	h.divide()
	h.claimants()
	return h
}

// hall carries the values from room to room.
type hall struct {
	s       *cluster.Snapshot
	now     cluster.Instant
	set     *cluster.Settings
	ledger  cluster.Ledger
	records []cluster.Record
	leases  []*cluster.Lease // in force, by case; nil = none
	ended   []cluster.Lease
	claims  []cluster.Claim

	pools    []string
	single   [][]int  // by pool: a list of just that one
	tenants  []string // of the ledger, in order
	weights  map[string]int64
	site     *place.Site
	standing []caseState
	actions  []cluster.Action
	// Room to put a hand-over together in.
	grants, reclaims []cluster.Action

	events []cluster.Event
}

// caseState is what the hall works out once about every case. It repeats what many
// steps ask: cases are large, and to walk over all of them is what costs most.
type caseState struct {
	touch   cluster.Touch
	there   bool              // in Slurm, and not done
	waits   bool              // there, with the state waiting
	runs    bool              // there, running or suspended
	waiting bool              // it could be granted a lease now
	took    bool              // its lease begins in this round
	told    bool              // its notice is due in this round
	tenant  int               // index into tenants, -1 = none
	gpus    int               // that it asks for
	held    int               // that it holds
	rho     cluster.Rho       // its own
	order   *cluster.Override // that is in force for it; nil = none
	shape   int               // of what it asks for; set where it may be placed
	pools   []int
	passed  *lease.Passed
	rank    int // place in its tenant's queue
	why     cluster.Code
	note    string
	until   cluster.Instant
}

// ordered tells whether an administrator's order of a kind is in force for the case.
func (st *caseState) ordered(kind cluster.OverrideKind) bool {
	return st.order != nil && st.order.Kind == kind
}

// ours tells whether a case belongs to a round of choosing.
func (st *caseState) ours(touch cluster.Touch) bool {
	return st.touch == touch || touch == cluster.Act && st.touch == cluster.Keep
}

func enter(s *cluster.Snapshot) *hall {
	h := &hall{s: s, now: s.Now, set: &s.Settings, weights: make(map[string]int64, len(s.Tenants))}
	for _, t := range s.Tenants {
		h.weights[t.Name] = t.Weight
	}
	return h
}

// register gives pools, tenants and cases their numbers.
func (h *hall) register() {
	for p := range h.ledger.Pools {
		h.pools = append(h.pools, h.ledger.Pools[p].Pool)
		h.single = append(h.single, []int{p})
	}
	n := len(h.pools)
	tenantAt := map[string]int{}
	for i := 0; n > 0 && i < len(h.ledger.Tenants); i += n {
		name := h.ledger.Tenants[i].Tenant
		tenantAt[name] = len(h.tenants)
		h.tenants = append(h.tenants, name)
	}
	h.standing = make([]caseState, len(h.s.Cases))
	for i := range h.standing {
		c, r, st := &h.s.Cases[i], &h.records[i], &h.standing[i]
		st.tenant = -1
		if t, ok := tenantAt[r.Tenant]; ok {
			st.tenant = t
		}
		st.touch, st.rho = c.Touch, cluster.RhoOf(r.Alloc, r.Due)
		st.gpus, st.held = c.Job.Request.GPUs, c.Job.GPUsHeld()
		st.there = !c.Gone && c.Job.State != cluster.Done
		st.waits = st.there && c.Job.State == cluster.Waiting
		st.runs = st.there && (c.Job.State == cluster.Running || c.Job.State == cluster.Suspended)
		if len(h.s.Overrides) > 0 {
			st.order = h.order(r)
		}
	}
}

// row gives a tenant's account in a pool.
func (h *hall) row(tenant, pool int) *cluster.TenantPool {
	return &h.ledger.Tenants[tenant*len(h.pools)+pool]
}

// pool gives the index of a GPU model, or -1.
func (h *hall) pool(model string) int {
	for i, p := range h.pools {
		if p == model {
			return i
		}
	}
	return -1
}

// poolOf gives the pool of a lease, as a list of just that one.
func (h *hall) poolOf(l *cluster.Lease) []int {
	if len(h.pools) == 0 {
		return nil
	}
	return h.single[max(h.pool(l.Pool), 0)]
}

// find gives the case of a job, or -1.
func (h *hall) find(key cluster.JobKey) int {
	i, ok := sort.Find(len(h.s.Cases), func(i int) int { return cmp.Compare(key, h.s.Cases[i].Record.Key) })
	if !ok {
		return -1
	}
	return i
}
