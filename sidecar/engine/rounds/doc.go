// Package rounds turns parts of time into who runs where in the next round.
//
// Gavel's policies say which part of its time a job, or two jobs on the same GPUs, should
// run on each model; OEF's and Gandiva_fair's how many GPUs of each model, of which parts
// mean some of the time, a tenant should have. A round gives whole GPUs to whole gangs, each on one
// model; what that gets wrong is carried, so that over rounds everybody has what is due.
//
// The engine queues parties by what they are owed instead (docs/results.md, "How divisions are carried out"): with
// gangs it is in the long run closer to what is due than OEF's rounding and leaves fewer GPUs idle; with jobs of one GPU it is
// further off, within a bound. These are what the simulator's rivals run by.
package rounds
