// Package profile stores the throughput of each kind of job on each GPU model: Gavel's throughput
// matrix T (§3.1), its estimator for unmeasured entries (§3.3, §6), and OEF's profiles (§4.1).
//
//	a job ── rules, or its own words ──► kind
//	declarations, by file and by --comment= ──┐
//	reports of steps done ──► samples ────────┤──► book ──► rate, speedups, with their source
//	                             │            │
//	                             ▼            └──► estimates, marked; misreports; what to try next
//	                          change of manner
//
// A rate is the steps/s of the whole gang. An observed one is the average of the logarithms of
// the last samples, so that a sample twice as high and one half as high cancel out, and an
// outlier counts little. Its spread is their standard deviation in the logarithm: 0.1 is about 10
// %. When a job's speed changes, the other jobs' part of the average still counts, and a trusted
// observation does not fall back to a declaration.
//
// A tenant's reports and declarations concern its own kinds only. Its unknown entries are
// estimated from the site's kinds, which the administrator declares, and its own. Run times and
// counters of kinds that report nothing are compared over all tenants, each with the same weight:
// they place jobs and price nothing, so no tenant can influence another's prices. A job that
// misreports steps by the same factor on every model gains nothing: policies use ratios between
// models. The ladder of sources is in ladder.go.
//
//	paper                               here
//	T_mj, Gavel §3.1                    Book.Rate
//	T of combinations, §3.1             Book.Beside
//	reference jobs, §3.3, Figure 8      the site's kinds
//	matrix completion, fingerprint, §6  complete, prints
//	speedup vector, OEF §4.1            Book.Speedups
//
// Estimates of single jobs are our extension (Gavel measures them, §3.3) and can be disabled.
package profile
