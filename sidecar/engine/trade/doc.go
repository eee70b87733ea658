// Package trade swaps entitlements between tenants with different speedups on heterogeneous GPUs
// (Gandiva_fair §3.4, §3.5). The tenant that gains most from a fast GPU buys it, with slow GPUs,
// from the one that gains least. The price is between the values to the two.
//
//	                 K80  V100  speedup  worth              K80  V100  worth
//	A (VAE)           20     4     1.25     25               40     0     40
//	B (DCGAN)         20     4     5.00     40      =>       20     4     40
//	C (ResNext)       20     4     6.25     45                0     8     50
//
//	C buys 4 V100 from A at 5 K80 each, which is what the next one, B, would give.
//
//	paper                                  here
//	"seller" and "buyer", named by the     Trade.FastTo and Trade.SlowTo, named by what
//	slow side                              they get
//	"the second highest bid"; "if there    market.price
//	is no such user, we simply split the
//	surplus equally"
//	"a trading check is performed to see   book.replay: trades are kept as rows, and
//	if some of the trades must be undone"  carried out again, in their order, on the
//	                                       entitlements of today
//
// Shares are real numbers, here millionths of a GPU; they are rounded to GPUs only when running
// jobs are chosen. A trade is worth at least as much to both as what they give, so no tenant is
// ever below the throughput of its entitlement. Every trade raises the sum of all throughputs, so
// trading ends.
//
// Only GPUs that jobs can use are traded: jobs that name a model are not in the market, and GPUs
// beyond a tenant's demand are worthless to it. Estimated speedups are excluded. Measured ones
// have bounds; a trade uses the lower one for what a tenant gets and the upper one for what it
// gives.
package trade
