// Package round is what the steps of a round hand on to each other: the facts of the round, which no step changes, and
// the books, in which each step writes what it found out or decided.
//
// Cases, tenants and pools (GPU models) go by number: the place in Snapshot.Cases, in Facts.Tenants and in Facts.Pools.
// What is kept by tenant, queue or party and pool is a Table.
package round
