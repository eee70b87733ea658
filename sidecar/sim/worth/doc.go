// Package worth estimates what leases gained in a period: it compares what the journal recorded with replays of the same jobs
// under plain Slurm (the baseline slurm-multifactor), in simulated time.
//
//	store.Past ──► backtest.Window ──┬─► Was       as it was, from the journal
//	                                 └─► Replays   the same jobs under plain Slurm ──► Of ──► Worth
//
// # The measures
//
// The gain that a period is judged by is GPU time below share: of each tenant and hour, what it was due (its share, but no more than its
// jobs asked for) less what it received, if that is above 0. Plain Slurm's less fairlease's is GPU time that tenants got when it was due,
// and would not have got then. It is a large number less a small one, so chance in a replay hurts it little. Waiting time and useful work
// are small differences of large numbers where GPUs are scarce: they are given beside it, each with its range.
//
// # The replays
//
// A replay begins with the state at the begin of the period. Jobs that had GPUs then have them first, with what was left of their work;
// jobs that waited come next, and all others when they came. It ends with the period: work after it does not count. Work that stops
// destroyed counts only against fairlease.
//
// A job that has ended by now has a known run time, also if it ended after the period. Starts from a checkpoint are taken off
// (Settings.StartCost), because plain Slurm stops no job. The run time of any other job is drawn, anew for each replay: from a life table
// of the window's jobs by run time, in steps of half a doubling, given how far the job has come. A type of jobs (user and GPUs) counts
// as its own observations and eight jobs of the whole window. Jobs that were there before the window count from the run time that they
// had then (left truncation), and jobs that have not ended count up to the run time that they have (right censoring).
//
// Jobs have the time limits that the journal has last, since backfill goes by them. After a stop Slurm shows what was left: the run time is
// added then.
//
// When jobs start also depends on seconds. So in each replay jobs arrive up to Jitter later than they did, in the same order. Ranges are of
// 90 %: so a further replay would be within it, by Student's distribution.
package worth
