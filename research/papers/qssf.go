package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

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
func newQSSF(baseline.Options) rule {
	var over ended
	past := history{}
	return func(r *round) {
		over.learn(r, past.add)
		r.Hold()
		r.startLeast(past.expect)
	}
}

// startLeast starts waiting jobs on idle GPUs, to run to their end: those with the least expected GPU time first. A job that
// does not fit is skipped.
func (r *round) startLeast(expect func(*cluster.Job) cluster.Span) {
	if !r.Idle() {
		return
	}
	r.Line = r.Line[:0]
	needs := make([]cluster.GPUTime, len(r.Jobs))
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Lease == nil {
			needs[k] = cluster.Times(j.GPUs, expect(&r.Snapshot.Cases[j.Case].Job))
			r.Line = append(r.Line, k)
		}
	}
	slices.SortStableFunc(r.Line, func(a, b int) int { return cmp.Compare(needs[a], needs[b]) })
	for _, k := range r.Line {
		r.Start(&r.Jobs[k], 0, nil)
	}
}

// history is the mean run times of jobs that have ended; the newest weighs a fifth.
type history map[group]cluster.Span

// add counts a job that has ended.
func (h history) add(j *cluster.Job, ran cluster.Span) {
	for _, g := range groups(j) {
		was, known := h[g]
		if !known {
			was = ran
		}
		h[g] = was + (ran-was)/5
	}
}

// expect predicts a job's run time.
func (h history) expect(j *cluster.Job) cluster.Span {
	for _, g := range groups(j) {
		if ran, known := h[g]; known {
			return ran
		}
	}
	return guess
}
