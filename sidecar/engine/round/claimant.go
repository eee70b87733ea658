package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Claimant is who is due GPUs: a tenant; or where a policy divides GPU models a party, which is a single job (Gavel) or a
// tenant's jobs of one kind (OEF's virtual users, §4.2.4). Tenants queue for GPUs, whatever their parties: so a tenant has
// what its parties are due together, also if it has many whose jobs are short. What parties are owed says whose turn it
// is within the tenant. But where a policy knows jobs only, jobs queue.
type Claimant struct {
	Name   string
	Tenant TenantIndex
	Cases  []int // of the active ones; not filled where it is a tenant
}

// Refusal is why a job was given nothing; empty = it was given something, or is no candidate.
type Refusal struct {
	Passed *Passed         // by right of share
	Rank   int             // place in its tenant's queue
	Cell   *cluster.Reason // why it has none of its VC's cells, nor lent GPUs
}

// Passed is why a candidate got nothing; Code "" = it got a lease.
type Passed struct {
	Code        cluster.Code
	Pool        int
	Free        int
	Behind      cluster.Span
	Other       string // the tenant served last in the pool
	OtherBehind cluster.Span
	For         cluster.JobKey // for whom what is free is kept
}
