// Package rounds turns parts of time into who runs where in the next round.
//
// Gavel's policies say which part of its time a job, or two jobs on the same GPUs, should
// run on each model; OEF's and Gandiva_fair's how many GPUs of each model, of which parts
// mean some of the time, a tenant should have. A round gives whole GPUs to whole gangs, each on one
// model; what that gets wrong is carried, so that over rounds everybody has what is due.
package rounds
