// Package cellworld simulates a cluster of cells and nothing else: without Slurm, terms or costs. The
// jobs of a trace run to their end, and it tells how long they waited, as HiveD's experiments do
// (§5.2, §5.3). Package engine/cells places the jobs, as in the daemon. `fairlease cells advise`
// tries many clusters with it; package sim simulates all that the daemon does.
//
// A job is a gang that needs its GPUs on certain nodes. It runs as a guaranteed one if its tenant has
// that much of its share left and GPUs with that affinity are there; else as an
// opportunistic one on what is idle, if it may (§5.1: "schedule jobs as high-priority ones if the
// tenant has sufficient resources in its quota or VC, otherwise the job will be scheduled as a
// low-priority one"). A job in the way of a guaranteed one leaves, keeps the work that it
// did, and waits again. What is lent goes to the tenant that has least lent to it for its
// share. Jobs are looked at in order of submission, and one that cannot be had is passed over, as
// YARN's capacity scheduler does.
//
// A World says which cells there are and how tenants have them:
//
//	Site.Private   a tenant's own cluster; nothing is lent
//	Site.Quota     a number of GPUs, anywhere: the VC of all is the whole cluster
//	Site.HiveD     the cells of its VC, bound dynamically
//
// An opportunistic job whose turn comes becomes a guaranteed one. With quotas it stays where
// it is. In a VC it stays if it has whole nodes and cells can be bound there; else it moves to
// GPUs as the VC would have given it alone: else a job of one GPU that runs by itself would
// bind a whole node, and the VC would be worse than a private cluster. Moves are counted apart
// from preemptions.
package cellworld
