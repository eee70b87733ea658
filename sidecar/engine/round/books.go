package round

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Books hold the findings and decisions of a round's steps.
type Books struct {
	In      Facts
	Ledger  cluster.Ledger
	Records []cluster.Record // by case
	Leases  []*cluster.Lease // in force, by case; nil = none
	Ended   []cluster.Lease
	Claims  []cluster.Claim
	Events  []cluster.Event
	Jobs    []Job // by case
	// Stranded are the GPUs that idle, charged to the tenants of jobs that hold their CPUs or memory. Decide sets
	// them.
	Stranded []cluster.Stranding
	// Queues are the tenants that queue for GPUs, or the jobs if JobsQueue. Rows are their accounts, by
	// queue, then pool.
	Queues    []Claimant
	Rows      Table[QueueIndex, cluster.TenantPool]
	JobsQueue bool
	controls  []cluster.Control // that cases have
	Divided   Divided
	Moves     map[int]Move // by case
}

// Divided holds the parties of a policy for heterogeneous GPUs, and the accounts of what the policy promises; empty = no policy.
type Divided struct {
	Parties    []Claimant
	PartyRows  Table[PartyIndex, cluster.TenantPool]
	TenantRows Table[TenantIndex, cluster.TenantPool] // of each tenant's parties together, with those that have left
}

// Opening is what a round begins with, after the time since the last round was charged and leases were reconciled with the snapshot.
type Opening struct {
	Ledger  cluster.Ledger
	Records []cluster.Record // by case
	Keys    []cluster.JobKey // by case
	Rows    []int            // by case: the first row of its tenant in the ledger; -1 = none
	Users   []int            // by case: the account of its user in the ledger; -1 = none
	GPUs    int              // of all nodes
	Leases  []*cluster.Lease // by case
	Ended   []cluster.Lease
}

// Open sets the books of a round. It reuses the memory of earlier books.
func (b *Books) Open(s *cluster.Snapshot, o *Opening) {
	b.In.reset(s, o)
	b.Ledger, b.Records, b.Leases, b.Ended, b.Claims, b.Events = o.Ledger, o.Records, o.Leases, o.Ended, nil, nil
	b.Moves = nil
	b.Jobs = slices.Grow(b.Jobs[:0], len(s.Cases))[:len(s.Cases)]
	clear(b.Jobs)
	b.controls = b.controls[:0]
	for i := range b.Jobs {
		b.Jobs[i].Is.Tenant, b.Jobs[i].Is.User = -1, int32(o.Users[i])
		if o.Rows[i] >= 0 {
			b.Jobs[i].Is.Tenant = TenantIndex(o.Rows[i] / len(b.In.Pools))
		}
		if b.see(i, o.GPUs); b.Jobs[i].Is.Before < 0 {
			b.aside(i)
		}
	}
}

// see fills in a case's status from the snapshot, its record and its lease. all is the number of GPUs in the
// cluster.
func (b *Books) see(i, all int) {
	c, r, j := &b.In.Snapshot.Cases[i], &b.Records[i], &b.Jobs[i]
	j.Is.Control, j.Is.Rho, j.Is.Before = c.Control, cluster.RhoOf(r.Work()), int32(b.In.Snapshot.Before(i))
	if !slices.Contains(b.controls, j.Is.Control) {
		b.controls = append(b.controls, j.Is.Control)
	}
	j.Is.GPUs = c.Job.Request.GPUs
	j.Is.Live = !c.Gone && c.Job.State != cluster.Done
	j.Is.Waits = j.Is.Live && c.Job.State == cluster.Waiting
	j.Is.Readied = j.Is.Live && c.Job.State == cluster.Configuring
	j.Is.Runs = j.Is.Live && (c.Job.State == cluster.Running || c.Job.State == cluster.Suspended)
	if l := b.Leases[i]; l != nil && j.Is.Runs {
		j.Is.Held = l.GPUs // computed already
	} else {
		j.Is.Held = c.Job.GPUsHeld()
	}
	if j.Is.GPUs > all && j.Is.Held == 0 {
		j.Is.GPUs = 0
	}
	if !b.In.Orders.None() {
		j.Is.Order, j.Is.Boosted = b.In.Orders.Of(r)
	}
}

// Configures reports whether the nodes of a job are made ready: it holds them, and has not begun.
func (b *Books) Configures(i int) bool { return b.Jobs[i].Is.Readied }

// Any reports whether a case belongs to a control level.
func (b *Books) Any(touch cluster.Control) bool {
	return slices.ContainsFunc(b.controls, func(c cluster.Control) bool { return ours(c, touch) })
}

// Accounts returns the accounts of tenants.
func (b *Books) Accounts() Table[TenantIndex, cluster.TenantPool] {
	return TableOf[TenantIndex](b.Ledger.Tenants, len(b.In.Pools))
}

// Comes reports whether a job is in its first round. One-time events about it are reported now.
func (b *Books) Comes(i int) bool {
	return b.Jobs[i].Is.Before < 0 && b.In.Snapshot.Cases[i].Record.ChargedTo == 0
}

// Limit returns the time limit of a case's next attempt, which is what earlier ones have left, in whole minutes as Slurm counts it; 0 = none.
func (b *Books) Limit(i int) cluster.Span {
	c, r := &b.In.Snapshot.Cases[i], &b.Records[i]
	switch {
	case r.UserLimit == 0:
		return c.Job.Limit
	case r.RanInLimit() == 0:
		return r.UserLimit
	}
	return max((r.UserLimit-r.RanInLimit()+cluster.Minute-1)/cluster.Minute, 1) * cluster.Minute
}

// Report adds an event.
func (b *Books) Report(e cluster.Event) { b.Events = append(b.Events, e) }

// Wants returns the GPUs that a job holds if it runs, else the GPUs that it asks for.
func (b *Books) Wants(i int) int {
	if st := &b.Jobs[i]; st.Is.Runs {
		return st.Is.Held
	}
	return b.Jobs[i].Is.GPUs
}
