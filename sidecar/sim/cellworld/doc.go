// Package cellworld simulates a cluster of cells and nothing else: no Slurm, terms or costs. It
// replays the jobs of a trace to their end and gives their waits, as in HiveD's experiments
// (§5.2, §5.3). Package engine/cells places the jobs, as in the daemon. `fairlease cells advise`
// tries many clusters with it; package sim simulates everything that the daemon does.
//
// A job is a gang that needs its GPUs on certain nodes. It runs as a guaranteed job if that fits
// its tenant's remaining share and GPUs with that affinity are available; otherwise, if allowed,
// as an opportunistic one on idle GPUs (§5.1: "schedule jobs as high-priority ones if the tenant
// has sufficient resources in its quota or VC, otherwise the job will be scheduled as a
// low-priority one"). A job that blocks a guaranteed one is preempted, keeps its work, and waits
// again. Lent GPUs go to the tenant with the least of them for its share. Jobs are considered in
// order of submission, and one that cannot start is skipped, as in YARN's capacity scheduler.
//
// A World sets the cells and how tenants get them:
//
//	Site.Private   a tenant's own cluster; nothing is lent
//	Site.Quota     a number of GPUs, anywhere: the VC of all is the whole cluster
//	Site.HiveD     the cells of its VC, bound dynamically
//
// An opportunistic job becomes guaranteed when its turn comes. With quotas it stays in place. In
// a VC it stays if it has whole nodes and cells can be bound there; else it moves to the GPUs
// that the VC would have given it alone. Otherwise a single job of one GPU would bind a whole
// node, and the VC would be worse than a private cluster. Moves are counted separately from
// preemptions.
package cellworld
