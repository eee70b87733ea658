// Package place finds GPUs for gangs: consolidated, on one GPU model, on a minimum number of
// nodes, best fit (ASTRAEA §5, "consolidated job placement"). It counts GPUs, CPUs and memory of
// nodes; Slurm chooses the GPUs within a node.
//
// A Site is the part of the cluster that stays constant during a round. Boards use it, one for
// each question: could a job ever run, which jobs get which GPUs, which GPUs are kept for a gang.
// The GPUs of a board are
//
//	idle    free now
//	soft    of leases that end at the coming boundary: free if need be
//	fixed   everything else
//	shared  with pieces of jobs that ask for shards; soft if all of these are
//
// A gang gets idle GPUs if it fits there; else soft leases are displaced, the last in the queue
// first.
package place
