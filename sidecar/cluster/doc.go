// Package cluster is the vocabulary of fairlease: types for nodes, jobs, tenants, leases and
// plans. Its functions only read their own values. Observing, deciding, storing and acting live
// in other packages.
//
//	Observation  the cluster as observed at one moment
//	State        the state that is kept from round to round
//	Snapshot     both, joined and sorted: the whole input of the engine
//	Plan         the whole output of the engine: leases, claims, actions, reasons
//
// Quantities carry their unit in the type: Instant and Span are milliseconds,
// GPUTime is GPU-milliseconds, MicroGPU is a millionth of a GPU. All are
// integers, so that sums are exact and equal input gives equal bytes.
package cluster
