package baseline

import "github.com/fairlease/fairlease/sidecar/cluster"

// guess is the assumed run time of a job that has not run, without other information.
const guess = 10 * cluster.Minute

// remaining estimates a job's remaining run time on all its GPUs: Options.Runs, else the time
// limit, less its past run time. Without both it is the past run time: for lengths spread over
// orders of magnitude, as in deep learning, there is no better estimate. It is never 0: a job
// that exceeds the estimate ends soon.
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

// ran gives a job's past run time, all attempts and their overheads included.
func (r *round) ran(j *job) cluster.Span {
	return cluster.Span(r.alloc(j)) / cluster.Span(max(j.gpus, 1))
}

// needs gives the GPU time that remains to the jobs of a line, by index.
func (r *round) needs(line []int, runs func(*cluster.Job) cluster.Span) []cluster.GPUTime {
	needs := make([]cluster.GPUTime, len(r.jobs))
	for _, k := range line {
		needs[k] = cluster.Times(r.jobs[k].gpus, r.remaining(&r.jobs[k], runs))
	}
	return needs
}
