// Package round is the data that the steps of a round share: the facts of the round, which no step changes,
// and the books, in which each step records its findings and decisions.
//
// Cases, tenants and pools (GPU models) are numbered by their index in Snapshot.Cases, Facts.Tenants and
// Facts.Pools. Values by tenant, queue or party and pool are stored in a Table.
package round
