// Package place finds GPUs for gangs: consolidated, on one GPU model, on as few
// nodes as possible, best fit (ASTRAEA §5, "consolidated job placement"). It
// counts GPUs, CPUs and memory of nodes; which GPU of a node a job gets is Slurm's
// choice.
//
// A Site is what stays the same of the cluster while a round is decided; Boards stand
// on it, one for each question: could a job ever run, who gets what, what to keep for
// whom. The GPUs of a board are
//
//	idle    free now
//	soft    of leases that end at the coming boundary: free if need be
//	fixed   everything else
//
// A gang is placed on idle GPUs if it fits there; else soft leases are displaced,
// those that stand last in the queue first.
package place
