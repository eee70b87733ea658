// Package remark tells which running jobs do not do what is usual or claimed for them, by the counters of their GPUs and
// by the steps that they report:
//
//	drift      a job's activity or its steps/s are far from the baseline of its type on its GPU model
//	stall      a job that worked does nearly nothing now, and reports no step
//	straggler  one GPU, or one node, is far from the job's other GPUs
//	misreport  a speedup that its type claims, whose opposite the type's own counters show (see profile.Contradictions)
//
// The first three stay within one type of job and one GPU model, since counters say nothing across models. Only GPUs that
// are fresh, and that no other job holds, count. Activity is compared in its logarithm, over blocks of five minutes:
// exporters read their GPUs every 30 s, so nothing shorter can be seen. A remark informs people. No lease and no price
// depends on it.
package remark
