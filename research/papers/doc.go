// Package papers has the schedulers of papers, as baselines that fairlease is compared with (package baseline). A program that imports it has
// them by their names. The program that sites install does not: fairlease-lab, tests/results and tests/bench do.
//
//	name               from                                  rule
//	tiresias-l         Tiresias §3.2, ASTRAEA §6.1.5         least attained service in two queues; leases
//	themis             Themis §3-5, ASTRAEA §4.1, §6.1.5     finish-time fairness: worst first at every end of a lease
//	allox              AlloX, ASTRAEA §6.1.5                 min-cost matching, by one kind of machine; lowest progress first
//	gandiva-fair       Gandiva_fair §3.1-3.2, eq. 1-3        gang-aware stride by tenants' tickets, one for all servers
//	karma              Karma §3, Algorithm 1                 half of its share for sure; the rest by credits, earned by what it leaves to others
//	qssf               Helios §4.2                           least GPU time first, predicted from what users' jobs took; no preemption
//	lucid              Lucid §3.2, §3.4, §3.5                a short run in a profiler first; then as qssf, by an additive model
//	shockwave          Shockwave §3-6                        a market over an hour ahead: Nash social welfare, by expected fairness
//	srtf               Tiresias §2.2                         least remaining GPU time first, which it is told: a bound
//
// For heterogeneous GPUs (Heterogeneous); these need the speed of jobs on each model:
//
//	fifo:random        Gavel §7.3                            first come, first served, on any model, to the end
//	fifo:settled       Gavel's code                          the same, as its authors' code chooses the model: the last by name
//	fifo:fastest       Gavel §4.2, §7.3                      first come, first served, each on the fastest model left
//	gavel:POLICY       Gavel §4, §5                          a policy of engine/policy, by rounds of a term; with -blind as if
//	                                                         all GPUs were of one model, with +ss in pairs on the same GPUs
//	las:interior       Gavel's code                          gavel:las without water filling: an interior point of the program
//	gandiva:packing    Gavel §7.3, §8                        las-blind with pairs on the same GPUs that are tried at random
//
//	gandiva-fair:split Gandiva_fair §3.1-3.5, Algorithm 2    jobs live on servers: split stride, placement by tickets, balance,
//	                                                         migration; users trade models
//	oef:coop, :noncoop OEF §4.2, §4.3                        its programs, rounded with the deviation carried
package papers
