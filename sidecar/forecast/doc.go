// Package forecast estimates when jobs start and end. It continues the present queue in simulated time many times, each time
// with other run times and arrivals, and gives quantiles of the results.
//
//	Question ──► site (once: nodes, tenants, jobs) ──┐
//	Past ──► history (run times, arrivals) ──────────┼──► run, run, run … ──► Forecast (p10, p50, p90 of each job)
//	seed ──► draws ──────────────────────────────────┘
//
// # The scheduler in a run
//
// A round of the engine for 10,000 jobs takes about 20 ms, and a run has thousands of rounds. So a run has a scheduler of its own,
// with the engine's rules and numbers, which makes no round where nothing changes:
//
//   - The tenant furthest behind goes first (ASTRAEA, Algorithm 1), with every lease charged to its end, the bonus of running
//     jobs (reclaim.threshold) and the burst limit. Entitlements are those of the newest round, whatever policy made them.
//   - Within a tenant, jobs go by jobs.order, and those owed more than jobs.patience before them.
//   - Leases end on the grid of terms. A job is stopped only within its stop budget and its pool's. First leases
//     recall others (recall.first_lease). A gang that is due and fits nowhere gets a claim for the next boundary.
//   - A gang is placed on nodes, at most as many as it asks for. A part of a GPU takes that part: all GPUs are counted in units, into which the
//     nodes' shards divide them. On each node parts are as if put together on as few GPUs as possible.
//   - Jobs that may take turns on a GPU get half of one each where there is no idle one, and go on at half of their pace.
//     One of them moves to an idle GPU at a boundary where nobody waits for it.
//   - A job starts within Slurm's limits on GPUs and jobs in use. Demand beyond these is due to nobody.
//
// It leaves out what changes the order of few jobs: cells (their owners are due the same GPUs, on any node), the turns of users,
// parties and models inside a tenant, moves of running jobs, CPUs and memory, features of nodes, rounding to rounds. Debts are those of now.
// TestRunsStartJobsInTheEnginesOrder holds it to the engine.
// From six hours on, only every second boundary is decided, and from a day on every fourth.
//
// # Draws
//
// A job's run time is that of an ended job of the same user and type; without enough of these, of its user, its tenant or everybody. Jobs
// that have run longer already are drawn among those that did, too. A job's time limit bounds it. In one run, jobs of a
// group draw from the same few blocks of successive jobs (a moving-block bootstrap: Künsch, 1989), since a user's next
// jobs resemble each other. Arrivals repeat days of the past, each whole, at the same time of the day.
package forecast
