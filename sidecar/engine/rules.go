package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/admit"
)

// Rules answers what Slurm's own rules say of a job: access lists, limits and licences, with what is in use in a round. nil has no
// rules. It is not safe for concurrent use.
type Rules struct{ book *admit.Book }

// Need is what a job uses of a limit; see admit.Need.
type Need = admit.Need

// RulesOf returns the rules of a snapshot as Decide applies them before it chooses; nil = there are none.
func RulesOf(s cluster.Snapshot) *Rules {
	if s.Admission.Empty() {
		return nil
	}
	d := new(Decider)
	d.look(&s)
	return &Rules{d.nodes.Rules()}
}

// Needs returns what a job uses of the limits on GPUs and jobs in use, and the rule that keeps it from starting also when others
// end, in words; see admit.Needs.
func (r *Rules) Needs(j *cluster.Job) ([]Need, string) {
	if r == nil {
		return nil, ""
	}
	return admit.Needs(r.book, j)
}

// InUse returns what running jobs use of the limits, by Need.Limit. Ask for the needs of all jobs before.
func (r *Rules) InUse() []int64 {
	if r == nil {
		return nil
	}
	return admit.InUse(r.book)
}
