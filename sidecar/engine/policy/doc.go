// Package policy divides the GPUs of every pool between tenants, or the time of every job over
// the models. It computes entitlements.
//
//	Quota   by weight (ASTRAEA's eq. 6)
//	Gavel   by an objective of Gavel's §4, from measured throughputs
//	Tickets by weight, model by model (Gandiva_fair §2.1); OEFCooperative and OEFNonCooperative (OEF eq. 10, 9);
//	Audit   fairness of a division of a market
//
// # Gavel's words
//
//	paper                   here
//	job m, type j           Job, Model
//	scale_factor_m          Job.Gang
//	T_mj                    Job.Speed, Job.Apart where not consolidated
//	T_kj, a combination     Pair
//	w_m, w_s                Job.Weight, Entity.Weight
//	num_steps_m             Job.Steps
//	t_m, t_m^isolated       Job.Elapsed, Job.ElapsedAlone
//	SLO_m                   Job.Within
//	num_workers_j, cost_j   Model.GPUs, Model.Price
//	X                       Shares
//
// # How
//
// All objectives are linear programs, or a few of them, over the same constraints: no job runs
// more than all the time, no model has more GPUs used than it has. The jobs, and pairs of them,
// make the programs large; one row per model couples them.
//
//	problem ──► ways: job, pair ──► goal: an objective's ──► uses ──► shares:
//	            on a model          numbers                           whole grains
//	            (space.go)          (las.go, ftf.go, ...)             (division.go)
//	                                   │             │
//	                         package price           package lp: CLP,
//	                         max-min and sums        all the rest
//	                         of jobs alone
//
// A max-min objective of jobs without pairs is solved by one price per model, and is filled up to
// the lexicographic optimum. So is a sum over jobs without pairs (fifo, sjf, throughput, cost),
// and the GPUs that it leaves idle. With pairs, SLOs, or gangs apart where that matters, CLP
// solves it. Equal jobs are one row, pairs without a gain over alternating are dropped, and the
// others become columns when their prices say that they pay.
package policy
