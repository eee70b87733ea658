// Package experiment runs a scheduler on a trace on a virtual cluster, in simulated time, and
// gives the scores. It combines:
//
//	trace    jobs                       Load
//	sim      the virtual cluster        Fleet, Cluster
//	loop     one turn, the daemon's own
//	engine   Decide, or a known scheduler in its place
//	score    what came of it            Result
//
// Only the cluster and the journal differ from the daemon: the loop, Remember and Decide are the
// same code.
//
//	Run   one Setup
//	All   many side by side, on all cores, in the order in which they were given
//	Open  one Setup, step by step: the caller measures in between (Stepper)
//
// # The request of a job in a trace
//
// Its account is its tenant, below root, with the tenant's weight as shares. Its GPUs use the
// fewest nodes of the fleet, with equal numbers on each if they divide evenly (12 GPUs on nodes
// of 8 are 2 × 6), else any split over these nodes. Its number of nodes in the trace is ignored,
// since that was another cluster's. A model counts if the fleet names models; CPUs and memory
// count if the fleet gives those of its nodes. Time limits are enforced as in Slurm;
// Result.TimedOut counts the jobs that reached theirs only here. A job that could never run on
// the empty fleet, or whose tenant has no weight, is refused: counted and named.
//
// # Accounts
//
// The GPU time that a job or tenant received and was due comes from the plan's ledger and records, which all
// schedulers share. The cluster (sim.Event) reports the starts, preemptions and ends of jobs.
// Both go to a score.Meter during the run, so that memory grows with the live jobs, not with the
// trace.
//
// # The sharing audit
//
// Each tenant's jobs run once more under the same scheduler on a private fleet: its share of
// every model's GPUs, rounded to the nearest GPU, whole nodes first. If the largest gangs of the
// tenant do not fit, it is enlarged until they do. The private fleet is then better than the
// tenant's share, and Audited says by how much. A tenant of weight 0 has no share and is omitted.
// Differences of less than two intervals or a minute are ignored.
//
// With virtual clusters a tenant's private fleet is the cells of its VC, without enlargement:
// jobs that do not fit it, and tenants without a VC, are omitted and counted.
package experiment
