package scene

import (
	"context"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Explain explains a job: a live one from the Scene, one that has ended from the past. Of a live job there is an explanation even if the
// past does not answer; err then says why its leases and actions are missing. Without an explanation it is ErrNone, or says why the past
// does not answer.
func (s *Scene) Explain(ctx context.Context, past PastJobs, id cluster.JobID) (*view.Explanation, error) {
	r := s.row(id)
	if r == nil {
		x, err := past.Job(ctx, s.scope, id)
		if err != nil {
			return nil, err
		}
		return s.only(view.Explain(x)), nil
	}
	x := s.explanation(r)
	told, err := past.Told(ctx, &x.Job)
	if err != nil {
		err = fmt.Errorf("the leases and actions of job %s: %w", id, err)
	}
	x.Leases, x.Actions, x.Remarks, x.Forecast = told.Leases, told.Actions, told.Remarks, told.Forecast
	if x.Leases == nil {
		x.Leases = []store.Lease{}
	}
	if x.Actions == nil {
		x.Actions = []store.Action{}
	}
	return s.only(view.Explain(x)), err
}

// explanation gives what the round tells of a live job.
func (s *Scene) explanation(r *Row) store.Explanation {
	snap, plan, j := &s.facts.Snapshot, &s.facts.Plan, r.Job()
	x := store.Explanation{Job: j.Job, Round: s.Round, At: plan.At, NumbersAt: plan.At, Record: cluster.AsOf(r.Record, plan.At), Lease: r.lease, Status: r.status, SlurmSays: j.Says, Overrides: []store.Override{}}
	for i := range plan.State.Claims {
		if plan.State.Claims[i].Job == j.Key {
			x.Claim = &plan.State.Claims[i]
		}
	}
	for i := range plan.Tenants {
		if plan.Tenants[i].Tenant == j.Tenant {
			x.Standing = append(x.Standing, plan.Tenants[i])
		}
	}
	if i := slices.IndexFunc(s.facts.Effective, func(e store.Effective) bool { return e.Tenant == j.Tenant }); i >= 0 && j.Tenant != "" {
		x.Effective = &s.facts.Effective[i]
	}
	for _, o := range s.facts.Overrides {
		if o.For(&j.Job) {
			x.Overrides = append(x.Overrides, o)
		}
	}
	for i := range s.facts.GPUs {
		if g := &s.facts.GPUs[i]; g.Key != nil && *g.Key == j.Key {
			x.GPUs = append(x.GPUs, *g)
		}
	}
	x.Newest = store.Edge{Snapshot: *snap, Plan: *plan}
	if !snap.Settings.Divides() { // then only the jobs in the reason are needed: a large site has thousands of others
		all := names{snap, Scope{All: true}}
		x.Newest.Snapshot.Cases = nil
		keys := []cluster.JobKey{j.Key}
		if x.Status != nil {
			keys = append(keys, x.Status.Reason.For, x.Status.Reason.OtherJob)
		}
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			if c := all.find(key); c != nil {
				x.Newest.Snapshot.Cases = append(x.Newest.Snapshot.Cases, *c)
			}
		}
	}
	return x
}

// only takes out of an explanation what the scope does not show: other jobs, and the types of jobs of other tenants.
func (s *Scene) only(x *view.Explanation) *view.Explanation {
	n := namesOf(&s.facts.Snapshot, s.scope)
	if x.Status != nil {
		status := *x.Status
		status.Reason = n.only(status.Reason)
		x.Status = &status
		x.For = ""
		if status.Reason.For != 0 {
			x.For = n.name(status.Reason.For)
		}
		x.Words = explain.Words{Job: n.name}.Reason(status.Reason)
	}
	if s.scope.All || x.Models == nil {
		return x
	}
	for i := range x.Models.Models {
		m := &x.Models.Models[i]
		if id, err := cluster.ParseJobID(m.Trial); err == nil && s.Job(id) == nil {
			m.Trial = ""
		}
	}
	x.Models.Trades, x.Models.CellTrades = slices.Clone(x.Models.Trades), cellTradesFor(x.Models.CellTrades, s.scope.Sees)
	for i := range x.Models.Trades {
		tradeFor(&x.Models.Trades[i], s.scope.Sees)
	}
	return x
}

// Context is what the text of an explanation needs besides the explanation.
type Context struct {
	Settings cluster.Settings          `json:"settings"` // the few that the text needs
	Names    map[cluster.JobKey]string `json:"names"`    // of the jobs in the reason
}

// ContextOf gives the context of an explanation.
func (s *Scene) ContextOf(x *view.Explanation) Context {
	set := &s.facts.Snapshot.Settings
	c := Context{Names: map[cluster.JobKey]string{}, Settings: cluster.Settings{Preset: set.Preset, Interval: set.Interval, Term: set.Term, Divide: set.Divide, StopAllowance: set.StopAllowance,
		StopOverheadMilli: set.StopOverheadMilli, Schedule: set.Schedule, Tuned: set.Tuned}}
	if x.Status != nil {
		n := namesOf(&s.facts.Snapshot, s.scope)
		for _, key := range []cluster.JobKey{x.Job.Key, x.Status.Reason.For, x.Status.Reason.OtherJob} {
			if name := n.name(key); key != 0 && name != "" {
				c.Names[key] = name
			}
		}
	}
	return c
}

// Restore gives an explanation that was sent as JSON the round that its text needs.
func (c Context) Restore(x *view.Explanation) {
	x.Newest.Snapshot.Settings, x.Newest.Snapshot.Now, x.Newest.Snapshot.Round = c.Settings, x.At, x.Round
	x.Newest.Plan.At, x.Newest.Plan.Round = x.At, x.Round
	for key, name := range c.Names {
		id, err := cluster.ParseJobID(name)
		if err == nil {
			x.Newest.Snapshot.Cases = append(x.Newest.Snapshot.Cases, cluster.Case{Gone: true, Record: cluster.Record{Key: key, ID: id}})
		}
	}
}
