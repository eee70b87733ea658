package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/show/view"
	"github.com/fairlease/fairlease/sidecar/slurm"
)

// endless is how far ahead a reservation's end counts as none: Slurm makes an infinite one end after a year.
const endless = 90 * cluster.Day

// barren says by which of its settings nothing will ever be leased in a managed partition with GPUs, and what to do; "" = jobs can be leased.
func barren(cfg *config.Config, facts *slurm.Facts, seen *cluster.Observation, p *cluster.Partition) (found, do string) {
	r, set := &p.Rules, "scontrol update PartitionName="+p.Name+" "
	rules := cfg.Rules()
	switch {
	case r.Closed == "DOWN" || r.Closed == "INACTIVE":
		return r.ClosedBy(), set + "State=UP"
	case r.Closed != "":
		name, _, _ := strings.Cut(r.Closed, "=")
		return r.Closed, set + name + "=UNLIMITED"
	case !p.Up:
		return "State=DRAIN: Slurm takes no new jobs for it", set + "State=UP"
	case p.RootOnly:
		return "RootOnly=YES: only root may submit jobs to it", set + "RootOnly=NO"
	case r.NamedOnly:
		return "ReqResv=YES: its jobs name a reservation, and fairlease leaves those alone", set + "ReqResv=NO, or take the partition out of partitions in the configuration"
	}
	if limit := bars(facts, seen, r.QOS); limit.Rule != "" {
		unlimited := limit
		unlimited.Max = -1
		return "its QOS " + r.QOS + " lets no job start: " + limit.String(), "sacctmgr modify qos " + r.QOS + " set " + unlimited.String() + ", or change the QOS of the partition"
	}
	switch {
	case !admitsAccounts(seen.Accounts, &cluster.Rules{}, &rules):
		return "exclude.accounts has the accounts of all tenants", "take those out of exclude.accounts in the configuration whose jobs are to be leased GPUs"
	case !admitsQOS(facts.QOS, &cluster.Rules{}, &rules):
		return "qos and exclude.qos leave no QOS that Slurm has", "correct qos and exclude.qos in the configuration (sacctmgr show qos)"
	case !admitsAccounts(seen.Accounts, r, &rules):
		if len(r.AllowAccounts) > 0 {
			return "AllowAccounts=" + strings.Join(r.AllowAccounts, ",") + " has no account of a tenant", set + "AllowAccounts=ALL, or name accounts that Slurm has (sacctmgr show account) and that exclude.accounts does not have"
		}
		return "DenyAccounts=" + strings.Join(r.DenyAccounts, ",") + " has the accounts of all tenants", set + "DenyAccounts="
	case !admitsQOS(facts.QOS, r, &rules):
		if len(r.AllowQOS) > 0 {
			return "AllowQos=" + strings.Join(r.AllowQOS, ",") + " has no QOS that Slurm has and fairlease manages", set + "AllowQos=ALL, or name others (sacctmgr show qos), or correct qos and exclude.qos in the configuration"
		}
		return "DenyQos=" + strings.Join(r.DenyQOS, ",") + " has all QOS that Slurm has and fairlease manages", set + "DenyQos="
	}
	return unusableNodes(seen, p)
}

// bars gives a limit of a partition's QOS by which no job with GPUs starts there; the zero value = none. A QOS of jobs may come before it
// with a limit of its own (OverPartQOS).
func bars(facts *slurm.Facts, seen *cluster.Observation, name string) cluster.Cap {
	if name == "" || !slurm.EnforcesLimits(facts.Conf) {
		return cluster.Cap{}
	}
	if rule := facts.NoSubmit[name]; rule != "" {
		return cluster.Cap{Rule: rule}
	}
	all := seen.Limits.QOS
	for _, c := range zeros(all, name) {
		switch c.TRES {
		case "", "cpu", "node", "gres/gpu":
			if !lifted(all, c) {
				return c
			}
		}
	}
	return cluster.Cap{}
}

// lifted tells whether a QOS of jobs has a limit of its own that comes before that of a partition's QOS.
func lifted(all []cluster.QOS, limit cluster.Cap) bool {
	return slices.ContainsFunc(all, func(q cluster.QOS) bool {
		return slices.Contains(q.Flags, cluster.OverPartQOS) && slices.ContainsFunc(q.Caps, func(c cluster.Cap) bool {
			return c.Rule == limit.Rule && c.TRES == limit.TRES && c.Max > 0
		})
	})
}

// zeros gives the limits of 0 that a QOS has on running jobs and their resources.
func zeros(all []cluster.QOS, name string) []cluster.Cap {
	var out []cluster.Cap
	for i := range all {
		for _, c := range all[i].Caps {
			switch c.Rule {
			case cluster.GrpJobs, cluster.MaxJobsPerUser, cluster.MaxJobsPerAccount, cluster.GrpTRES, cluster.MaxTRESPerUser, cluster.MaxTRESPerAccount,
				cluster.MaxTRESPerJob, cluster.MaxTRESPerNode:
				if all[i].Name == name && c.Max == 0 {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// typedOut gives the limits of a partition's QOS by which no job may name any model of the partition's GPUs; "" = one may.
func typedOut(facts *slurm.Facts, seen *cluster.Observation, p *cluster.Partition) string {
	if p.Rules.QOS == "" || !slurm.EnforcesLimits(facts.Conf) {
		return ""
	}
	var limits []string
	none := zeros(seen.Limits.QOS, p.Rules.QOS)
	for i := range seen.Nodes {
		if !slices.Contains(seen.Nodes[i].Partitions, p.Name) {
			continue
		}
		for _, g := range seen.Nodes[i].GPUs {
			at := slices.IndexFunc(none, func(c cluster.Cap) bool { return c.TRES == "gres/gpu:"+g.Model && !lifted(seen.Limits.QOS, c) })
			if at < 0 {
				return ""
			}
			if limit := none[at].String(); !slices.Contains(limits, limit) {
				limits = append(limits, limit)
			}
		}
	}
	return strings.Join(limits, ", ")
}

// unusableNodes says why no node with GPUs of a partition can ever be granted, and what to do; "" = one can.
func unusableNodes(seen *cluster.Observation, p *cluster.Partition) (found, do string) {
	var names, bad []string
	for i := range seen.Nodes {
		if n := &seen.Nodes[i]; slices.Contains(n.Partitions, p.Name) {
			if names = append(names, n.Name); n.Bad != "" {
				bad = append(bad, n.Name+" ("+n.Bad+")")
			}
		}
	}
	if len(bad) == len(names) {
		return "all its nodes with GPUs are bad: " + view.Some(bad, 3), "see why (sinfo -R) and mend them, then scontrol update NodeName=NODE State=RESUME"
	}
	if p.Rules.MinNodes > len(names) {
		return fmt.Sprintf("MinNodes=%d, and only %d of its nodes have GPUs", p.Rules.MinNodes, len(names)), "scontrol update PartitionName=" + p.Name + " MinNodes=1"
	}
	kept, by := map[string]bool{}, []string{}
	for i := range seen.Reservations {
		v := &seen.Reservations[i]
		if v.Ours || v.Start > seen.Now || v.End.Sub(seen.Now) < endless || len(v.Parts) > 0 || !keepsOut(v) {
			continue
		}
		n := len(kept)
		for _, name := range v.Nodes {
			if slices.Contains(names, name) {
				kept[name] = true
			}
		}
		if len(kept) > n {
			by = append(by, v.Name)
		}
	}
	if len(kept) == len(names) {
		return "all its nodes with GPUs are kept for maintenance or for root for longer than 90 days, by reservation " + view.Some(by, 3), "end them (scontrol delete ReservationName=NAME), or take the partition out of partitions in the configuration"
	}
	return "", ""
}

// keepsOut tells whether no tenant's job may run in a reservation: it is for maintenance, or for root.
func keepsOut(v *cluster.Reservation) bool {
	return slices.Contains(v.Flags, "MAINT") || len(v.Accounts) == 0 && slices.Equal(v.Users, []string{"root"})
}

// admitsAccounts tells whether a partition lets in an account of a tenant.
func admitsAccounts(accounts []cluster.Account, r *cluster.Rules, rules *loop.Rules) bool {
	if len(r.AllowAccounts)+len(r.DenyAccounts)+len(rules.ExcludeAccounts) == 0 || len(accounts) == 0 {
		return true
	}
	parent := make(map[string]string, len(accounts))
	for i := range accounts {
		parent[accounts[i].Name] = accounts[i].Parent
	}
	under := func(name string, list []string) bool {
		for range parent { // no tree is deeper
			if slices.Contains(list, name) {
				return true
			}
			if name = parent[name]; name == "" {
				break
			}
		}
		return false
	}
	_, of := loop.Tenants(accounts, rules)
	return slices.ContainsFunc(accounts, func(a cluster.Account) bool {
		if of(a.Name) == "" || slices.Contains(rules.ExcludeAccounts, a.Name) {
			return false
		}
		if len(r.AllowAccounts) > 0 { // Slurm ignores DenyAccounts beside it
			return under(a.Name, r.AllowAccounts)
		}
		return !under(a.Name, r.DenyAccounts)
	})
}

// admitsQOS tells whether a partition lets in a QOS that Slurm has and fairlease manages. all is what Slurm has; empty = unknown.
func admitsQOS(all []string, r *cluster.Rules, rules *loop.Rules) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(q string) bool {
		if len(r.AllowQOS) > 0 && !slices.Contains(r.AllowQOS, q) || len(r.AllowQOS) == 0 && slices.Contains(r.DenyQOS, q) {
			return false
		}
		return rules.ManagesQOS(q)
	})
}
