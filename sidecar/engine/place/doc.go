// Package place finds GPUs for gangs: consolidated, on one GPU model, on as few
// nodes as possible, best fit (ASTRAEA §5, "consolidated job placement"). It
// counts GPUs, CPUs and memory of nodes; which GPU of a node a job gets is Slurm's
// choice.
//
// A Board is the cluster while one round is decided. Its GPUs are
//
//	idle    free now
//	soft    of leases that end at the coming boundary: free if need be
//	fixed   everything else
//
// A gang is placed on idle GPUs if it fits there; else soft leases are displaced,
// those that stand last in the queue first.
package place
