package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/slurm"
	"github.com/fairlease/fairlease/sidecar/view"
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
	case forbidsGPUs(seen.Limits.QOS, r.QOS) && slurm.EnforcesLimits(facts.Conf):
		return "its QOS " + r.QOS + " lets no job have a GPU", "change that limit (sacctmgr modify qos " + r.QOS + " set …=gres/gpu=-1), or the QOS of the partition"
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
	if len(r.AllowAccounts)+len(r.DenyAccounts) == 0 || len(accounts) == 0 {
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
