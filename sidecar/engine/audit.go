package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// Audit tells how fair it is what the policy answers at a snapshot: by what GPUs are worth to
// tenants, which is what they are worth to their jobs on average. It divides many times over and
// may take long. False = nothing is divided there.
func Audit(s cluster.Snapshot) (cluster.Audit, bool) {
	known := s.Allocation
	if s.Settings.Divide == "" {
		return cluster.Audit{}, false
	}
	s.Allocation = nil // so that the question is asked, though it may be answered already
	x := new(Decider).open(&s)
	q := x.question
	if len(q.Bids) == 0 {
		return cluster.Audit{}, false
	}
	if known != nil && known.Policy == q.Policy {
		q.Trades, q.NextTrade = known.Trades, known.NextTrade
	}
	return answer.Audit(q, preset.PolicyOf(q.Policy), s.Now, x.speeds.Book.Misreports()), true
}

// Stake is whom a policy divides GPUs between that a job is of, and what GPUs are worth to it.
type Stake struct {
	Party    string
	Kind     cluster.Kind
	Speedups []profile.Speedup // by pool
	Trials   []cluster.JobKey  // by pool: the job of the party that is to show how fast its kind is there; 0 = none
}

// StakeOf gives a job's; false = it has none, or nothing is divided.
func StakeOf(s cluster.Snapshot, job cluster.JobKey) (Stake, bool) {
	if s.Settings.Divide == "" {
		return Stake{}, false
	}
	d := new(Decider)
	x := d.open(&s)
	h := &d.books
	i := h.Find(job)
	if i < 0 || h.Jobs[i].Party < 0 {
		return Stake{}, false
	}
	st := &h.Jobs[i]
	trials := make([]cluster.JobKey, len(h.Pools))
	for p := range trials {
		if k := x.market.Tried(p); k >= 0 && h.Jobs[k].Party == st.Party {
			trials[p] = h.Records[k].Key
		}
	}
	return Stake{h.Parties[st.Party].Name, x.speeds.Kinds[i], x.speeds.Speedups(i), trials}, true
}

// Divide answers a question; see preset.Divide.
func Divide(q cluster.AllocationRequest) cluster.Allocation { return preset.Divide(q) }

// StopOf gives when a job may be stopped, as of a round; see budget.Report.
func StopOf(s *cluster.Snapshot, plan *cluster.Plan, key cluster.JobKey) (cluster.StopReport, bool) {
	return budget.Report(s, plan, key)
}
