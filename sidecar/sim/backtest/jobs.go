package backtest

import (
	"time"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/score"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
	"github.com/fairlease/fairlease/sidecar/store"
)

// builder processes the jobs of a window.
type builder struct {
	from, to   cluster.Instant
	interval   cluster.Span
	budget     bool                              // with stop budgets, losses are booked separately
	next       cluster.JobKey                    // of the first job after the window
	begin, end map[cluster.JobKey]cluster.Record // records at these rounds
	commands   map[cluster.JobKey]string         // of the jobs in the past

	was   []score.Job
	load  []trace.Job
	lives []Life
	jobs  Jobs
}

func newBuilder(p *store.Past) *builder {
	set := &p.End.Snapshot.Settings
	return &builder{from: p.Begin.Plan.At, to: p.End.Plan.At, interval: set.Interval, budget: set.StopAllowance > 0 || set.StopOverheadMilli > 0,
		next:  p.End.Plan.State.NextKey,
		begin: byKey(&p.Begin.Plan.State), end: byKey(&p.End.Plan.State), commands: commands(p)}
}

// commands gives the commands of jobs, by key.
func commands(p *store.Past) map[cluster.JobKey]string {
	out := map[cluster.JobKey]string{}
	for i := range p.Seen {
		if c := &p.Seen[i]; c.Job.Command != "" {
			out[c.Record.Key] = c.Job.Command
		}
	}
	return out
}

func byKey(m *cluster.State) map[cluster.JobKey]cluster.Record {
	out := make(map[cluster.JobKey]cluster.Record, len(m.Records)+len(m.Former))
	for r := range m.All() {
		out[r.Key] = *r
	}
	return out
}

// job adds a job to both worlds, or counts it as omitted.
func (b *builder) job(p *store.PastJob) {
	if p.Key >= b.next {
		return
	}
	// The row may include later events; the record is of the window's end.
	alloc, lost, stops, done := p.Alloc, p.Lost, p.Preemptions(), instant(p.Done)
	work, due := p.Work()
	if r, ok := b.end[p.Key]; ok {
		alloc, lost, stops = r.Alloc, r.Lost, r.Preemptions()
		work, due = r.Work(b.to)
		if r.Done == 0 {
			done = 0
		}
	}
	before, there := b.begin[p.Key]
	workBefore, dueBefore := before.Work(b.from)
	alloc, work, due = alloc-before.Alloc, work-workBefore, due-dueBefore
	lost, stops = lost-before.Lost, stops-before.Preemptions()
	held := alloc
	if b.budget { // destroyed time was held, too, and is not in alloc
		held += max(lost, 0)
	}
	if b.leftOut(p, held, lost, done) {
		return
	}
	j := score.Job{ID: p.SlurmID, Tenant: p.Tenant, User: p.User, GPUs: p.GPUs.Ceil(), End: done, Outcome: p.Outcome,
		Alloc: max(work, 0), Due: max(due, 0), Preemptions: max(stops, 0),
		Held: span(held, p.GPUs), Overhead: span(min(lost, held), p.GPUs)}
	j.Lost, j.Runs = j.Overhead, j.Held-j.Overhead // the journal's overhead is lost work
	b.times(&j, p)
	b.jobs.Compared++
	if there && j.Submit == b.from {
		b.jobs.There++
	}
	if p.Control == cluster.Unmanaged {
		b.jobs.Alone++
	}
	life := b.life(p, &before)
	runs := j.Runs
	if done == 0 {
		runs = beyond * b.to.Sub(b.from) // it never ends
		if j.Start == 0 {
			b.jobs.Waiting++
		} else {
			b.jobs.Running++
		}
	}
	b.was = append(b.was, j)
	life.Job = trace.Job{ID: j.ID, Tenant: j.Tenant, User: j.User, Name: p.Name, Command: b.commands[p.Key],
		Submit: j.Submit.Sub(b.from), Runs: runs, GPUs: j.GPUs, Model: p.Model, Outcome: j.Outcome}
	b.load = append(b.load, life.Job)
	life.Runs, life.Limit = j.Runs, p.Limit
	life.After = max(0, life.After-life.Before-j.Runs)
	b.lives = append(b.lives, life)
}

// life gives what is known of a job by now. Its After is still all its run time.
func (b *builder) life(p *store.PastJob, before *cluster.Record) Life {
	ran := func(alloc, lost cluster.GPUTime) cluster.Span {
		if !b.budget {
			alloc -= lost
		}
		return span(alloc, p.GPUs)
	}
	return Life{Before: ran(before.Alloc, before.Lost), After: ran(p.Alloc, p.Lost), Ended: p.Done != nil, Held: len(before.Held) > 0,
		Stops: max(0, p.Preemptions()-before.Preemptions()), Lost: p.Lost > before.Lost}
}

// leftOut counts a job that cannot be compared.
func (b *builder) leftOut(p *store.PastJob, held, lost cluster.GPUTime, done cluster.Instant) bool {
	never := done != 0 && held <= lost || held <= 0 && p.Eligible == nil && p.Started == nil
	switch {
	case never:
		b.jobs.NeverRan++
	case p.GPUs <= 0:
		b.jobs.Unseen++
	case p.Tenant == "":
		b.jobs.NoTenant++
	default:
		return false
	}
	b.jobs.OutTime += max(held, 0)
	return true
}

// times sets the arrival, start and end of a job, if they are in the window.
func (b *builder) times(j *score.Job, p *store.PastJob) {
	if j.Start = instant(p.Started); j.Start > b.to {
		j.Start = 0
	}
	if j.Start == 0 && j.Alloc > 0 { // it ran between two looks, or without a lease
		last := j.End
		if last == 0 {
			last = b.to
		}
		j.Start = last.Add(-j.Held)
	}
	j.Submit = instant(p.Eligible)
	if j.Submit == 0 || j.Start != 0 && j.Start < j.Submit {
		j.Submit = j.Start
	}
	// The first look that sees a job is at most one interval after its submission.
	if asked := instant(p.Submitted); asked != 0 && asked < j.Submit && j.Submit.Sub(asked) <= b.interval {
		j.Submit = asked
	}
	j.Submit = max(j.Submit, b.from)
	if j.Start != 0 {
		j.Start = max(j.Start, j.Submit)
	}
	if j.End != 0 {
		j.End = max(j.End, j.Submit, j.Start)
	}
}

// instant gives the moment of a time, 0 of none.
func instant(t *time.Time) cluster.Instant {
	if t == nil {
		return 0
	}
	return cluster.InstantOf(*t)
}

// span gives the time for which so many GPUs were held.
func span(t cluster.GPUTime, gpus cluster.GPUCount) cluster.Span {
	return cluster.Span(cluster.MulDiv(max(int64(t), 0), int64(cluster.WholeGPU), int64(gpus)))
}
