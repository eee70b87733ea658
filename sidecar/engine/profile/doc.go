// Package profile keeps what is known of how fast each kind of job runs on each GPU
// model: Gavel's throughput matrix T (§3.1), its estimator of what was never measured
// (§3.3, §6), and OEF's profiles (§4.1).
//
//	a job ── rules, or its own words ──► kind
//	declarations, by file and by --comment= ──┐
//	reports of steps done ──► samples ────────┤──► book ──► rate, speedups, with their source
//	                             │            │
//	                             ▼            └──► estimates, marked; misreports; what to try next
//	                          change of manner
//
// A rate is steps a second of the whole gang. An observed one is the average of the last
// samples in the logarithm, so that a sample twice as high and one half as high cancel out,
// and one that is far off counts little. Its spread is their standard deviation in the
// logarithm: 0.1 is about 10 %. When a job's manner changes, the other jobs' part of the average goes on counting, and what was
// observed often enough does not fall back to what somebody declared.
//
// A tenant's reports and declarations are about its own kinds only. What another tenant's
// unknown entries are estimated from are the site's kinds, which the administrator
// declares, and that tenant's own: nobody's numbers can be bent by what somebody else says.
// A job that counts steps as it likes, the same on every model, gains nothing by it: what
// policies divide by are ratios between models.
//
//	paper                               here
//	T_mj, Gavel §3.1                    Book.Rate
//	T of combinations, §3.1             Book.Beside
//	reference jobs, §3.3, Figure 8      the site's kinds
//	matrix completion, fingerprint, §6  complete, prints
//	speedup vector, OEF §4.1            Book.Speedups
//
// Estimates of single jobs are our extension (Gavel has them measured, §3.3) and can be
// switched off.
package profile
