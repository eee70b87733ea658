package loop

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Under gives a recorded snapshot as its round would have had it under other rules and settings than those of the record, was. unknown
// says in words which rules need more than the record has: these hold as they were.
func Under(s cluster.Snapshot, was, now *Rules, settings cluster.Settings) (out cluster.Snapshot, unknown []string) {
	out = s
	out.Settings, out.Cells, out.Declared = settings, now.Cells, now.Profiles
	out.Preempted, out.Unpreempted, out.Managed, out.Follows, out.NodesVersion = nil, nil, nil, false, 0
	if now.Preemption != PreemptionKnown {
		acting := now.Acting()
		out.Preempted = slices.DeleteFunc(slices.Clone(s.Preempted), func(p cluster.Preempted) bool { return !slices.Contains(acting, p.Partition) })
		out.Unpreempted = slices.DeleteFunc(slices.Clone(s.Unpreempted), func(name string) bool { return !slices.Contains(acting, name) })
	}
	if out.Cells != nil && now.Mode == Act && len(out.Preempted) == 0 {
		out.Managed = now.Partitions
	}
	var accounts []cluster.Account
	if s.Admission != nil {
		accounts = s.Admission.Accounts
	}
	var t *tree
	if len(accounts) > 0 {
		t = growTree(accounts, now.TenantLevel)
	} else if now.TenantLevel != was.TenantLevel {
		unknown = append(unknown, "tenants.level: the round's record has no accounts of Slurm")
	}
	out.Cases = slices.Clone(s.Cases)
	var jobs []cluster.Job
	for i := range out.Cases {
		c := &out.Cases[i]
		c.Was = 0
		if c.Gone || c.Job.State == cluster.Done {
			continue
		}
		if t != nil {
			c.Record.Tenant = t.tenant(c.Job.Account)
			jobs = append(jobs, c.Job)
		}
		now.touch(c, out.Preempted)
	}
	switch {
	case t != nil:
		out.Tenants = t.tenants(jobs, now)
	case len(now.Weights) == 0 && len(was.Weights) > 0:
		unknown = append(unknown, "tenants.weights: the round's record has no shares of Slurm")
		out.Tenants = budgeted(s.Tenants, now)
	default:
		out.Tenants = weighed(budgeted(s.Tenants, now), now)
	}
	return out, unknown
}

func budgeted(tenants []cluster.Tenant, r *Rules) []cluster.Tenant {
	out := slices.Clone(tenants)
	for i := range out {
		out[i].Budget = r.Budgets[out[i].Name]
	}
	return out
}

func weighed(tenants []cluster.Tenant, r *Rules) []cluster.Tenant {
	for i := range tenants {
		if len(r.Weights) > 0 {
			tenants[i].Weight, tenants[i].Under, tenants[i].Above = r.Weights[tenants[i].Name], "", nil
		}
	}
	return tenants
}
