package engine

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/answer"
	"github.com/fairlease/fairlease/sidecar/engine/budget"
	"github.com/fairlease/fairlease/sidecar/engine/preset"
	"github.com/fairlease/fairlease/sidecar/engine/profile"
)

// Audit measures how fair the policy's allocation for a snapshot is. A GPU's value to a tenant is the average
// over its jobs. Audit computes many allocations and may take long. False = no policy allocates GPUs there.
func Audit(s cluster.Snapshot) (cluster.Audit, bool) {
	known := s.Allocation
	if !s.Settings.Divides() {
		return cluster.Audit{}, false
	}
	s.Allocation = nil // forces a request, even if it has been answered already
	d := new(Decider)
	x := d.open(&s)
	q := d.due.Request
	if len(q.Bids) == 0 {
		return cluster.Audit{}, false
	}
	if known != nil && known.Policy == q.Policy {
		q.Trades, q.NextTrade = known.Trades, known.NextTrade
	}
	return answer.Audit(q, preset.PolicyOf(q.Policy), s.Now, x.speeds.Book.Misreports()), true
}

// Stake is the party of a job under a policy, and the value of GPUs to the job.
type Stake struct {
	Party    string
	Kind     cluster.Kind
	Speedups []profile.Speedup // by pool
	Trials   []cluster.JobKey  // by pool: the job of the party that runs a trial there; 0 = none
}

// StakeOf returns a job's stake; false = it has none, or no policy applies.
func StakeOf(s cluster.Snapshot, job cluster.JobKey) (Stake, bool) {
	if !s.Settings.Divides() {
		return Stake{}, false
	}
	d := new(Decider)
	x := d.open(&s)
	in := &d.facts
	i := in.Find(job)
	if i < 0 || d.due.Queued[i].Party < 0 {
		return Stake{}, false
	}
	party := d.due.Queued[i].Party
	trials := make([]cluster.JobKey, len(in.Pools))
	for p := range trials {
		if k := x.market.Tried(p); k >= 0 && d.due.Queued[k].Party == party {
			trials[p] = in.Records[k].Key
		}
	}
	return Stake{d.due.Parties[party].Name, x.speeds.Kinds[i], x.speeds.Speedups(i), trials}, true
}

// SpeedupsOf returns the speedups of every job of a snapshot, by case and then pool; nil = a job of no tenant, or no policy divides GPU
// models. Jobs of a type share a list.
func SpeedupsOf(s cluster.Snapshot) [][]profile.Speedup {
	out := make([][]profile.Speedup, len(s.Cases))
	if !s.Settings.Divides() {
		return out
	}
	d := new(Decider)
	x := d.open(&s)
	for i := range out {
		if x.speeds.Kinds[i] != "" {
			out[i] = x.speeds.Speedups(i)
		}
	}
	return out
}

// Divide answers an allocation request; see preset.Divide.
func Divide(q cluster.AllocationRequest) cluster.Allocation { return preset.Divide(q) }

// StopOf returns when a job may be stopped, as of a round; see budget.Report.
func StopOf(s *cluster.Snapshot, plan *cluster.Plan, key cluster.JobKey) (cluster.StopReport, bool) {
	return budget.Report(s, plan, key)
}
