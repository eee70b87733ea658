package round

import "github.com/fairlease/fairlease/sidecar/cluster"

// Claimant is a tenant, party or job that is entitled to GPUs. With a policy for heterogeneous GPUs, a party
// is a single job (Gavel) or a tenant's jobs of one kind (OEF's virtual users, §4.2.4). Tenants queue for
// GPUs whatever their parties. A tenant thus receives the sum of its parties' entitlements, even if many of
// them have only short jobs. The deficits of parties decide the turns within the tenant. If a policy knows
// only jobs, jobs queue.
type Claimant struct {
	Name   string
	Tenant TenantIndex
	Cases  []int // the active ones; empty for a tenant
}

// Negligible is the entitlement below which a claimant counts as without one where trials are concerned. Trades leave such rests.
const Negligible = cluster.WholeGPU / 100

// Refusal is the reason why a job got nothing; empty = it got GPUs, or is no candidate.
type Refusal struct {
	Passed *Passed         // by weighted shares
	Rank   int             // place in its tenant's queue
	Cell   *cluster.Reason // why it has neither cells of its VC nor borrowed GPUs
}

// Passed is the reason why a candidate got nothing; Code "" = it got a lease.
type Passed struct {
	Code        cluster.Code
	Pool        int
	Free        int
	Behind      cluster.Span
	Other       string // the tenant served last in the pool
	OtherBehind cluster.Span
	For         cluster.JobKey  // the job for which the free GPUs are kept
	Until       cluster.Instant // when more jobs may be stopped, with ReasonStops; 0 = unknown
	Bound       *cluster.BindLimit
}
