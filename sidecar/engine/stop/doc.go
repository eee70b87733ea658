// Package stop says when a running job may be stopped: when the loss is within the job's stop
// budget. The papers assume that every job saves on request; on Slurm most do not.
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
// Some stops cannot wait for the budget: recalls of GPUs that virtual clusters lend,
// administrators' orders, and drains. They may exceed it. The first theorem then holds with their
// costs added. A job with a used-up budget (Gone) is lent GPUs only if its time limit ends before
// a recall is likely; otherwise it runs on its tenant's own GPUs, where it is never recalled, and
// ends as above.
//
// A job that does not save can be stopped while it is young, then never again. A job that saves
// periodically can be stopped just after a save. A job that saves on a notice can be stopped
// whenever its budget has grown enough for another start.
package stop
