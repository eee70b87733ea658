package forecast

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Never is how the reason begins for which a job has no forecast, if it cannot start before Slurm's rules let it.
const Never = "not before "

// notBefore says what must change before a job starts that one of Slurm's rules forbids. rule is the rule in words, as the engine
// has it.
func notBefore(rule string) string {
	core, _, _ := strings.Cut(rule, "; an administrator can change it")
	until := "Slurm's rules let it"
	if of, _, full := strings.Cut(core, " is at "); full {
		until = "jobs of " + of + " end, or its limit changes"
	} else if of, _, has := strings.Cut(core, " has "); has && strings.HasPrefix(of, "partition ") {
		until = "the rules of " + of + " change"
	} else if has {
		until = "the limit of " + of + " changes"
	}
	return Never + until + ": " + rule
}

// Admit lets the engine tell whether Slurm's rules let a job start that is in the snapshot of a question and not in its plan. If
// they do not, it returns the question with a plan that says so.
func Admit(q *Question, key cluster.JobKey) *Question {
	if q.Snapshot.Admission.Empty() {
		return q
	}
	plan := engine.Decide(*q.Snapshot)
	at := slices.IndexFunc(plan.Statuses, func(s cluster.JobStatus) bool { return s.Job == key && s.Reason.Code == cluster.ReasonRule })
	if at < 0 {
		return q
	}
	out, with := *q, *q.Plan
	with.Statuses = append(slices.Clone(with.Statuses), plan.Statuses[at])
	out.Plan = &with
	return &out
}
