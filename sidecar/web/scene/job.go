package scene

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/show/explain"
	"github.com/fairlease/fairlease/sidecar/store"
)

// Row is a live job: what lists are selected and sorted by. Job makes what is shown of it, with its reason in words.
type Row struct {
	Record *cluster.Record // after the round
	seen   *cluster.Case
	status *cluster.JobStatus // nil = the round did not decide on it
	lease  *cluster.Lease     // nil = it has none
	of     *roster
}

// roster is what the rows of a Scene have in common.
type roster struct {
	facts *Facts
	names names
}

// rowsOf lists the live jobs that a scope shows.
func rowsOf(f *Facts, scope Scope) []Row {
	snap, plan := &f.Snapshot, &f.Plan
	of := &roster{f, namesOf(snap, scope)}
	records := cursor(plan.State.Records, func(r *cluster.Record) cluster.JobKey { return r.Key })
	statuses := cursor(plan.Statuses, func(v *cluster.JobStatus) cluster.JobKey { return v.Job })
	leases := cursor(plan.State.Leases, func(l *cluster.Lease) cluster.JobKey { return l.Job })
	out := make([]Row, 0, len(snap.Cases))
	for i := range snap.Cases {
		c := &snap.Cases[i]
		if c.Gone || c.Job.State == cluster.Done || c.Job.Request.Size.Devices == 0 && c.Job.GPUsHeld() == 0 || !scope.Sees(c.Record.Tenant) {
			continue
		}
		key := c.Record.Key
		out = append(out, Row{cmp.Or(records(key), &c.Record), c, statuses(key), leases(key), of})
	}
	return out
}

// cursor gives a function that finds by key in a list that is sorted by key. It must be asked for rising keys; nil = the list has none.
func cursor[T any](list []T, of func(*T) cluster.JobKey) func(key cluster.JobKey) *T {
	return func(key cluster.JobKey) *T {
		for len(list) > 0 && of(&list[0]) < key {
			list = list[1:]
		}
		if len(list) > 0 && of(&list[0]) == key {
			return &list[0]
		}
		return nil
	}
}

// GPUs gives how many a job wants or holds.
func (r *Row) GPUs() cluster.GPUCount { return r.seen.Job.Count() }

// Inactive says why a job cannot start; "" = it can.
func (r *Row) Inactive() string { return r.seen.Job.Inactive }

// Rho gives a job's finish-time fairness.
func (r *Row) Rho() cluster.Rho {
	if r.status == nil {
		return 0
	}
	return r.status.Rho
}

// Code gives that of a job's reason; "" = the round did not decide on it.
func (r *Row) Code() cluster.Code {
	if r.status == nil {
		return ""
	}
	return r.status.Reason.Code
}

// has tells whether an order is for a job.
func (r *Row) has(o *store.Override) bool {
	j := jobOf(r.seen, r.Record, r.of.facts.Plan.At)
	return o.For(&j)
}

// Job makes what is shown of a job.
func (r *Row) Job() *Job {
	c := r.seen
	j := &Job{Job: jobOf(c, r.Record, r.of.facts.Plan.At), Says: c.Job.PendingReason, Ahead: r.of.facts.ahead(r.Record.Key, c.Job.State)}
	if j.Says == "None" {
		j.Says = ""
	}
	for _, h := range c.Job.Holds {
		j.Nodes = append(j.Nodes, h.Node)
	}
	slices.Sort(j.Nodes)
	j.Nodes = slices.Compact(j.Nodes)
	if l := r.lease; l != nil {
		j.Class, j.Ends = string(l.Class), moment(l.End)
	}
	if v := r.status; v != nil {
		why := r.of.names.only(v.Reason)
		j.Rho, j.Code, j.Until, j.Why = v.Rho, why.Code, moment(why.Until), &why
		j.Reason = explain.Words{Job: r.of.names.name}.Reason(why)
	}
	return j
}

// jobOf gives the journal's data of a job as the round at a moment has it.
func jobOf(c *cluster.Case, r *cluster.Record, at cluster.Instant) store.Job {
	j := &c.Job
	due, _ := cluster.DueBy(r, at)
	out := store.Job{Key: r.Key, SlurmID: r.ID.String(), Name: r.Name, User: r.User, Account: r.Account, Tenant: r.Tenant, QOS: j.QOS,
		Partitions: j.Partitions, State: string(r.State), Inactive: j.Inactive, Outcome: j.Outcome, Control: string(c.Control), ControlWhy: c.ControlWhy,
		GPUs: j.Count(), Model: j.Request.Model, Limit: j.Limit, Submitted: moment(r.Submit), Eligible: moment(r.First), Done: moment(r.Done),
		Restarts: r.Restarts, Terms: r.Terms, Failed: r.Failed, Avoid: moment(r.AvoidUntil), Said: r.SlurmSaid, Alloc: r.Alloc, Due: due, Lost: r.Lost}
	out.Work, out.WorkDue = r.Work(at)
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
