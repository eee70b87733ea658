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

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
)

// Decide makes the plan for one round. It never fails: bad input is refused when
// the snapshot is built.
func Decide(s cluster.Snapshot) cluster.Plan {
	h := enter(&s)
	// 1 account
	h.ledger, h.records = ltgf.Charge(&s)
	h.leases, h.ended = lease.Reconcile(&s, h.records)
	// 2 divide
	h.divide()
	h.claimants()
	// 3 choose and place: first the jobs that we act on, then, as if those were
	// fixed, the jobs that we only watch
	h.choose(cluster.Act)
	h.choose(cluster.Watch)
	// 4 say
	return h.say()
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
	tenants  []string       // of the ledger, in order
	tenantAt map[string]int // index into tenants
	weights  map[string]int64
	standing []caseState
	actions  []cluster.Action
	events   []cluster.Event
}

// caseState is what the hall works out once about every case.
type caseState struct {
	override cluster.OverrideKind
	reason   string // the override's
	waiting  bool   // it could be granted a lease now
	why      cluster.Code
	note     string
	until    cluster.Instant
	pools    []int
	passed   *lease.Passed
	rank     int  // place in its tenant's queue
	tenant   int  // index into tenants, -1 = none
	took     bool // its lease begins in this round
	told     bool // its notice is due in this round
}

func enter(s *cluster.Snapshot) *hall {
	h := &hall{s: s, now: s.Now, set: &s.Settings,
		tenantAt: map[string]int{}, weights: map[string]int64{},
	}
	for _, t := range s.Tenants {
		h.weights[t.Name] = t.Weight
	}
	return h
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

// find gives the case of a job, or -1.
func (h *hall) find(key cluster.JobKey) int {
	i, ok := slices.BinarySearchFunc(h.s.Cases, key, func(c cluster.Case, key cluster.JobKey) int {
		return cmp.Compare(c.Record.Key, key)
	})
	if !ok {
		return -1
	}
	return i
}
