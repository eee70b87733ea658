// Package backtest puts what would have been under fairlease beside what really
// happened, from the journal that the daemon writes in observe mode.
//
//	store.Past ──► Of ──┬─► Was      what happened, scored as score.Meter scores any run
//	                    └─► Setups   the same jobs for package experiment, on the same nodes, with the daemon's settings
//
// Both count from the same moment, the window's first round, to the same end, its last.
//
// # What happened
//
// What tenants had received and were due is read from the ledger's sums, which the
// journal samples once a minute. What jobs had received and were due is read from the
// jobs' records. A job arrives when it was first seen waiting for nothing but GPUs; where
// that was within an interval of its submission, when it was submitted.
// How much was idle in pieces too small to use was not written down: Fragmented is below 0.
//
// # What would have been
//
// A job of the backtest arrives when it did, has the GPUs and the model that it had, and
// works for as long as it ran: the GPU time that it received, less what requeues lost, over its GPUs.
//
// A job that was there when the window begins arrives then, with the run time that was
// left, in both. How long a job runs that was not over when the window ends, nobody knows: it
// is unfinished in both, and in the backtest it never ends. Time limits are
// not heeded, for no job ran longer than its own. Nodes are there throughout if they were healthy at the
// beginning or the end. CPUs and memory count for nothing.
//
// Under leases more jobs are under way at once, so that fewer are over at some moment,
// and those are the short ones: the completion times of two worlds compare only where they are of the
// same jobs. So what is said of jobs in the backtest is of all whose run time is known: they are followed
// beyond the window, where no new ones arrive. That flatters what was, which chose the jobs that were over in
// time, the less the longer the window is. What is said of tenants and GPUs is of the window
// in both.
package backtest
