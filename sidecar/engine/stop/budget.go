package stop

import "github.com/fairlease/fairlease/sidecar/cluster"

// Rule is the site's stop budget.
type Rule struct {
	Allowance     cluster.Span // cost of stops allowed to every job, however short it runs
	OverheadMilli int64        // additional cost allowed, in thousandths of its run time; below 1000
}

// Off tells whether there is no budget: then any job may be stopped at any time, as the papers
// assume.
func (r Rule) Off() bool { return r == Rule{} }

// Job is the rule's input about a running job.
type Job struct {
	Saving *cluster.Saving
	Start  cluster.Instant // of the current attempt
	Ran    cluster.Span    // in earlier attempts
	Spent  cluster.Span    // cost of its stops so far
	Saved  cluster.Instant // its newest reported save in this attempt; 0 = none
	Begin  cluster.Span    // cost of a start for its type
}

// drift is the relative delay allowed for unreported saves: a fiftieth of an interval.
const drift = 50

// base gives the moment from which work would be repeated if the job were stopped at t after a
// notice of the given length, and from when a later save counts (0 = none is foreseen).
func (j *Job) base(t cluster.Instant, notice cluster.Span) (from, next cluster.Instant) {
	switch {
	case j.Saving.Manner == cluster.SavesOnTerm:
		return t, 0
	case j.heeds(notice):
		return max(t.Add(-notice), j.Start), 0 // work after the save is lost
	case j.Saving.Manner == cluster.SavesEvery && j.Saving.Every > 0:
		return j.periodic(t, j.Saving.Every)
	}
	return max(j.Start, j.Saved), 0
}

// heeds tells whether the job saves when it is stopped after a notice of the given length.
func (j *Job) heeds(notice cluster.Span) bool {
	return j.Saving.Manner == cluster.SavesOnTerm || j.Saving.Manner == cluster.SavesOnNotice && notice > 0 && notice >= j.Saving.Takes
}

// periodic is base of a job that saves periodically. Reported saves count. Otherwise the k-th
// save is assumed k intervals and saves after the start, delayed by the drift, with the work of k
// intervals.
func (j *Job) periodic(t cluster.Instant, every cluster.Span) (from, next cluster.Instant) {
	step := every + j.Saving.Takes
	if j.Saved >= j.Start && j.Saved > 0 {
		return j.Saved, j.Saved.Add(step)
	}
	done := j.Start.Add(j.Begin + every/drift)
	k := max(t.Sub(done), 0) / step
	if k > 0 {
		from = j.Start.Add(k * every)
	} else {
		from = j.Start
	}
	return from, done.Add((k + 1) * step)
}

// Destroys gives the start of the work destroyed by a stop at t, after a notice of the given
// length, and its certainty. 0 = none: the job saves on SIGTERM.
func (j *Job) Destroys(t cluster.Instant, notice cluster.Span) (since cluster.Instant, sure cluster.Certainty) {
	if j.Saving.Manner == cluster.SavesOnTerm {
		return 0, cluster.BoundedLoss
	}
	from, _ := j.base(t, notice)
	switch {
	case j.Saved > 0 && from == j.Saved, j.Saving.Manner == cluster.SavesNever && j.Saving.Resumes == cluster.Restarted:
		return from, cluster.KnownLoss
	case j.Saving.Manner == cluster.UnknownManner:
		return from, cluster.UnknownLoss
	}
	return from, cluster.BoundedLoss
}

// Cost gives the cost of a stop at t: destroyed work, time to save, and another start. An attempt
// without a usable save costs its age, which includes its start.
func (j *Job) Cost(t cluster.Instant, notice cluster.Span) cluster.Span {
	from, _ := j.base(t, notice)
	loss := max(t.Sub(from), 0)
	if from <= j.Start {
		return max(loss, j.Begin)
	}
	return loss + j.Saving.Takes + j.Begin
}

// Budget gives the allowed cost of a stop at t.
func (j *Job) Budget(r Rule, t cluster.Instant) cluster.Span {
	return r.Allowance + j.run(t)*cluster.Span(r.OverheadMilli)/1000 - j.Spent
}

// run gives the run time up to t.
func (j *Job) run(t cluster.Instant) cluster.Span { return j.Ran + max(t.Sub(j.Start), 0) }

// May tells whether the job may be stopped at t, after a notice of the given length.
func (j *Job) May(r Rule, t cluster.Instant, notice cluster.Span) bool {
	return r.Off() || j.Cost(t, notice) <= j.Budget(r, t)
}

// Gone tells whether stops have used up the job's budget: even the cheapest stop, at the start of
// an attempt at j.Start, exceeds it. A job that was never stopped has its budget, whatever its
// start costs.
//
// A stop beyond the budget always leaves it gone, since the budget is negative then. It recovers
// with the run time, by overhead × run time.
func (j *Job) Gone(r Rule) bool {
	return !r.Off() && j.Spent > 0 && j.Begin > j.Budget(r, j.Start)
}

// horizon is the maximum look-ahead of From.
const horizon = 400 * cluster.Day

// From gives the first moment from t on at which the job may be stopped; 0 = none is foreseen.
func (j *Job) From(r Rule, t cluster.Instant, notice cluster.Span) cluster.Instant {
	end := t.Add(horizon)
	for range 4096 {
		if j.May(r, t, notice) {
			return t
		}
		from, next := j.base(t, notice)
		switch {
		case r.OverheadMilli > 0 && (from > j.Start && j.heeds(notice) || from <= j.Start && t.Sub(from) < j.Begin):
			// The cost stays, the budget grows with the run time.
			short := j.Cost(t, notice) - j.Budget(r, t)
			t = t.Add((short*1000 + cluster.Span(r.OverheadMilli) - 1) / cluster.Span(r.OverheadMilli))
		case next > t:
			t = next
		default:
			return 0
		}
		if t > end {
			return 0
		}
	}
	return 0
}

// Until gives the last moment up to which the job may be stopped, if it may at t; 0 = unlimited.
// It is exact to a millisecond for attempts that lose their work, and 0 for the others.
func (j *Job) Until(r Rule, t cluster.Instant, notice cluster.Span) cluster.Instant {
	if r.Off() || j.heeds(notice) || !j.May(r, t, notice) {
		return 0
	}
	from, _ := j.base(t, notice)
	// The cost grows by 1 per millisecond, the budget by overhead. An attempt younger than a
	// start costs a start until then.
	spare := j.Budget(r, t) - j.Cost(t, notice)
	if from <= j.Start {
		spare = j.Budget(r, t) - t.Sub(from)
	}
	return t.Add(spare * 1000 / cluster.Span(1000-r.OverheadMilli))
}
