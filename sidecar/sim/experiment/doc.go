// Package experiment runs a scheduler on a trace on a virtual cluster, in simulated time,
// and gives the scores. It joins what stands beside it:
//
//	trace    jobs                       Load
//	sim      the virtual cluster        Fleet, Cluster
//	loop     one turn, the daemon's own
//	engine   Decide, or a known scheduler in its place
//	score    what came of it            Result
//
// Nothing but the cluster and the journal differs from the daemon: the loop, Remember and
// Decide are the same code.
//
//	Run   one Setup
//	All   many side by side, on all cores, in the order in which they were given
//	Open  one Setup, step by step: the caller measures in between (Stepper)
//
// # What a job of a trace asks for
//
// Its account is its tenant, below root, with the tenant's weight as shares. Its GPUs
// stand on the fewest nodes of the fleet, as many on each as divide evenly (12 GPUs on nodes
// of 8 are 2 × 6); where they do not, any split over these nodes will do. How many nodes
// it had in the trace is not read: those were another cluster's. A model counts where the fleet
// names models; CPUs and memory where the fleet says how much of them its nodes have. A
// time limit is enforced as Slurm does it; Result.TimedOut tells whom that hit only here. A job that could
// never run on the empty fleet, or whose tenant has no weight, is refused: counted and named.
//
// # Books
//
// What a job or tenant received and was due is read from the plan's ledger and records,
// which all schedulers share. When jobs started, were preempted and ended is what the
// cluster tells (sim.Event). Both go to a score.Meter while the run goes on, so that memory
// grows with the jobs that are there, not with the trace.
//
// # The sharing audit
//
// Each tenant's jobs run once more under the same scheduler on a private fleet of its share of
// every model's GPUs, rounded to the nearest GPU, whole nodes first. Where the
// largest gangs of the tenant would not fit on that, it is enlarged until they do: the
// private fleet is then better than the tenant's share, and Audited says by how much. A tenant
// of weight 0 is promised nothing and is left out. Differences of less than two intervals or
// a minute do not count.
//
// With virtual clusters a tenant's private fleet is the cells of its VC, and nothing is
// enlarged: jobs that do not fit it, and tenants without a VC, are left out and counted.
package experiment
