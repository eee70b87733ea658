package papers

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

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
		all = runs(&r.Snapshot.Cases[j.Case].Job)
	}
	if all == 0 {
		all = r.Field.In.Records[j.Case].UserLimit
	}
	if all == 0 {
		all = ran + max(ran, guess)
	}
	return max(all-ran, cluster.Second)
}

// ran gives a job's past run time, all attempts and their overheads included.
func (r *round) ran(j *job) cluster.Span {
	return cluster.Span(r.Alloc(j)) / cluster.Span(max(j.GPUs, 1))
}

// needs gives the GPU time that remains to the jobs of a line, by index.
func (r *round) needs(line []int, runs func(*cluster.Job) cluster.Span) []cluster.GPUTime {
	needs := make([]cluster.GPUTime, len(r.Jobs))
	for _, k := range line {
		needs[k] = cluster.Times(r.Jobs[k].GPUs, r.remaining(&r.Jobs[k], runs))
	}
	return needs
}

// ended finds the jobs that have ended, for schedulers that predict run times from the past.
type ended struct{ seen map[cluster.JobKey]bool }

// learn gives every job that has run and ended since the last call, with its run time.
func (e *ended) learn(r *round, learn func(j *cluster.Job, ran cluster.Span)) {
	if e.seen == nil {
		e.seen = map[cluster.JobKey]bool{}
	}
	for i := range r.Snapshot.Cases {
		j, rec := &r.Snapshot.Cases[i].Job, &r.Field.In.Records[i]
		if rec.Done == 0 || rec.Alloc == 0 || j.Request.Size.Devices < 1 || e.seen[rec.Key] {
			continue
		}
		e.seen[rec.Key] = true
		learn(j, cluster.Span(rec.Alloc)/cluster.Span(j.Request.Size.Devices))
	}
	if len(e.seen) > 2*len(r.Snapshot.Cases)+1000 { // most are no longer remembered
		there := map[cluster.JobKey]bool{}
		for i := range r.Snapshot.Cases {
			if key := r.Field.In.Records[i].Key; e.seen[key] {
				there[key] = true
			}
		}
		e.seen = there
	}
}

// group is the jobs that are predicted alike: of a user and a command, of a user ("" = any command), or of anybody ("" too).
type group struct {
	user, command string
	gpus          int
}

// groups are those that a job is in, the closest first.
func groups(j *cluster.Job) [3]group {
	n := j.Request.Size.Devices
	return [...]group{{j.User, commandOf(j), n}, {j.User, "", n}, {"", "", n}}
}

// commandOf gives the command of a job, or its name.
func commandOf(j *cluster.Job) string { return cmp.Or(j.Command, j.Name) }

// lengths is how long the last jobs of each group ran.
type lengths map[group]*sample

// kept is the number of jobs that a sample keeps.
const kept = 100

// sample is the last run times of a group.
type sample struct {
	last   []cluster.Span // in the order of their ends
	sorted []cluster.Span
	above  []cluster.Span // sums of those from here on
}

// add counts a job that has ended.
func (l lengths) add(j *cluster.Job, ran cluster.Span) {
	for _, g := range groups(j) {
		s := l[g]
		if s == nil {
			s = &sample{}
			l[g] = s
		}
		s.last = append(s.last, ran)
		if len(s.last) > kept {
			s.last = s.last[1:]
		}
		s.sorted = append(s.sorted[:0], s.last...)
		slices.Sort(s.sorted)
		s.above = append(s.above[:0], s.sorted...)
		for i := len(s.above) - 2; i >= 0; i-- {
			s.above[i] += s.above[i+1]
		}
	}
}

// left estimates the remaining run time of a job that has run for some time: the mean of what the jobs that ran longer had
// left then, in the closest group that has any. Without such jobs it is the past run time; see remaining.
func (l lengths) left(j *cluster.Job, ran cluster.Span) cluster.Span {
	for _, g := range groups(j) {
		if s := l[g]; s != nil {
			i, _ := slices.BinarySearch(s.sorted, ran+1)
			if n := len(s.sorted) - i; n > 0 {
				return max(s.above[i]/cluster.Span(n)-ran, cluster.Second)
			}
		}
	}
	return max(ran, guess)
}
