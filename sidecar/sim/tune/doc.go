// Package tune chooses the term of leases by a site's own past jobs, as ASTRAEA §5.1.3 proposes: a short term costs
// checkpoints and starts, a long one costs fairness. Every night the last days are replayed with several terms
// (package sim/terms). Decide compares the replays and what really happened, and proposes a term, takes one over
// within bounds, or undoes a takeover that the following days do not bear out.
//
//	Study + record ──► Night.Decide ──► Change ──► record (table tunings)
//	                                                  │
//	                        Rule.Holds ◄── newest change ──► Settings.Term of the next round
//
// Everything here is a function of values. The record of changes is all the memory there is, so a daemon that starts
// anew, and a standby that takes over, continue where the last one was.
//
// # Stability
//
//   - The term moves by one candidate at a time, and only if that candidate alone beats the term in force.
//   - After a takeover nothing but its undoing follows for the time Watch.
//   - A term that was left or undone is not taken again for the time Rest. So in any such time each candidate is taken
//     at most once.
package tune
