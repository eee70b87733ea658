// Package daemon is the loop in real time: one turn on every beat of the wall
// clock, as long as this process is the one that is seated.
//
//	beat ──► seat mine? ──► turn ──► heartbeat ──► log
//	             │            │
//	             │            └─ failed: nothing is guessed; rounds pause, growing,
//	             │               and go on when the world is back
//	             └─ no: wait; another daemon acts
//
// What a job had before we changed it is in a local file before the change is
// made, so that Release can give it back without the database.
package daemon
