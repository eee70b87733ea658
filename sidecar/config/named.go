package config

import (
	"fmt"
	"maps"
	"slices"
)

// Named are names of Slurm's that a configuration has, by kind and by key.
type Named struct {
	Partitions, Accounts, Users, QOS map[string][]string
}

// Named gives the names that the file, its schedules and the description of virtual clusters have.
func (c *Config) Named() Named {
	n := namedOf(c)
	for name, with := range c.Scheduled() {
		more := namedOf(with)
		for kind, mine := range map[*map[string][]string]map[string][]string{&more.Partitions: n.Partitions, &more.Accounts: n.Accounts, &more.Users: n.Users, &more.QOS: n.QOS} {
			for key, list := range *kind {
				if !slices.Equal(list, mine[key]) {
					mine[fmt.Sprintf("%s of schedule %s", key, name)] = list
				}
			}
		}
	}
	if c.from.vcs != nil {
		for _, vc := range c.from.vcs.Cells.VCs {
			for _, l := range vc.Levels {
				n.QOS["levels of "+vc.Name] = append(n.QOS["levels of "+vc.Name], l.QOS)
			}
		}
	}
	for _, kind := range []map[string][]string{n.Partitions, n.Accounts, n.Users, n.QOS} {
		maps.DeleteFunc(kind, func(_ string, list []string) bool { return len(list) == 0 })
	}
	return n
}

// namedOf is Named for one time, without virtual clusters.
func namedOf(c *Config) Named {
	n := Named{
		Partitions: map[string][]string{"partitions": c.Partitions, "canary": c.Canary, "preemptible.partitions": c.Preemptible.Partitions},
		Accounts: map[string][]string{"canary_jobs.accounts": c.CanaryJobs.Accounts, "exclude.accounts": c.Exclude.Accounts,
			"tenants.weights": sortedKeys(c.Tenants.Weights), "budgets": sortedKeys(c.Budgets)},
		Users: map[string][]string{"canary_jobs.users": c.CanaryJobs.Users, "exclude.users": c.Exclude.Users},
		QOS: map[string][]string{"qos": c.QOS, "exclude.qos": c.Exclude.QOS, "preemptible.qos": c.Preemptible.QOS, "jobs.urgent_qos": c.Jobs.UrgentQOS,
			"jobs.weights": sortedKeys(c.Jobs.Weights), "cells.strict_qos": c.Cells.StrictQOS, "cells.levels": sortedKeys(c.Cells.Levels)},
	}
	add := func(kind map[string][]string, key, name string) {
		if name != "" && !slices.Contains(kind[key], name) {
			kind[key] = append(kind[key], name)
		}
	}
	for _, r := range c.Saves {
		add(n.Partitions, "saves", r.Partition)
		add(n.QOS, "saves", r.QOS)
	}
	for _, r := range c.Lease.Signals {
		add(n.Partitions, "lease.signals", r.Partition)
		add(n.QOS, "lease.signals", r.QOS)
		add(n.Accounts, "lease.signals", r.Account)
	}
	return n
}
