// Package rounds turns fractions of time into assignments for the next round.
//
// Gavel's policies set the fraction of time for which a job, or two jobs on the same GPUs, should
// run on each model. OEF's and Gandiva_fair's set the GPUs of each model for a tenant, where
// fractions mean some of the time. A round gives whole GPUs to whole gangs, each on one model;
// errors are carried, so that over rounds every claimant gets its entitlement.
//
// Nearest is the engine's default: the only one of these whose errors have a bound with gangs
// (research/results.md, "How divisions are carried out"). Gavel and OEF are the papers'. models.chooser
// selects one, and the simulator's baselines use the papers' too.
package rounds
