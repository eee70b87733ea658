// Package gavel repeats the experiments of Gavel's simulator (§7): its cluster, its rounds of six
// minutes, its authors' jobs and throughputs, and the numbers that it reports of the jobs in a
// steady state.
package gavel
