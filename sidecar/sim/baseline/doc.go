// Package baseline has the schedulers that sites use today, to compare fairlease with them. Package research/papers adds those of
// papers, for programs that are not installed. Each is a chooser
// (field.Chooser), like fair share and virtual clusters, and decides by engine.Decider.DecideBy. The
// accounts are the engine's own (received and due GPU time, eligibility), and so is the execution of
// choices: hand-overs, notices, gates. A baseline only chooses which jobs get GPUs. It finds them on
// the engine's board: consolidated on the fewest nodes, spread only if the job allows that.
//
//	name               from                                  rule
//	fifo               -                                     first come, first served; the first who waits blocks
//	slurm-multifactor  Slurm's fair_tree.html,               priority of age, fair share with a half-life and size; EASY backfill
//	                   priority_multifactor.html
//	slurm-preempt      Slurm's preempt.html                  the same, with running jobs of lower priority requeued (WITHIN)
//	quota-static       ASTRAEA §6.1.5 (its YARN-CS)          first come, first served within a tenant's quota; no lending
//	quota-lend         HiveD §5.1 (its YARN-CS)              beyond the quota at low priority; preempted for the owner's affinity
//
// hived, hived:fifo and so on are not baselines but the engine with virtual clusters.
//
// If a paper leaves something open, the scheduler's comment gives our choice: the best one for
// the baseline. Schedulers know a job's run time only through Options.Runs.
//
// Baselines with leases share the product's ends of leases: the length of terms, the notice, and
// renewal in place; see Options.Grid. Jobs must be gated (sim.Virtual.Gate): nothing starts
// without a grant.
package baseline
