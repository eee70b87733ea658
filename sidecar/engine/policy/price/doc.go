// Package price solves the programs that divide GPU models by one price a model: as many
// prices as there are models say all that couples the jobs, however many they are.
//
//	MaxMin           the largest smallest level (Gavel §4.1: LAS)
//	Fill             the lexicographic one, by entities or flat (Gavel §4.3: water filling)
//	EqualThroughput  the largest level that all have alike (OEF §4.2.1, non-cooperative)
//	Total            the largest sum of levels (Gavel §4.2: FIFO; §3.1: throughput)
//
// Let job m run the part x_mj of the time on model j, with Σ_j x_mj <= 1 and
// Σ_m s_m·x_mj <= N_j, at the level a_m·x_m. Under prices p >= 0 with p·N = 1 the
// cheapest way to a level t is on the lower hull of the points (a_mj, p_j) and (0, 0):
//
//	price
//	  |             o            a mix of two models, or of one and idleness
//	  |   o        /
//	  |        __o               C(p, t) = what all jobs pay together at level t
//	  |   __---                  C <= 1 for every p if and only if t can be had
//	  o---------|--------> a
//	            t
//
// C is convex in t, so each look at prices gives a bound from above, t + (1-C)/C'; the
// GPUs that the jobs ask for there are a column, and a mix of columns that asks for no
// more GPUs than there are is an answer, so a bound from below. The mix is a linear
// program of k+1 rows (master), whose duals are the next prices, damped towards the best
// so far. Both bounds meet within some 30 looks at 3 models and 110 at 8, for any number
// of jobs. This is Dantzig and Wolfe's decomposition with Kelley's cutting planes.
//
// The same input gives the same bytes: jobs are taken in order, and ties go to the first
// model.
package price
