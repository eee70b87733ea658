package engine

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// StopReport says when a running job may be stopped, and what its stops have cost it.
type StopReport struct {
	Saving cluster.Saving `json:"saving"`
	// Stops counts those that we ordered, Spent is what they cost, Budget what a stop may cost now, Cost what a
	// stop after a notice of Notice would cost, Begin what of that is another start.
	Stops  int          `json:"stops"`
	Spent  cluster.Span `json:"spent"`
	Budget cluster.Span `json:"budget"`
	Cost   cluster.Span `json:"cost"`
	Begin  cluster.Span `json:"begin"`
	Notice cluster.Span `json:"notice"`
	// May tells whether the job may be stopped at the end of a notice that is sent now. Until is then the last moment at
	// which it may, 0 = none is foreseen; else From is the first, 0 = it will not be stopped before it ends.
	May   bool            `json:"may"`
	Until cluster.Instant `json:"until,omitempty"`
	From  cluster.Instant `json:"from,omitempty"`
	// Short is true where the job saves on a notice, and needs a longer one than it gets.
	Short bool `json:"short,omitempty"`
	// Off is true where the site has no stop budget: any job may be stopped at any time.
	Off bool `json:"off,omitempty"`
	// Habit is what is known of jobs of its type, Conduct of its own attempts; nil = nothing.
	Habit   *cluster.Habit   `json:"habit,omitempty"`
	Conduct *cluster.Conduct `json:"conduct,omitempty"`
}

// StopOf gives when a job may be stopped, as of a round; false where the job does not run. It is worked out from what a
// round remembers, for people who ask, and costs the rounds themselves nothing.
func StopOf(s *cluster.Snapshot, plan *cluster.Plan, key cluster.JobKey) (StopReport, bool) {
	i, ok := slices.BinarySearchFunc(s.Cases, key, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) })
	k, known := slices.BinarySearchFunc(plan.Memory.Records, key, func(r cluster.Record, key cluster.JobKey) int { return cmp.Compare(r.Key, key) })
	if !ok || !known || s.Cases[i].Gone || s.Cases[i].Job.State != cluster.Running && s.Cases[i].Job.State != cluster.Suspended {
		return StopReport{}, false
	}
	set, j, r := &s.Settings, &s.Cases[i].Job, &plan.Memory.Records[k]
	out := StopReport{Stops: r.Stops, Spent: r.Spent, Notice: set.Notice, Conduct: r.Conduct}
	if t, ok := typeOf(j); ok {
		if at, ok := slices.BinarySearchFunc(plan.Memory.Habits, t, func(h cluster.Habit, t cluster.JobType) int { return h.Type.Compare(t) }); ok {
			out.Habit = &plan.Memory.Habits[at]
		}
	}
	out.Saving = resolve(set, j, r.Conduct, out.Habit)
	out.Begin = stop.Begin(out.Habit, modelOf(j), set.StartCost)
	rule := stop.Rule{Allowance: set.StopAllowance, OverheadMilli: set.StopOverheadMilli}
	if out.Off = rule.Off(); out.Off {
		out.May = true
		return out, true
	}
	job := stop.Job{Saving: out.Saving, Start: j.Start, Ran: r.Ran, Spent: r.Spent, Saved: r.Saved, Begin: out.Begin}
	at := s.Now.Add(set.Notice)
	out.Budget, out.Cost = job.Budget(rule, at), job.Cost(at, set.Notice)
	out.Short = out.Saving.Manner == cluster.SavesOnNotice && (set.Notice == 0 || set.Notice < out.Saving.Takes)
	if out.May = job.May(rule, at, set.Notice); out.May {
		out.Until = job.Until(rule, at, set.Notice)
	} else {
		out.From = job.From(rule, at, set.Notice)
	}
	return out, true
}
