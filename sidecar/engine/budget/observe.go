package budget

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// resolve returns how a job saves, from its conduct, its type's habit (both may be nil), its own declaration
// and the site's rules. The result must not be changed.
func resolve(set *cluster.Settings, j *cluster.Job, own *cluster.Conduct, habit *cluster.Habit) *cluster.Saving {
	var site cluster.Saving
	if len(set.Saves) > 0 && j.Declares.Manner == cluster.UnknownManner {
		site = stop.Site(set.Saves, j)
	}
	if site.Manner == cluster.UnknownManner && stop.Untold(own, habit) && cmp.Or(stop.Takes(own, habit), j.Declares.Takes) == j.Declares.Takes {
		return &j.Declares
	}
	out := stop.Resolve(own, habit, j.Declares, site)
	out.Takes = cmp.Or(stop.Takes(own, habit), out.Takes)
	return &out
}

// modelOf returns the GPU model that a job holds, or that a waiting job names; "" = several, or any.
func modelOf(j *cluster.Job) string {
	if len(j.Holds) == 0 {
		return j.Request.Model
	}
	model := j.Holds[0].Model
	for i := range j.Holds {
		if j.Holds[i].Model != model {
			return ""
		}
	}
	return model
}

// observer takes reports of jobs about stops.
type observer struct {
	a *Account
}

// observe updates the knowledge of how jobs save and start. Its sources are progress reports, and attempts
// that ended since the last round. It does not depend on a policy for heterogeneous GPUs.
func (o *observer) observe(reports []cluster.Progress) {
	if order := func(a, b cluster.Progress) int { return cmp.Or(a.Job.Compare(b.Job), cmp.Compare(a.At, b.At)) }; !slices.IsSortedFunc(reports, order) {
		reports = slices.Clone(reports)
		slices.SortStableFunc(reports, order)
	}
	for _, i := range o.a.notes.open {
		c := &o.a.in.Snapshot.Cases[i]
		if ran := o.a.in.Records[i].Ran - c.Record.Ran; ran > 0 {
			o.attemptEnded(i, ran)
		}
		if o.a.in.Settings.JobOrder == cluster.ByExpected && o.a.in.Records[i].Done != 0 && c.Record.Done == 0 {
			o.ended(i)
		}
		o.brief(i)
		if len(reports) == 0 || !o.a.in.Cases[i].Runs || c.Job.Start == 0 {
			continue
		}
		k, _ := slices.BinarySearchFunc(reports, c.Job.ID, func(p cluster.Progress, id cluster.JobID) int { return p.Job.Compare(id) })
		for ; k < len(reports) && reports[k].Job == c.Job.ID; k++ {
			if reports[k].At >= c.Job.Start {
				o.heard(i, &reports[k])
			}
		}
	}
}

// conduct returns a copy of a job's conduct that may be changed.
func (o *observer) conduct(i int) *cluster.Conduct {
	r, fresh := change(o.a, i), &cluster.Conduct{}
	if r.Conduct != nil {
		*fresh = *r.Conduct
	}
	r.Conduct = fresh
	return fresh
}

// attemptEnded handles attempts of a job that ended; ran is their length.
func (o *observer) attemptEnded(i int, ran cluster.Span) {
	c, r := &o.a.in.Snapshot.Cases[i], &o.a.in.Records[i]
	j := &c.Job
	switch {
	case c.Gone || j.Outcome != "" && j.Outcome != "COMPLETED":
		return // gives no evidence
	case j.Outcome == "":
		o.requeued(i, ran)
		return
	}
	last := ran // several attempts, if some came and went unseen
	if j.Start > 0 && j.End > j.Start {
		last = min(ran, max(j.End.Sub(j.Start)-j.Suspend, 0))
	}
	own := o.a.Of(i).Conduct
	if (own == nil || own.Attempts == 0) && j.Restarts == 0 && last == r.Ran {
		if t, ok := cluster.TypeOf(j); ok && last >= o.a.in.Settings.MinLease { // shorter ones are never stopped
			o.a.habits.Completed(t, o.a.in.Now, last)
		}
		return
	}
	if own != nil && own.Last != cluster.UnknownResumption {
		return // its reports have given the verdict
	}
	model, earlier := held(c), r.Ran-last
	verdict, redone := stop.Completion(own, model, habit(o.a, i), last, earlier, o.a.begin(i, model))
	o.judge(i, verdict, redone, earlier)
}

// held returns the GPU model that a job held in the last round; "" = several or none.
func held(c *cluster.Case) string {
	if len(c.Record.Held) != 1 {
		return ""
	}
	return c.Record.Held[0].Model
}

// requeued handles an attempt that ended in a requeue; ran is its length.
func (o *observer) requeued(i int, ran cluster.Span) {
	c, r := &o.a.in.Snapshot.Cases[i], &o.a.in.Records[i]
	own := o.conduct(i)
	own.Attempts++
	own.Ran, own.Longest = ran, max(own.Longest, ran)
	if model := held(c); own.At < c.Record.HeldSince {
		own.Model = model
	}
	own.Ours, own.Noticed = false, false
	if k, ok := slices.BinarySearchFunc(o.a.in.Snapshot.Leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) }); ok {
		l := &o.a.in.Snapshot.Leases[k]
		base := &stopBase{saving: saving(o.a, i), begin: o.a.begin(i, held(c))}
		// A job that requeues itself at the notice, as some frameworks do, is reclaimed.
		own.Ours = (l.State == cluster.Ending || l.State == cluster.Noticed) && !r.RequeuedByOthers()
		own.Noticed = l.NoticedAt > 0 && o.a.signalled(&c.Job, base, l.NoticedAt.Sub(c.Record.HeldSince))
		if l.State == cluster.Noticed && own.Ours {
			o.left(i, ran, o.a.in.Now.Sub(l.NoticedAt))
		}
	}
	now := change(o.a, i)
	own.Booked, own.Spent = max(now.Spent-own.Spent, 0), now.Spent
	now.Saved = 0
}

// left charges a job that requeued itself within its notice: the stop that was announced has happened.
// notice is the time since the notice.
func (o *observer) left(i int, ran, notice cluster.Span) {
	c, r := &o.a.in.Snapshot.Cases[i], &o.a.in.Records[i]
	if o.a.Rule().Off() || c.Control != cluster.FullControl {
		return
	}
	begin, own := c.Record.HeldSince, o.a.Of(i)
	o.a.book(i, &stop.Job{Saving: saving(o.a, i), Start: begin, Ran: r.Ran - ran, Spent: own.Spent, Saved: own.Saved, Begin: o.a.begin(i, held(c))},
		begin.Add(ran), notice, "")
}

// heard takes a report of the present attempt of a running job.
//
// Only the first report that shows progress is judged, because later ones say less. The work that a job may
// have done from the beginning grows with time, at twice its earlier speed. So a later report cannot prove a
// resumption or a restart that the first one does not prove. A job faster than twice its earlier speed would
// also seem to have resumed. A report of zero steps is no progress: the job may be about to load its
// checkpoint.
func (o *observer) heard(i int, p *cluster.Progress) {
	j := &o.a.in.Snapshot.Cases[i].Job
	t, typed := cluster.TypeOf(j)
	if p.Steps > 0 {
		o.progressed(i, p, t, typed)
	}
	o.hasSaved(i, p, t, typed)
}

// progressed takes the progress that a report shows.
func (o *observer) progressed(i int, p *cluster.Progress, t cluster.JobType, typed bool) {
	j, r := &o.a.in.Snapshot.Cases[i].Job, &o.a.in.Records[i]
	in, model := max(p.At.Sub(j.Start)-j.Suspend, 0), modelOf(j)
	if before := o.a.Of(i).Conduct; before == nil || before.At < j.Start { // the first of this attempt
		if typed {
			o.a.habits.Began(t, p.At, model, in)
		}
		if before != nil && before.Attempts > 0 {
			now := stop.Report{Steps: p.Steps, In: in, Model: model}
			verdict, redone := now.Resumption(before)
			o.judge(i, verdict, redone, r.Ran)
		}
		own := o.conduct(i)
		own.First, own.FirstIn = p.Steps, in
	}
	own := o.conduct(i)
	own.Steps, own.At, own.In, own.Model = p.Steps, p.At, in, model
}

// hasSaved takes the save that a report shows.
func (o *observer) hasSaved(i int, p *cluster.Progress, t cluster.JobType, typed bool) {
	j := &o.a.in.Snapshot.Cases[i].Job
	if last := o.a.Of(i).Conduct; p.Saved <= j.Start || last != nil && p.Saved <= last.Saved {
		return
	}
	own, r := o.conduct(i), change(o.a, i)
	since := j.Start.Add(o.a.begin(i, modelOf(j)))
	if own.Saved >= j.Start {
		since = own.Saved
	}
	own.Saved, r.Saved = p.Saved, p.Saved
	if took := min(p.Took, p.Saved.Sub(j.Start)); took > 0 { // no save takes longer than its attempt has run
		own.Takes = stop.Longest(own.Takes, took)
		if typed {
			o.a.habits.Took(t, p.Saved, took)
		}
		o.a.notes.cases[i].habit = 0
	}
	if s := r.Stopping; s != nil { // the requeue is late
		stopping := *s
		if stopping.Saved = p.Saved; s.Since > 0 && s.Since < p.Saved {
			stopping.Since, stopping.Certainty = p.Saved, cluster.KnownLoss
		}
		r.Stopping = &stopping
	}
	if l := o.a.leases[i]; l != nil && l.NoticedAt > 0 && p.Saved >= l.NoticedAt {
		return // it may have saved because of the notice
	}
	if gap := p.Saved.Sub(since); gap >= cluster.Second {
		own.Reports++
		own.Every = stop.Longest(own.Every, gap)
		if typed {
			o.a.habits.Saved(t, p.Saved, gap)
		}
		o.a.notes.cases[i].habit = 0
	}
}

// judge applies a verdict on how an attempt began; earlier is the length of earlier attempts. A stop that
// turns out to cost more than was booked is charged the difference.
func (o *observer) judge(i int, verdict cluster.Resumption, redone, earlier cluster.Span) {
	if verdict == cluster.UnknownResumption {
		return
	}
	j := &o.a.in.Snapshot.Cases[i].Job
	begin, habit := o.a.begin(i, modelOf(j)), habit(o.a, i)
	if verdict == cluster.Restarted {
		s := saving(o.a, i)
		if !stop.Telling(s, o.a.Of(i).Conduct, habit != nil && habit.Reports > 0, earlier, begin) {
			return
		}
	}
	own, r := o.conduct(i), change(o.a, i)
	own.Last, own.LastAt = verdict, o.a.in.Now
	if own.Ours && !o.a.Rule().Off() {
		cost := redone + begin
		if verdict == cluster.Restarted {
			cost = own.Ran
		}
		r.Spent += max(cost-own.Booked, 0)
		own.Booked, own.Spent = max(own.Booked, cost), r.Spent
	}
	if t, ok := cluster.TypeOf(j); ok {
		o.a.habits.Judged(t, o.a.in.Now, verdict, redone, own)
		o.a.notes.cases[i].habit = 0
	}
}
