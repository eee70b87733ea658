package scene

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// jobsOf lists the live jobs that a scope shows, with their reasons.
func jobsOf(f *Facts, scope Scope) []Job {
	snap, plan := &f.Snapshot, &f.Plan
	statuses := make(map[cluster.JobKey]*cluster.JobStatus, len(plan.Statuses))
	for i := range plan.Statuses {
		statuses[plan.Statuses[i].Job] = &plan.Statuses[i]
	}
	leases := leasesOf(plan)
	names := namesOf(snap, scope)
	words := explain.Words{Job: names.name}
	out := []Job{}
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Gone || c.Job.State == cluster.Done || c.Job.Request.GPUs == 0 && c.Job.GPUsHeld() == 0 || !scope.Sees(c.Record.Tenant) {
			continue
		}
		j := Job{Job: jobOf(c, record(plan, c.Record.Key)), Says: c.Job.PendingReason, Ahead: f.ahead(c.Record.Key, c.Job.State)}
		if j.Says == "None" {
			j.Says = ""
		}
		for _, h := range c.Job.Holds {
			j.Nodes = append(j.Nodes, h.Node)
		}
		slices.Sort(j.Nodes)
		j.Nodes = slices.Compact(j.Nodes)
		if l := leases[j.Key]; l != nil {
			j.Class, j.Ends = string(l.Class), moment(l.End)
		}
		if v := statuses[j.Key]; v != nil {
			why := names.only(v.Reason)
			j.Rho, j.Code, j.Until, j.Why = v.Rho, why.Code, moment(why.Until), &why
			j.Reason = words.Reason(why)
		}
		out = append(out, j)
	}
	return out
}

// jobOf gives the journal's data of a job as the round has it.
func jobOf(c *cluster.Case, r *cluster.Record) store.Job {
	if r == nil {
		r = &c.Record
	}
	j := &c.Job
	out := store.Job{Key: r.Key, SlurmID: r.ID.String(), Name: r.Name, User: r.User, Account: r.Account, Tenant: r.Tenant, QOS: j.QOS,
		Partitions: j.Partitions, State: string(r.State), Inactive: j.Inactive, Outcome: j.Outcome, Touch: string(c.Control), TouchWhy: c.ControlWhy,
		GPUs: cmp.Or(j.Request.GPUs, j.GPUsHeld()), Model: j.Request.Model, Limit: j.Limit, Submitted: moment(r.Submit), Eligible: moment(r.First), Done: moment(r.Done),
		Restarts: r.Restarts, Terms: r.Terms, Failed: r.Failed, Avoid: moment(r.AvoidUntil), Said: r.SlurmSaid, Alloc: r.Alloc, Due: r.Due, Lost: r.Lost}
	out.Work, out.WorkDue = r.Work()
	if x := r.Others; x != nil {
		out.Others, out.OthersAt, out.OthersCause, out.OthersNode = &x.Count, moment(x.At), &x.Cause, &x.Node
	}
	out.TellRequeue()
	if out.Partitions == nil {
		out.Partitions = []string{}
	}
	return out
}

// names gives the ids of jobs as a person may know them.
type names struct {
	snap  *cluster.Snapshot
	scope Scope
}

func namesOf(snap *cluster.Snapshot, scope Scope) names { return names{snap, scope} }

// find gives a job's case; nil = the round has none, or the person may not see it.
func (n names) find(key cluster.JobKey) *cluster.Case {
	i, ok := slices.BinarySearchFunc(n.snap.Cases, key, func(c cluster.Case, key cluster.JobKey) int { return cmp.Compare(c.Record.Key, key) })
	var c *cluster.Case
	if ok {
		c = &n.snap.Cases[i]
	} else if k := slices.IndexFunc(n.snap.Former, func(r cluster.Record) bool { return r.Key == key }); k >= 0 {
		c = &cluster.Case{Gone: true, Record: n.snap.Former[k]}
	}
	if c == nil || !n.scope.Sees(c.Record.Tenant) {
		return nil
	}
	return c
}

func (n names) name(key cluster.JobKey) string {
	if c := n.find(key); c != nil {
		return c.Record.ID.String()
	}
	return ""
}

// only gives a reason without jobs that the person may not see, and without what promises to others have to do with it.
func (n names) only(r cluster.Reason) cluster.Reason {
	if n.scope.All {
		return r
	}
	for _, key := range []*cluster.JobKey{&r.For, &r.OtherJob} {
		if *key != 0 && n.find(*key) == nil {
			*key = explain.Hidden
		}
	}
	if r.Code == cluster.ReasonUnsafe {
		r.Note = ""
	}
	return r
}
