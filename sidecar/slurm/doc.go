// Package slurm is all Slurm I/O of fairlease: it looks at a real Slurm and
// carries out actions on it, and translates at the border, so that nobody else
// needs to know how Slurm spells things.
//
//	slurmrestd  over a unix socket or TCP: everything that its API version can do
//	scontrol    what the negotiated version lacks: suspend and resume, one task
//	            of a waiting array, and on older versions requeue and reservations
//
// Reading is tolerant about form and strict about truth: a number may come as 5,
// "5" or {"set":true,"number":5}, a field may be missing; but a reply that is cut
// short, is no JSON, lacks its list or carries errors is an error, never an empty
// cluster. One record that makes no sense is left out and named in Notes.
//
// The full job list is dear (8 kB a job, all of it the REST server's work), so
// it is read rarely; between two full reads the list of states (80 bytes a job)
// tells which few records to read singly.
//
// Reads are repeated with growing pauses; a write never is: when its fate is
// unknown, the outcome says so and the next look tells the truth.
package slurm
