// Package score measures a scheduler: from the results of each job and the states of the cluster
// it computes the numbers by which papers compare schedulers.
//
//	paper                                  here
//	rho of a tenant, ASTRAEA eq. 12, 8     Period.Rho, Tenant.Rho
//	rho of a job, ASTRAEA eq. 15           Scores.JobRho, by cluster.RhoOf
//	sharing loss, rho < 0.95, §6.3         Loss
//	slowdown, §3.2 (run + pend) / run      Scores.Slowdown, completion time / run time alone
//	overhead of leases, §6.4               Overhead
//	sharing anomaly, HiveD §2              Audit
//
// Where speeds on GPU models are known, GPU time of tenants is work, that is GPU time times the true speed, under any scheduler: a
// tenant that has fewer but faster GPUs does not lose. GPU time of jobs is work only where a policy divides GPU models.
//
// Counted jobs: a finished job has started and ended, with any outcome. A withdrawn job ended
// without a start; it has a delay and a rho, but neither a completion time nor a slowdown. A job
// without an end when the run ends is unfinished: it is in Counts, in Loss.Unfinished if its rho
// is that low, and in no other number.
//
// Percentile p is the smallest value that at least p % of all values do not exceed (nearest
// rank), so it is always an observed value. Beyond 65,536 values, a percentile may be off by 0.05
// %; means, extremes and counts stay exact.
//
// A Meter receives jobs and states one by one. Its memory grows with tenants, not with jobs or
// time. The order of jobs does not change the scores.
package score
