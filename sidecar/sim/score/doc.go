// Package score measures what a scheduler did: it takes what became of each job
// and the states that the cluster went through, and gives the numbers that the
// papers compare schedulers by.
//
//	paper                                  here
//	rho of a tenant, ASTRAEA eq. 12, 8     Period.Rho, Tenant.Rho
//	rho of a job, ASTRAEA eq. 15           Scores.JobRho, by cluster.RhoOf
//	sharing loss, rho < 0.95, §6.3         Loss
//	slowdown, §3.2 (run + pend) / run      Scores.Slowdown, completion time / run time alone
//	overhead of leases, §6.4               Overhead
//	sharing anomaly, HiveD §2              Audit
//
// Which jobs count: a finished job has started and ended, however it ended. A
// withdrawn one ended without a start; it has a delay and a rho, but neither a
// completion time nor a slowdown. One that has no end at the end of the run is
// unfinished: it is in Counts, and in Loss.Unfinished where its rho is that low,
// and in no other number.
//
// Percentile p is the smallest value that at least p % of all values do not
// exceed (nearest rank), so it is always a value that occurred. Beyond 65,536
// values, a percentile may be off by 0.05 %; means, extremes and counts stay exact.
//
// A Meter takes jobs and states as they come. Its memory grows with tenants, not
// with jobs or time; jobs in another order give the same scores.
package score
