// Package effect says what a round would decide otherwise under other settings. It decides the snapshot of a recorded round twice, with
// the settings in force and with others, and compares the plans: nothing is written or changed.
package effect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
)

// Setup is what a configuration gives a round.
type Setup struct {
	Rules    loop.Rules
	Settings cluster.Settings
}

// Effect is the difference between two plans for one round.
type Effect struct {
	Round int64           `json:"round"`
	At    cluster.Instant `json:"at_ms,omitzero"`
	// Recorded is true if neither plan is carried out, as in mode observe: then decisions are compared that are only recorded.
	Recorded bool `json:"only_recorded,omitempty"`
	GPUs     int  `json:"gpus"` // of the cluster
	// Ends are jobs whose leases end under the new settings only, Kept under the old ones only.
	Ends []Job `json:"ends,omitempty"`
	Kept []Job `json:"kept,omitempty"`
	// Starts are jobs that are granted a lease under the new settings only, Waits under the old ones only.
	Starts []Job `json:"starts,omitempty"`
	Waits  []Job `json:"waits,omitempty"`
	// Left are jobs that are left alone under the new settings only, Managed under the old ones only.
	Left    []Job `json:"left_alone,omitempty"`
	Managed []Job `json:"managed,omitempty"`
	// Tenants are those whose weight, entitlement or debt differs, by name and pool.
	Tenants []Tenant `json:"tenants,omitempty"`
	// Ended is the GPUs of Ends, or those that fewer leases hold after the round, whichever are more. So a round in which all leases end in any
	// case shows, too, that no others follow. Moved the GPUs of entitlements that tenants gain or lose, whichever
	// are more.
	Ended cluster.GPUCount `json:"ended_gpus"`
	Moved cluster.MicroGPU `json:"moved_micro_gpus"`
	// Unknown says which changes the record does not tell the effect of.
	Unknown []string `json:"unknown,omitempty"`
}

// Job is a job whose lease is decided otherwise.
type Job struct {
	Job    string           `json:"job"`
	User   string           `json:"user"`
	Tenant string           `json:"tenant"`
	GPUs   cluster.GPUCount `json:"gpus"`
	How    string           `json:"how,omitempty"` // of an end: stopped, noticed or no longer leased; of a job that is left alone: why
}

// Tenant is a tenant in a pool under the old and the new settings.
type Tenant struct {
	Tenant string   `json:"tenant"`
	Pool   string   `json:"pool"`
	Was    Standing `json:"was"`
	Now    Standing `json:"now"`
}

// Standing is what a tenant is due of a pool.
type Standing struct {
	Share       int64            `json:"share_millionths"` // by weight, of all tenants of the pool
	Entitlement cluster.MicroGPU `json:"entitlement_micro_gpus"`
	Owed        cluster.GPUTime  `json:"owed_gpu_ms"`
}

type (
	// Decide is the engine.
	Decide func(cluster.Snapshot) cluster.Plan
	// Divide is its policy.
	Divide func(cluster.AllocationRequest) cluster.Allocation
)

// Of decides a recorded snapshot under two setups and compares the plans.
func Of(s *cluster.Snapshot, was, now *Setup, decide Decide, divide Divide) *Effect {
	before, _ := loop.Under(*s, &was.Rules, &was.Rules, was.Settings)
	after, unknown := loop.Under(*s, &was.Rules, &now.Rules, now.Settings)
	e := compare(&before, &after, Decided(&before, decide, divide), Decided(&after, decide, divide))
	e.Unknown = unknown
	return e
}

// Decided decides a snapshot. If that asks the policy, it is decided once more with the answer, which the snapshot then has.
func Decided(s *cluster.Snapshot, decide Decide, divide Divide) cluster.Plan {
	plan := decide(*s)
	if q := plan.AllocationRequest; q != nil && divide != nil {
		answer := divide(*q)
		answer.At = q.At
		s.Allocation = &answer
		plan = decide(*s)
	}
	return plan
}

// Percent is the part of the cluster's GPUs whose leases end or whose entitlement moves, whichever is larger.
func (e *Effect) Percent() float64 {
	if e.GPUs == 0 {
		return 0
	}
	return 100 * max(float64(e.Ended), float64(e.Moved)) / float64(cluster.WholeGPU) / float64(e.GPUs)
}

// None tells whether the plans decide alike.
func (e *Effect) None() bool {
	return len(e.Ends)+len(e.Kept)+len(e.Starts)+len(e.Waits)+len(e.Left)+len(e.Managed)+len(e.Tenants) == 0
}

// String says in a line what the new settings would do.
func (e *Effect) String() string {
	if e.None() {
		return "the next round would decide as it does now"
	}
	var parts []string
	for _, x := range []struct {
		list []Job
		what string
	}{{e.Ends, "end the leases of"}, {e.Kept, "keep the leases of"}, {e.Starts, "start"}, {e.Waits, "not start"}, {e.Left, "leave alone"}, {e.Managed, "manage"}} {
		if len(x.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s %d jobs on %s GPUs", x.what, len(x.list), gpus(x.list)))
		}
	}
	if e.Moved > 0 {
		parts = append(parts, fmt.Sprintf("move the entitlement to %.1f GPUs", float64(e.Moved)/float64(cluster.WholeGPU)))
	}
	if len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("change weights or debts of %d tenants", len(e.Tenants)))
	}
	text := "the next round would " + strings.Join(parts, ", ")
	if e.Recorded {
		text += " (only recorded: neither configuration acts)"
	}
	return text
}

func gpus(list []Job) (n cluster.GPUCount) {
	for _, j := range list {
		n += j.GPUs
	}
	return n
}

// decisions are the jobs whose leases end, with how, and those that are granted one.
type decisions struct {
	ends, grants map[cluster.JobKey]string
}

func decisionsOf(s *cluster.Snapshot, p *cluster.Plan, all bool) decisions {
	d := decisions{map[cluster.JobKey]string{}, map[cluster.JobKey]string{}}
	leased := map[cluster.JobKey]bool{}
	for i := range p.State.Leases {
		leased[p.State.Leases[i].Job] = true
	}
	for i := range s.Leases {
		if l := &s.Leases[i]; !leased[l.Job] {
			d.ends[l.Job] = "no longer leased"
		}
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Suppressed && !all {
			continue
		}
		switch a.Verb {
		case cluster.Notify:
			d.ends[a.Job] = "noticed"
		case cluster.Reclaim, cluster.RevokeGrant:
			d.ends[a.Job] = "stopped"
		case cluster.Grant:
			d.grants[a.Job] = ""
		}
	}
	return d
}

func acts(p *cluster.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a cluster.Action) bool { return !a.Suppressed })
}

func compare(before, after *cluster.Snapshot, old, now cluster.Plan) *Effect {
	e := &Effect{Round: before.Round, At: before.Now, Recorded: !acts(&old) && !acts(&now) && len(old.Actions)+len(now.Actions) > 0}
	for i := range before.Nodes {
		for _, g := range before.Nodes[i].GPUs {
			e.GPUs += g.Count
		}
	}
	a, b := decisionsOf(before, &old, e.Recorded), decisionsOf(after, &now, e.Recorded)
	for i := range before.Cases {
		was, is := &before.Cases[i], &after.Cases[i]
		key := was.Record.Key
		add := func(to *[]Job, in, notIn map[cluster.JobKey]string) {
			how, ok := in[key]
			if _, both := notIn[key]; !ok || both {
				return
			}
			*to = append(*to, Job{Job: was.Record.ID.String(), User: was.Record.User, Tenant: was.Record.Tenant, GPUs: max(cluster.CountHeld(was.Job.Holds), was.Job.Request.Size.Count()), How: how})
		}
		add(&e.Ends, b.ends, a.ends)
		add(&e.Kept, a.ends, b.ends)
		add(&e.Starts, b.grants, a.grants)
		add(&e.Waits, a.grants, b.grants)
		left := map[cluster.JobKey]string{key: is.ControlWhy}
		switch {
		case was.Gone || was.Control == is.Control:
		case is.Control == cluster.Unmanaged:
			add(&e.Left, left, nil)
		case was.Control == cluster.Unmanaged:
			add(&e.Managed, map[cluster.JobKey]string{key: ""}, nil)
		}
	}
	e.Ended = max(gpus(e.Ends), leased(&old)-leased(&now))
	e.tenants(old.Tenants, now.Tenants)
	return e
}

// leased is the GPUs of leases that hold after a plan.
func leased(p *cluster.Plan) (n cluster.GPUCount) {
	for i := range p.State.Leases {
		if l := &p.State.Leases[i]; l.State != cluster.Ending && l.State != cluster.Over {
			n += cluster.CountHeld(l.Nodes) // in devices, as jobs are counted
		}
	}
	return n
}

// tenants compares the standings of tenants.
func (e *Effect) tenants(old, now []cluster.TenantStatus) {
	of := map[[2]string]*Tenant{}
	put := func(list []cluster.TenantStatus, into func(*Tenant) *Standing) {
		sums := map[string]int64{}
		for i := range list {
			sums[list[i].Pool] += list[i].Weight
		}
		for i := range list {
			t := &list[i]
			name := [2]string{t.Tenant, t.Pool}
			if of[name] == nil {
				of[name] = &Tenant{Tenant: t.Tenant, Pool: t.Pool}
			}
			*into(of[name]) = Standing{cluster.MulDiv(t.Weight, 1_000_000, max(sums[t.Pool], 1)), t.Entitlement, t.Owed}
		}
	}
	put(old, func(t *Tenant) *Standing { return &t.Was })
	put(now, func(t *Tenant) *Standing { return &t.Now })
	var more, less cluster.MicroGPU
	for _, t := range of {
		if t.Was != t.Now {
			e.Tenants = append(e.Tenants, *t)
			more, less = more+max(t.Now.Entitlement-t.Was.Entitlement, 0), less+max(t.Was.Entitlement-t.Now.Entitlement, 0)
		}
	}
	e.Moved = max(more, less)
	slices.SortFunc(e.Tenants, func(a, b Tenant) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Pool, b.Pool))
	})
}
