// Package cluster is the vocabulary of fairlease: what a node, a job, a tenant,
// a lease and a plan are. It has no verbs beyond reading its own values; who
// looks, decides, writes and acts lives elsewhere.
//
//	Sighting  what was seen of the cluster at one moment
//	Memory    what is remembered from round to round
//	Snapshot  both together, joined and sorted: all that the engine may know
//	Plan      all that the engine wants: leases, claims, actions, reasons
//
// Quantities carry their unit in the type: Instant and Span are milliseconds,
// GPUTime is GPU-milliseconds, MicroGPU is a millionth of a GPU. All are
// integers, so that sums are exact and equal input gives equal bytes.
package cluster
