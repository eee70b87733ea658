// Package round has the facts of a round, which every step reads, and the words in which steps tell each other their results.
//
// Cases, tenants and pools (GPU models) are numbered by their index in Snapshot.Cases, Facts.Tenants and
// Facts.Pools. Values by tenant, queue or party and pool are stored in a Table.
package round
