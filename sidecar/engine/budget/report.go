package budget

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/stop"
)

// Report returns when a job may be stopped, as of a round; false = the job does not run or is never stopped.
// It computes this on request from the data that a round keeps, so rounds themselves pay nothing for it.
func Report(s *cluster.Snapshot, plan *cluster.Plan, key cluster.JobKey) (cluster.StopReport, bool) {
	i, ok := slices.BinarySearchFunc(s.Cases, key, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) })
	k, known := slices.BinarySearchFunc(plan.State.Records, key, func(r cluster.Record, key cluster.JobKey) int { return cmp.Compare(r.Key, key) })
	if !ok || !known || s.Cases[i].Gone || s.Cases[i].Control != cluster.FullControl && s.Cases[i].Control != cluster.ObserveOnly ||
		s.Cases[i].Job.State != cluster.Running && s.Cases[i].Job.State != cluster.Suspended {
		return cluster.StopReport{}, false
	}
	set, j, r := &s.Settings, &s.Cases[i].Job, &plan.State.Records[k]
	out := cluster.StopReport{Stops: r.Stops, Beyond: r.Beyond, Spent: r.Spent, Conduct: r.Conduct}
	if t, ok := cluster.TypeOf(j); ok {
		if at, ok := slices.BinarySearchFunc(plan.State.Habits, t, func(h cluster.Habit, t cluster.JobType) int { return h.Type.Compare(t) }); ok {
			out.Habit = &plan.State.Habits[at]
		}
	}
	out.Saving = *resolve(set, j, r.Conduct, out.Habit)
	out.Notice = noticeFor(set, &out.Saving)
	out.Begin = stop.Begin(out.Habit, modelOf(j), set.StartCost)
	rule := stop.Rule{Allowance: set.StopAllowance, OverheadMilli: set.StopOverheadMilli}
	if out.Off = rule.Off(); out.Off {
		out.May = true
		return out, true
	}
	for _, p := range plan.State.Ledger.Pools {
		if p.Pool == modelOf(j) && set.StopTotalMilli > 0 && p.Stops <= 0 {
			out.Dear = p.Pool
		}
	}
	job := stop.Job{Saving: &out.Saving, Start: j.Start, Ran: r.Ran, Spent: r.Spent, Saved: r.Saved, Begin: out.Begin}
	if job.Start == 0 { // Slurm starts it, and does not say since when yet
		job.Start, job.Saved = s.Now, 0
	}
	at := s.Now.Add(out.Notice)
	out.Budget, out.Cost = job.Budget(rule, at), job.Cost(at, out.Notice)
	out.Short = out.Saving.Manner == cluster.SavesOnNotice && (out.Notice == 0 || out.Notice < out.Saving.Takes)
	if out.May = job.May(rule, at, out.Notice); out.May {
		out.Until = job.Until(rule, at, out.Notice)
	} else {
		out.From = job.From(rule, at, out.Notice)
	}
	return out, true
}
