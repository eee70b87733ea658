package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// newQSSF makes quasi-shortest service first (Helios, Hu et al., SC'21, §4.2): jobs start by their predicted GPU time,
// least first, and run to their end. The prediction is the paper's rolling estimate from what has ended: of the user's jobs
// of that name and number of GPUs, else of the user's jobs of that number, else of all jobs of that number. Its second
// estimate, a learnt model of job names and submission times, is left out, since traces have neither. A job that does not
// fit is skipped, as by backfill.
func newQSSF(Options) rule {
	past := &history{seen: map[cluster.JobKey]bool{}, mean: map[group]cluster.Span{}}
	return func(r *round) {
		past.learn(r)
		r.hold()
		if !r.idle() {
			return
		}
		line := make([]int, 0, len(r.jobs))
		needs := make([]cluster.GPUTime, len(r.jobs))
		for k := range r.jobs {
			if j := &r.jobs[k]; j.lease == nil {
				needs[k] = cluster.Times(j.gpus, past.expect(&r.s.Cases[j.at].Job, j.gpus))
				line = append(line, k)
			}
		}
		slices.SortStableFunc(line, func(a, b int) int { return cmp.Compare(needs[a], needs[b]) })
		for _, k := range line {
			r.start(&r.jobs[k], 0, nil)
		}
	}
}

// group is the jobs that are predicted alike: of a user and a name, of a user ("" = any name), or of anybody ("" too).
type group struct {
	user, name string
	gpus       int
}

// groups are those that a job is in, the closest first.
func groups(j *cluster.Job, gpus int) [3]group {
	return [3]group{{j.User, j.Name, gpus}, {j.User, "", gpus}, {"", "", gpus}}
}

// history is how long jobs have run that have ended.
type history struct {
	seen map[cluster.JobKey]bool
	mean map[group]cluster.Span // with the newest weighing a fifth
}

// learn adds the jobs that have ended since the last round.
func (h *history) learn(r *round) {
	for i := range r.s.Cases {
		c, rec := &r.s.Cases[i], &r.Records[i]
		gpus := c.Job.Request.GPUs
		if rec.Done == 0 || gpus < 1 || h.seen[rec.Key] {
			continue
		}
		h.seen[rec.Key] = true
		ran := cluster.Span(rec.Alloc) / cluster.Span(gpus)
		for _, g := range groups(&c.Job, gpus) {
			was, known := h.mean[g]
			if !known {
				was = ran
			}
			h.mean[g] = was + (ran-was)/5
		}
	}
	if len(h.seen) > 2*len(r.s.Cases)+1000 { // most are no longer remembered
		there := map[cluster.JobKey]bool{}
		for i := range r.s.Cases {
			if key := r.Records[i].Key; h.seen[key] {
				there[key] = true
			}
		}
		h.seen = there
	}
}

// expect predicts a job's run time.
func (h *history) expect(j *cluster.Job, gpus int) cluster.Span {
	for _, g := range groups(j, gpus) {
		if ran, known := h.mean[g]; known {
			return ran
		}
	}
	return guess
}
