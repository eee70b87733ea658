// Package backtest compares a simulation under fairlease with the recorded past, from the journal
// that the daemon writes in observe mode.
//
//	store.Past ──► Of ──┬─► Was      the record, scored as score.Meter scores any run
//	                    └─► Setups   the same jobs for package experiment, on the same nodes, with the daemon's settings
//
// Both cover the same time, from the window's first round to its last.
//
// # The record
//
// The GPU time that tenants received and were due comes from the ledger's sums, which the journal samples once
// a minute. That of jobs comes from the jobs' records. A job arrives when it
// was first seen waiting only for GPUs; if that was within an interval of its submission, it
// arrives at its submission. The journal has no data on idle GPUs in unusable pieces: Fragmented
// is negative.
//
// # The simulation
//
// A job of the backtest arrives when it did, with its GPUs and its model. Its work is its run
// time: the GPU time that it received, less losses by requeues, over its GPUs.
//
// A job present at the begin of the window arrives then, with its remaining run time, in both
// worlds. Jobs still running at the end of the window have unknown length: they count as
// unfinished in both, and in the backtest they never end. Time limits are ignored, since no job
// exceeded its own. Nodes exist throughout if they were healthy at the begin or the end. CPUs and
// memory are ignored.
//
// Under leases more jobs run concurrently, so at a given moment fewer have ended, and those are
// the short ones. Completion times of two worlds are comparable only for the same jobs. So scores
// of jobs in the backtest cover all jobs with a known run time: the simulation follows them
// beyond the window, without new arrivals. This biases the comparison towards the record, which
// selected the jobs that ended in time; the bias shrinks with longer windows. Scores of tenants
// and GPUs cover the window in both.
package backtest
