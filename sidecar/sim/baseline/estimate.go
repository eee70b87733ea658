package baseline

import "github.com/fairlease/fairlease/sidecar/cluster"

// guess is what a job is taken to run when it has not run and nobody can tell.
const guess = 10 * cluster.Minute

// remaining estimates how long a job will still run, on all its GPUs: what the
// scheduler is told (Options.Runs), else its time limit, less what it has run. Where
// neither is there, as long again as it has run: of jobs whose lengths are spread over
// orders of magnitude, as those of deep learning are, nothing better can be said. It is never
// 0: a job that outlasts the estimate ends soon.
func (r *round) remaining(j *job, runs func(*cluster.Job) cluster.Span) cluster.Span {
	ran := r.ran(j)
	all := cluster.Span(0)
	if runs != nil {
		all = runs(&r.s.Cases[j.at].Job)
	}
	if all == 0 {
		all = r.Records[j.at].UserLimit
	}
	if all == 0 {
		all = ran + max(ran, guess)
	}
	return max(all-ran, cluster.Second)
}

// ran gives the time that a job has run, all its attempts and their overheads together.
func (r *round) ran(j *job) cluster.Span {
	return cluster.Span(r.alloc(j)) / cluster.Span(max(j.gpus, 1))
}
