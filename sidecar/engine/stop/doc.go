// Package stop says when a running job may be stopped: when what that destroys is within the job's
// stop budget. The papers assume that every job saves when it is told to; on Slurm most do not.
//
//	cost(t)   = work since the save from which the job would go on + time to save + cost of a start
//	budget(t) = allowance + overhead × run time so far - cost of its stops so far
//
// A job may be stopped at t only if cost(t) <= budget(t). Three theorems follow, whatever jobs do:
//
//   - Stops cost a job at most allowance + overhead × its run time. Each stop keeps the sum of all
//     costs below that bound, and the bound never shrinks.
//   - Stops cost the cluster at most the sum of these bounds: configuration bounds the overhead.
//   - Every job of finite work ends. A job that resumes loses at most the bound. A job that starts
//     from the beginning has cost(t) = its age, so no attempt older than
//     (allowance + overhead × earlier run time) / (1 - overhead) is stopped; the earlier run time
//     consists of destroyed attempts, so it is bounded by the sum of the costs, and with
//     overhead < 1/2 the ages of stopped attempts are bounded by a constant.
//
// Some stops cannot wait for the budget: recalls of GPUs that virtual clusters lend, orders of administrators, and drains.
// They may go beyond it. The first theorem then holds with the cost of these on top. A job whose budget is gone (Gone)
// is lent GPUs only where its time limit ends before a recall is likely; the others end as above on their tenants' own
// GPUs, where nobody recalls them.
//
// A job that does not save can be stopped while it is young, then never again; a job that saves every
// so often just after a save; a job that saves at the notice whenever its budget has grown enough for
// another start.
package stop
