package cluster

import (
	"slices"
	"strings"
)

// OverrideKind is the kind of an administrator's order for a job, a user or a tenant.
type OverrideKind string

// The kinds of override.
const (
	Exempt OverrideKind = "exempt" // never reclaimed, never gated; a waiting job still has its turn
	Boost  OverrideKind = "boost"  // first among its tenant's jobs; a tenant: first among tenants
	Freeze OverrideKind = "freeze" // no new lease, no renewal
)

// Override is an administrator's order. It has an end and a reason.
type Override struct {
	ID     int64        `json:"id"`
	Kind   OverrideKind `json:"kind"`
	Scope  string       `json:"scope"` // "job", "user", "tenant"
	Name   string       `json:"name"`  // job id (an array's: all its tasks), user or tenant
	Until  Instant      `json:"until,omitzero"`
	Reason string       `json:"reason"`
	By     string       `json:"by"`
	// Job, User and Submit tell the job that had the id when the override was given from later jobs with the same id, since
	// Slurm reuses ids: its key (the highest of an array's tasks), its user, and when it was submitted (the earliest of the
	// tasks). Job is 0 in rounds recorded before overrides had them; an override is then for any job with the id.
	Job    JobKey  `json:"job,omitempty"`
	User   string  `json:"user,omitempty"`
	Submit Instant `json:"submit,omitzero"`
}

// means reports whether an override for an id is for the job of a record with that id. Tasks of a large array that fairlease first
// sees after the override was given have a higher key, but were submitted with the others.
func (o *Override) means(r *Record) bool {
	return o.Job == 0 || r.Key <= o.Job || r.User == o.User && r.Submit <= o.Submit
}

// OverrideEnd is the end of an override before its time, since its job has ended.
type OverrideEnd struct {
	ID  int64  `json:"id"`
	Why string `json:"why"`
}

// Overrides finds the overrides of jobs. The zero value has none.
type Overrides struct {
	jobs           []jobOverride // by id, then kind
	users, tenants []*Override   // by name, then kind
}

type jobOverride struct {
	id JobID
	*Override
}

// OverridesOf gives the overrides of a round that are in force at now. They point into all.
func OverridesOf(all []Override, now Instant) (out Overrides) {
	for k := range all {
		o := &all[k]
		if o.Until <= now {
			continue
		}
		switch o.Scope {
		case "job":
			if id, err := ParseJobID(o.Name); err == nil {
				out.jobs = append(out.jobs, jobOverride{id, o})
			}
		case "user":
			out.users = append(out.users, o)
		case "tenant":
			out.tenants = append(out.tenants, o)
		}
	}
	slices.SortStableFunc(out.jobs, func(a, b jobOverride) int {
		if c := a.id.Compare(b.id); c != 0 {
			return c
		}
		return a.rank() - b.rank()
	})
	for _, list := range [][]*Override{out.users, out.tenants} {
		slices.SortStableFunc(list, func(a, b *Override) int {
			if c := strings.Compare(a.Name, b.Name); c != 0 {
				return c
			}
			return a.rank() - b.rank()
		})
	}
	return out
}

// rank orders overrides of the same scope and name: freeze counts before the others.
func (o *Override) rank() int { return slices.Index([]OverrideKind{Freeze, Exempt, Boost}, o.Kind) }

// None reports whether no override is in force.
func (o *Overrides) None() bool { return len(o.jobs)+len(o.users)+len(o.tenants) == 0 }

// Of gives the override that counts for the job of a record, nil if there is none, and whether the job is boosted. The narrowest counts: a
// task's, then its array's, its user's, its tenant's. An exemption and a boost go together, as neither takes back what the other gives: then the
// exemption is given. A freeze does, so that wider overrides count no more.
func (o *Overrides) Of(r *Record) (counts *Override, boosted bool) {
	var f finding
	done := false
	if len(o.jobs) > 0 {
		done = f.ofJob(o.forID(r.ID), r)
		if array := r.ID.Array(); !done && array != r.ID {
			done = f.ofJob(o.forID(array), r)
		}
	}
	if !done && !f.named(o.users, r.User) {
		f.named(o.tenants, r.Tenant)
	}
	switch {
	case f.frozen != nil:
		return f.frozen, false
	case f.exempt != nil:
		return f.exempt, f.boost != nil
	}
	return f.boost, f.boost != nil
}

// finding is the overrides that count for a job; nil = there is none of the kind.
type finding struct{ frozen, exempt, boost *Override }

// add adds an override, narrower ones first. It reports whether it is a freeze, after which no other counts.
func (f *finding) add(o *Override) (freezes bool) {
	switch {
	case o.Kind == Freeze:
		if f.exempt == nil && f.boost == nil {
			f.frozen = o
		}
		return true
	case o.Kind == Exempt && f.exempt == nil:
		f.exempt = o
	case o.Kind == Boost && f.boost == nil:
		f.boost = o
	}
	return false
}

func (f *finding) ofJob(list []jobOverride, r *Record) (freezes bool) {
	for k := range list {
		if list[k].means(r) && f.add(list[k].Override) {
			return true
		}
	}
	return false
}

func (f *finding) named(list []*Override, name string) (freezes bool) {
	at, _ := slices.BinarySearchFunc(list, name, func(o *Override, name string) int { return strings.Compare(o.Name, name) })
	for ; at < len(list) && list[at].Name == name; at++ {
		if f.add(list[at]) {
			return true
		}
	}
	return false
}

// forID gives the overrides for an id, whatever job they mean.
func (o *Overrides) forID(id JobID) []jobOverride {
	from, found := slices.BinarySearchFunc(o.jobs, id, func(x jobOverride, id JobID) int { return x.id.Compare(id) })
	if !found {
		return nil
	}
	to := from
	for to < len(o.jobs) && o.jobs[to].id == id {
		to++
	}
	return o.jobs[from:to]
}

// Parts reports whether a single task of the array of a record has an override of its own.
func (o *Overrides) Parts(r *Record) bool {
	at, _ := slices.BinarySearchFunc(o.jobs, JobID{ID: r.ID.ID, Task: 1}, func(x jobOverride, id JobID) int { return x.id.Compare(id) })
	for ; at < len(o.jobs) && o.jobs[at].id.ID == r.ID.ID; at++ {
		if o.jobs[at].means(r) {
			return true
		}
	}
	return false
}

// Meets calls met for each override for the id of a record, or for its array. means tells whether it is for the record's job, or for another
// job that had the id.
func (o *Overrides) Meets(r *Record, met func(o *Override, means bool)) {
	if len(o.jobs) == 0 {
		return
	}
	for _, x := range o.forID(r.ID) {
		met(x.Override, x.means(r))
	}
	if array := r.ID.Array(); array != r.ID {
		for _, x := range o.forID(array) {
			met(x.Override, x.means(r))
		}
	}
}

// ForJobs reports whether overrides for jobs are in force.
func (o *Overrides) ForJobs() bool { return len(o.jobs) > 0 }
