package cluster

import (
	"slices"
	"strings"
)

// Admission is what Slurm's own rules let start, besides what fits on the nodes. Jobs that a rule forbids are due nothing.
// The zero value has no rule.
type Admission struct {
	// Partitions are those with a rule, by name. Their lists of nodes and Preempt are empty.
	Partitions []Partition `json:"partitions,omitempty"`
	// Accounts is the account tree, by name. It is empty where no rule names accounts.
	Accounts []Account `json:"accounts,omitempty"`
	Limits
}

// Empty tells whether there is no rule.
func (a *Admission) Empty() bool {
	return a == nil || len(a.Partitions)+len(a.Associations)+len(a.QOS)+len(a.Licenses) == 0
}

// Rules are the rules of a partition that its jobs must meet, besides MaxTime. The zero value has none.
type Rules struct {
	// Closed is the state in which the partition starts no job, "DOWN" or "INACTIVE", or the limit that lets none start, "MaxNodes=0" or
	// "MaxTime=0"; "" = it starts jobs.
	Closed string `json:"closed,omitempty"`
	// AllowAccounts and AllowQOS are the only ones that may use it; empty = all but DenyAccounts and DenyQOS. An account
	// stands for all accounts below it, too.
	AllowAccounts []string `json:"allow_accounts,omitempty"`
	DenyAccounts  []string `json:"deny_accounts,omitempty"`
	AllowQOS      []string `json:"allow_qos,omitempty"`
	DenyQOS       []string `json:"deny_qos,omitempty"`
	// AllowGroups are the groups that may use it; empty = all. Outside are the users of waiting jobs that are known to be in none
	// of them, sorted.
	AllowGroups []string `json:"allow_groups,omitempty"`
	Outside     []string `json:"outside,omitempty"`
	MinNodes    int      `json:"min_nodes,omitempty"`        // of a job
	MaxNodes    int      `json:"max_nodes,omitempty"`        // of a job; 0 = no limit
	CPUsPerNode int      `json:"max_cpus_node,omitempty"`    // of all its jobs on a node; 0 = no limit
	QOS         string   `json:"qos,omitempty"`              // the limits of this QOS hold for its jobs, too
	NamedOnly   bool     `json:"reservation_only,omitempty"` // it is for jobs that name a reservation
}

// ClosedBy gives the setting that lets the partition start no job, as in Slurm's configuration; "" = it starts jobs.
func (r *Rules) ClosedBy() string {
	if r.Closed == "" || strings.Contains(r.Closed, "=") {
		return r.Closed
	}
	return "State=" + r.Closed
}

// None tells whether there is no rule.
func (r *Rules) None() bool {
	return r.Closed == "" && len(r.AllowAccounts)+len(r.DenyAccounts)+len(r.AllowQOS)+len(r.DenyQOS)+len(r.AllowGroups)+r.MinNodes+r.MaxNodes+r.CPUsPerNode == 0 && r.QOS == "" && !r.NamedOnly
}

// Admit makes the admission rules of a round; nil = there are none. partitions and accounts are by name, as observed.
func Admit(partitions []Partition, accounts []Account, limits Limits) *Admission {
	a := Admission{Limits: limits}
	trees := len(limits.Associations) > 0
	for i := range partitions {
		p := partitions[i]
		if p.MaxTime == 0 && p.Rules.None() {
			continue
		}
		p.Nodes, p.Preempt = nil, PartitionPreemption{}
		a.Partitions = append(a.Partitions, p)
		trees = trees || len(p.Rules.AllowAccounts)+len(p.Rules.DenyAccounts) > 0
	}
	if trees {
		a.Accounts = slices.Clone(accounts)
	}
	if a.Empty() {
		return nil
	}
	return &a
}
