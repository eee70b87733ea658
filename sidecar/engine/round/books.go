package round

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Books are what the steps of a round have found out and decided.
type Books struct {
	Facts
	Ledger  cluster.Ledger
	Records []cluster.Record // by case
	Leases  []*cluster.Lease // in force, by case; nil = none
	Ended   []cluster.Lease
	Claims  []cluster.Claim
	Events  []cluster.Event
	Jobs    []Job // by case
	// Queues are who queue for GPUs: tenants, or where JobsQueue, jobs. Rows are their accounts, by queue, then pool.
	Queues    []Claimant
	Rows      Table[QueueIndex, cluster.TenantPool]
	JobsQueue bool
	// Parties are between whom a policy divides GPU models; empty = there is none. PartyRows are their accounts.
	Parties   []Claimant
	PartyRows Table[PartyIndex, cluster.TenantPool]
	Moves     map[int]Move // by case
}

// Open gives the books of a round as they are once the time since the last look is charged and leases are reconciled
// with what was seen. rows is the first row of each case's tenant in the ledger, -1 = it has none. Books of earlier
// rounds give their room.
func (b *Books) Open(s *cluster.Snapshot, ledger cluster.Ledger, records []cluster.Record, leases []*cluster.Lease, ended []cluster.Lease, rows []int) {
	b.reset(s, &ledger)
	b.Ledger, b.Records, b.Leases, b.Ended, b.Claims, b.Events = ledger, records, leases, ended, nil, nil
	b.Moves = nil
	all := 0
	for i := range s.Nodes {
		for _, g := range s.Nodes[i].GPUs {
			all += g.Count
		}
	}
	b.Jobs = slices.Grow(b.Jobs[:0], len(s.Cases))[:len(s.Cases)]
	clear(b.Jobs)
	for i := range b.Jobs {
		b.Jobs[i].Tenant = -1
		if rows[i] >= 0 {
			b.Jobs[i].Tenant = TenantIndex(rows[i] / len(b.Pools))
		}
		b.see(i, all)
		b.aside(i)
	}
}

// see notes of a case what the snapshot, its record and its lease tell. all is the GPUs of the cluster.
func (b *Books) see(i, all int) {
	c, r, j := &b.Snapshot.Cases[i], &b.Records[i], &b.Jobs[i]
	j.Control, j.Rho = c.Control, cluster.RhoOf(r.Alloc, r.Due)
	j.GPUs = c.Job.Request.GPUs
	j.Live = !c.Gone && c.Job.State != cluster.Done
	j.Waits = j.Live && c.Job.State == cluster.Waiting
	j.Runs = j.Live && (c.Job.State == cluster.Running || c.Job.State == cluster.Suspended)
	if l := b.Leases[i]; l != nil && j.Runs {
		j.Held = l.GPUs // counted already
	} else {
		j.Held = c.Job.GPUsHeld()
	}
	if j.GPUs > all && j.Held == 0 {
		j.GPUs = 0
	}
	if len(b.Snapshot.Overrides) > 0 {
		j.Order = b.order(r)
	}
}

// Any tells whether there is a case that belongs to a round of choosing.
func (b *Books) Any(touch cluster.Control) bool {
	for i := range b.Jobs {
		if b.Jobs[i].Ours(touch) {
			return true
		}
	}
	return false
}

// Accounts gives tenants' accounts.
func (b *Books) Accounts() Table[TenantIndex, cluster.TenantPool] {
	return TableOf[TenantIndex](b.Ledger.Tenants, len(b.Pools))
}

// Comes tells whether a job has not been in a round before: what is to be said of it once is said now.
func (b *Books) Comes(i int) bool { return b.Snapshot.Cases[i].Record.ChargedTo == 0 }

// Limit gives the time limit that the next attempt of a case will have; 0 = none.
func (b *Books) Limit(i int) cluster.Span {
	c, r := &b.Snapshot.Cases[i], &b.Records[i]
	if r.UserLimit == 0 {
		return c.Job.Limit
	}
	return max(r.UserLimit-r.Ran, cluster.Minute)
}

// Report adds an event.
func (b *Books) Report(e cluster.Event) { b.Events = append(b.Events, e) }

// Wants gives the GPUs that a job holds or asks for.
func (b *Books) Wants(i int) int {
	if st := &b.Jobs[i]; st.Runs {
		return st.Held
	}
	return b.Jobs[i].GPUs
}
