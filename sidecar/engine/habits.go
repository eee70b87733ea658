package engine

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// saving gives how a job saves, by the best evidence that there is.
func (h *hall) saving(i int) cluster.Saving {
	j := &h.Snapshot.Cases[i].Job
	return resolve(h.Settings, j, h.Records[i].Conduct, h.habit(i))
}

// stopBase is what is known of a case that does not change once the round has observed.
type stopBase struct {
	known  bool
	saving cluster.Saving
	begin  cluster.Span
}

// stopBase gives how a job saves and what a start costs it. It is asked several times a round, and worked out once.
func (h *hall) stopBase(i int) *stopBase {
	b := &h.stopOf[i]
	if !b.known {
		*b = stopBase{true, h.saving(i), h.begin(i, modelOf(&h.Snapshot.Cases[i].Job))}
	}
	return b
}

// resolve gives how a job saves, from its conduct, its type's habit (both may be nil), its words and the site's.
func resolve(set *cluster.Settings, j *cluster.Job, own *cluster.Conduct, habit *cluster.Habit) cluster.Saving {
	var site cluster.Saving
	if len(set.Saves) > 0 && j.Declares.Manner == cluster.UnknownManner {
		site = stop.Site(set.Saves, j)
	}
	if own == nil && habit == nil && site.Manner == cluster.UnknownManner {
		return j.Declares
	}
	return stop.Resolve(own, habit, j.Declares, site)
}

// begin gives what a start on a GPU model costs a job: as learnt of its type, else as configured.
func (h *hall) begin(i int, model string) cluster.Span {
	return stop.Begin(h.habit(i), model, h.Settings.StartCost)
}

// modelOf gives the GPU model that a job holds, or of a job that waits the one that it names; "" = several, or any.
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

// habit gives the habit of a job's type; nil = nothing was observed of it.
func (h *hall) habit(i int) *cluster.Habit {
	if h.habits.Len() == 0 {
		return nil
	}
	at := h.habitOf[i]
	if at == 0 { // not looked for yet
		at = -1
		if t, ok := cluster.TypeOf(&h.Snapshot.Cases[i].Job); ok {
			if k := h.habits.Find(t); k >= 0 {
				at = k + 1
			}
		}
		h.habitOf[i] = at
	}
	if at < 0 {
		return nil
	}
	return h.habits.At(at - 1)
}

// observe brings what is known of how jobs save and start up to now: from the progress that they report, and from
// attempts that have ended since the last round. It works the same whether or not a policy divides GPU models.
func (h *hall) observe() {
	h.habits.Reset(h.Snapshot.Habits)
	n := len(h.Snapshot.Cases)
	h.habitOf = slices.Grow(h.habitOf[:0], n)[:n]
	clear(h.habitOf)
	h.stopOf = slices.Grow(h.stopOf[:0], n)[:n]
	clear(h.stopOf)
	reports := h.Snapshot.Progress
	if order := func(a, b cluster.Progress) int { return cmp.Or(a.Job.Compare(b.Job), cmp.Compare(a.At, b.At)) }; !slices.IsSortedFunc(reports, order) {
		reports = slices.Clone(reports)
		slices.SortStableFunc(reports, order)
	}
	for i := range h.Snapshot.Cases {
		c := &h.Snapshot.Cases[i]
		if ran := h.Records[i].Ran - c.Record.Ran; ran > 0 {
			h.attemptEnded(i, ran)
		}
		if len(reports) == 0 || !h.Jobs[i].Runs || c.Job.Start == 0 {
			continue
		}
		k, _ := slices.BinarySearchFunc(reports, c.Job.ID, func(p cluster.Progress, id cluster.JobID) int { return p.Job.Compare(id) })
		for ; k < len(reports) && reports[k].Job == c.Job.ID; k++ {
			if reports[k].At >= c.Job.Start {
				h.heard(i, &reports[k])
			}
		}
	}
}

// conduct gives a job's conduct to be changed.
func (h *hall) conduct(i int) *cluster.Conduct {
	r, fresh := &h.Records[i], &cluster.Conduct{}
	if r.Conduct != nil {
		*fresh = *r.Conduct
	}
	r.Conduct = fresh
	return fresh
}

// attemptEnded notes that attempts of a job ended, which ran for so long.
func (h *hall) attemptEnded(i int, ran cluster.Span) {
	c, r := &h.Snapshot.Cases[i], &h.Records[i]
	j := &c.Job
	switch {
	case c.Gone || j.Outcome != "" && j.Outcome != "COMPLETED":
		return // nothing can be told from it
	case j.Outcome == "":
		h.requeued(i, ran)
		return
	}
	last := ran // several attempts, if they came and went unseen
	if j.Start > 0 && j.End > j.Start {
		last = min(ran, max(j.End.Sub(j.Start)-j.Suspend, 0))
	}
	own := r.Conduct
	if (own == nil || own.Attempts == 0) && j.Restarts == 0 && last == r.Ran {
		if t, ok := cluster.TypeOf(j); ok && last >= h.Settings.MinLease { // shorter ones are never stopped
			h.habits.Completed(t, h.Now, last)
		}
		return
	}
	if own != nil && own.Last != cluster.UnknownResumption {
		return // its reports told
	}
	model, earlier := held(c), r.Ran-last
	verdict, redone := stop.Completion(own, model, h.habit(i), last, earlier, h.begin(i, model))
	h.judge(i, verdict, redone, earlier)
}

// held gives the GPU model that a job held at the last look; "" = several, or it held none.
func held(c *cluster.Case) string {
	if len(c.Record.Held) != 1 {
		return ""
	}
	return c.Record.Held[0].Model
}

// requeued notes that a requeue ended an attempt of a job, which ran for so long.
func (h *hall) requeued(i int, ran cluster.Span) {
	c, r := &h.Snapshot.Cases[i], &h.Records[i]
	own := h.conduct(i)
	own.Attempts++
	own.Ran, own.Longest = ran, max(own.Longest, ran)
	if model := held(c); own.At < c.Record.HeldSince {
		own.Model = model
	}
	own.Ours, own.Noticed = false, false
	if k, ok := slices.BinarySearchFunc(h.Snapshot.Leases, r.Key, func(l cluster.Lease, key cluster.JobKey) int { return cmp.Compare(l.Job, key) }); ok {
		l := &h.Snapshot.Leases[k]
		own.Ours, own.Noticed = l.State == cluster.Ending, l.NoticedAt > 0
		if !own.Ours && h.failed(l.Nodes) {
			h.drained(i, ran)
		}
	}
	own.Booked, own.Spent = max(r.Spent-own.Spent, 0), r.Spent
	r.Saved = 0
}

// failed tells whether one of the nodes is bad: down, drained, or not there any more.
func (h *hall) failed(nodes []cluster.Holding) bool {
	return slices.ContainsFunc(nodes, func(n cluster.Holding) bool { return !h.site.Good(n.Node) })
}

// drained books what it cost a job that its node was drained or failed: a requeue that others ordered, and no less a stop
// to the job. It does not wait for the budget.
func (h *hall) drained(i int, ran cluster.Span) {
	c, r := &h.Snapshot.Cases[i], &h.Records[i]
	if h.rule().Off() || c.Touch != cluster.Act {
		return
	}
	begin := c.Record.HeldSince
	h.book(i, &stop.Job{Saving: h.saving(i), Start: begin, Ran: r.Ran - ran, Spent: r.Spent, Saved: r.Saved, Begin: h.begin(i, held(c))},
		begin.Add(ran), 0, "its node was drained or failed")
}

// heard takes a report of the present attempt of a job that runs.
//
// The first one that shows progress is judged, later ones are not: they tell less. What a job may have done from the
// beginning grows with the time, by twice its earlier speed, so that a later report proves neither a resumption nor a
// restart that the first one does not prove; and a job that is faster than twice what it was would seem to have resumed. A
// report of no steps is no progress: the job may be about to load its save.
func (h *hall) heard(i int, p *cluster.Progress) {
	j := &h.Snapshot.Cases[i].Job
	t, typed := cluster.TypeOf(j)
	if p.Steps > 0 {
		h.progressed(i, p, t, typed)
	}
	h.hasSaved(i, p, t, typed)
}

// progressed takes the progress that a report shows.
func (h *hall) progressed(i int, p *cluster.Progress, t cluster.JobType, typed bool) {
	j, r := &h.Snapshot.Cases[i].Job, &h.Records[i]
	in, model := max(p.At.Sub(j.Start)-j.Suspend, 0), modelOf(j)
	if before := r.Conduct; before == nil || before.At < j.Start { // the first of this attempt
		if typed {
			h.habits.Began(t, p.At, model, in)
		}
		if before != nil && before.Attempts > 0 {
			now := stop.Report{Steps: p.Steps, In: in, Model: model}
			verdict, redone := now.Resumption(before)
			h.judge(i, verdict, redone, r.Ran)
		}
		own := h.conduct(i)
		own.First, own.FirstIn = p.Steps, in
	}
	own := h.conduct(i)
	own.Steps, own.At, own.In, own.Model = p.Steps, p.At, in, model
}

// hasSaved takes the save that a report tells of.
func (h *hall) hasSaved(i int, p *cluster.Progress, t cluster.JobType, typed bool) {
	j, r := &h.Snapshot.Cases[i].Job, &h.Records[i]
	if last := r.Conduct; p.Saved <= j.Start || last != nil && p.Saved <= last.Saved {
		return
	}
	own := h.conduct(i)
	since := j.Start.Add(h.begin(i, modelOf(j)))
	if own.Saved >= j.Start {
		since = own.Saved
	}
	own.Saved, r.Saved = p.Saved, p.Saved
	if s := r.Stopping; s != nil && s.Since > 0 && s.Since < p.Saved { // the requeue is late
		r.Stopping = &cluster.PendingStop{Since: p.Saved, Certainty: cluster.KnownLoss, Restarts: s.Restarts}
	}
	if l := h.Leases[i]; l != nil && l.NoticedAt > 0 && p.Saved >= l.NoticedAt {
		return // it may have saved because of the notice
	}
	if gap := p.Saved.Sub(since); gap >= cluster.Second {
		own.Reports++
		own.Every = stop.Longest(own.Every, gap)
		if typed {
			h.habits.Saved(t, p.Saved, gap)
		}
		h.habitOf[i] = 0
	}
}

// judge takes a verdict on how an attempt began, where earlier ones ran for so long. What a stop turns out
// to have cost beyond what was booked is booked now.
func (h *hall) judge(i int, verdict cluster.Resumption, redone, earlier cluster.Span) {
	if verdict == cluster.UnknownResumption {
		return
	}
	j, r := &h.Snapshot.Cases[i].Job, &h.Records[i]
	begin, habit := h.begin(i, modelOf(j)), h.habit(i)
	if verdict == cluster.Restarted {
		s := h.saving(i)
		if !stop.Telling(&s, r.Conduct, habit != nil && habit.Reports > 0, earlier, begin) {
			return
		}
	}
	own := h.conduct(i)
	own.Last, own.LastAt = verdict, h.Now
	if own.Ours && !h.rule().Off() {
		cost := redone + begin
		if verdict == cluster.Restarted {
			cost = own.Ran
		}
		r.Spent += max(cost-own.Booked, 0)
		own.Booked, own.Spent = max(own.Booked, cost), r.Spent
	}
	if t, ok := cluster.TypeOf(j); ok {
		h.habits.Judged(t, h.Now, verdict, redone, own.Noticed)
		h.habitOf[i] = 0
	}
}
