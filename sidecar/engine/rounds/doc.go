// Package rounds turns fractions of time into assignments for the next round.
//
// Gavel's policies set the fraction of time for which a job, or two jobs on the same GPUs, should
// run on each model. OEF's and Gandiva_fair's set the GPUs of each model for a tenant, where
// fractions mean some of the time. A round gives whole GPUs to whole gangs, each on one model;
// errors are carried, so that over rounds every claimant gets its entitlement.
//
// The engine orders claimants by their debts instead (docs/results.md, "How divisions are carried
// out"). With gangs that is in the long run closer to the entitlements than OEF's rounding and
// leaves fewer GPUs idle; with jobs of one GPU it is further off, within a bound. This package is
// for the simulator's baselines.
package rounds
