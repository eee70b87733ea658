// Package slurm does all Slurm I/O of fairlease. It observes a real Slurm, carries out actions on
// it, and translates at the border, so that no other package depends on Slurm's formats.
//
//	slurmrestd  over a unix socket or TCP: everything that its API version can do
//	scontrol    what the negotiated version lacks: suspend and resume, one task
//	            of a waiting array, and on older versions requeue and reservations
//
// Parsing is tolerant of form and strict about truth. A number may be 5, "5" or
// {"set":true,"number":5}, and a field may be missing. But a reply that is truncated, is not
// JSON, lacks its list or carries errors is an error, never an empty cluster. An invalid record
// is omitted and named in Notes.
//
// The full job list is expensive (8 kB a job, all of it work of the REST server), so it is read
// rarely. Between two full reads, the list of states (80 bytes a job) tells which few records
// must be read singly.
//
// Reads are retried with growing pauses. A write is never retried: if its result is unknown, the
// outcome says so and the next look shows the truth.
package slurm
