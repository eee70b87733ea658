// Package daemon runs the loop in real time: one turn on every beat of the wall clock, while this
// process has the lead.
//
//	beat ──► lead mine? ──► turn ──► heartbeat ──► log
//	             │            │
//	             │            └─ failed: nothing is guessed; rounds pause with a growing
//	             │               back-off, and continue when the services are back
//	             └─ no: wait; another daemon acts
//
// Before a job is changed, its original settings are saved in a local file, so that Release can
// restore them without the database.
package daemon
