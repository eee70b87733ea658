package sim

import (
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// rules is the admission rules to which the virtual cluster holds its jobs, and what its running jobs use. It follows Slurm's
// documents ("Resource Limits") and shares no code with the engine, so that each checks the other.
type rules struct {
	on     bool // there are rules
	limits cluster.Limits
	uses   map[user]use
}

// user is whose resources are counted together.
type user struct{ account, name, qos, partition string }

// use is what running jobs use, by the name of the resource; their number by "".
type use map[string]int64

// SetLimits sets the limits of associations and QOS to which jobs are held that start from now on.
func (v *Virtual) SetLimits(l cluster.Limits) {
	l.Associations, l.QOS, l.Others = slices.Clone(l.Associations), slices.Clone(l.QOS), nil
	slices.SortFunc(l.Associations, func(a, b cluster.Association) int { return a.Compare(&b) })
	slices.SortFunc(l.QOS, func(a, b cluster.QOS) int { return strings.Compare(a.Name, b.Name) })
	v.rules.limits = l
	v.ruled()
}

// SetRules sets the rules of a partition: its access lists, and its limits for each job. maxTime 0 = no limit.
func (v *Virtual) SetRules(partition string, r cluster.Rules, maxTime cluster.Span) {
	v.partitions = slices.Clone(v.partitions) // others may hold the list
	if p := v.partition(partition); p != nil {
		p.Rules, p.MaxTime, p.Up = r, maxTime, r.Closed == ""
	}
	v.ruled()
}

// ruled lets new rules hold: what runs is counted.
func (v *Virtual) ruled() {
	v.rules.on, v.rules.uses = true, map[user]use{}
	for _, j := range v.list.jobs {
		if j.job.State == cluster.Running || j.job.State == cluster.Suspended {
			v.rules.count(j, 1)
		}
	}
	v.changed, v.queue.freed = true, true
}

// partition gives a partition; nil = there is none of that name.
func (v *Virtual) partition(name string) *cluster.Partition {
	at, ok := slices.BinarySearchFunc(v.partitions, name, func(p cluster.Partition, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return nil
	}
	return &v.partitions[at]
}

// count counts a job that starts (sign 1) or ends (-1).
func (r *rules) count(j *work, sign int64) {
	if !r.on {
		return
	}
	if sign > 0 {
		j.counted = user{j.job.Account, j.job.User, j.job.QOS, j.Partition}
	}
	u := r.uses[j.counted]
	if u == nil {
		u = use{}
		r.uses[j.counted] = u
	}
	for tres, n := range amounts(&j.job.Request, j.job.Holds) {
		u[tres] += sign * n
	}
}

// amounts gives what a job uses; holds are its own or, if it waits, those that it would get. Without any its request counts.
func amounts(r *cluster.Request, holds []cluster.Holding) use {
	u := use{"": 1}
	if r.Shards > 0 {
		name := "gres/shard"
		if r.MPS {
			name = "gres/mps"
		}
		u[name] = int64(r.Shards)
	}
	if len(holds) == 0 {
		if u["cpu"], u["mem"], u["node"] = int64(r.CPUs), r.MemoryMB, int64(max(r.Nodes, 1)); r.Shards == 0 {
			u["gres/gpu"] = int64(r.Size.Devices)
		}
		return u
	}
	nodes := map[string]bool{}
	for i := range holds {
		h := &holds[i]
		if r.Shards == 0 { // Slurm counts shards of GPUs as these only
			u["gres/gpu"] += int64(h.Size.Devices)
			u["gres/gpu:"+h.Model] += int64(h.Size.Devices)
		}
		u["cpu"] += int64(h.CPUs)
		u["mem"] += h.MemoryMB
		nodes[h.Node] = true
	}
	u["node"] = int64(len(nodes))
	return u
}

// asked is amounts for the limits on a job that would start: those on a GPU model stop only jobs that ask for it by name
// ("Specific limits over GRES").
func asked(r *cluster.Request, holds []cluster.Holding) use {
	u := amounts(r, holds)
	for tres := range u {
		if model, typed := strings.CutPrefix(tres, "gres/gpu:"); typed && model != r.Model {
			u[tres] = 0
		}
	}
	return u
}

// full tells whether running jobs leave less below a limit than a job would use. A limit on a resource that it does not ask for
// does not stop it.
func (r *rules) full(c cluster.Cap, of func(user) bool, would use) bool {
	n := would[c.TRES]
	if n == 0 {
		return false
	}
	for k, u := range r.uses {
		if of(k) {
			n += u[c.TRES]
		}
	}
	return n > c.Max
}

// forbids gives Slurm's reason for not starting a job that would hold these GPUs; "" = none.
func (v *Virtual) forbids(j *work, holds []cluster.Holding) string {
	if !v.rules.on {
		return ""
	}
	if why := v.partitionForbids(j, holds); why != "" {
		return why
	}
	return v.limited(j, holds)
}

// Never gives Slurm's reason for which a job could not start even if no other job ran; "" = it could.
func (v *Virtual) Never(w *Work) string {
	idle := Virtual{partitions: v.partitions, accounts: v.accounts, rules: rules{on: v.rules.on, limits: v.rules.limits}}
	return idle.forbids(&work{Work: *w, job: cluster.Job{Account: w.Account, User: w.User, QOS: w.QOS, Limit: w.Limit, Request: w.Request}}, nil)
}

// partitionForbids gives Slurm's reason for not starting a job in its partition.
func (v *Virtual) partitionForbids(j *work, holds []cluster.Holding) string {
	p := v.partition(j.Partition)
	if p == nil || p.MaxTime == 0 && p.Rules.None() {
		return ""
	}
	r := &p.Rules
	flags := v.flags(j.job.QOS)
	nodes, cpus := map[string]bool{}, map[string]int{}
	for i := range holds {
		nodes[holds[i].Node] = true
		cpus[holds[i].Node] += holds[i].CPUs
	}
	n := len(nodes)
	if len(holds) == 0 {
		n = max(j.job.Request.Nodes, 1)
	}
	shortest := j.job.ShortestLimit()
	switch line := v.above(j.job.Account); {
	case r.Closed == "DOWN":
		return "PartitionDown"
	case r.Closed != "":
		return "PartitionInactive"
	case r.NamedOnly && j.job.Reservation == "":
		return "Reservation"
	case len(r.AllowAccounts) > 0 && !overlap(line, r.AllowAccounts), len(r.AllowAccounts) == 0 && overlap(line, r.DenyAccounts):
		return "AccountNotAllowed"
	case j.job.QOS != "" && (len(r.AllowQOS) > 0 && !slices.Contains(r.AllowQOS, j.job.QOS) || len(r.AllowQOS) == 0 && slices.Contains(r.DenyQOS, j.job.QOS)):
		return "QOSNotAllowed"
	case p.MaxTime > 0 && !slices.Contains(flags, cluster.PartitionTimeLimit) && (shortest == 0 || shortest > p.MaxTime):
		return "PartitionTimeLimit"
	case r.MaxNodes > 0 && !slices.Contains(flags, cluster.PartitionMaxNodes) && n > r.MaxNodes,
		n < r.MinNodes && !slices.Contains(flags, cluster.PartitionMinNodes):
		return "PartitionNodeLimit"
	}
	for _, c := range cpus {
		if r.CPUsPerNode > 0 && c > r.CPUsPerNode {
			return "PartitionConfig"
		}
	}
	return ""
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// above gives an account and all above it.
func (v *Virtual) above(account string) []string {
	out := []string{account}
	for range v.accounts { // a broken tree has no end
		at, ok := slices.BinarySearchFunc(v.accounts, account, func(a cluster.Account, name string) int { return strings.Compare(a.Name, name) })
		if !ok || v.accounts[at].Parent == "" {
			break
		}
		account = v.accounts[at].Parent
		out = append(out, account)
	}
	return out
}

func (v *Virtual) flags(qos string) []string {
	for i := range v.rules.limits.QOS {
		if q := &v.rules.limits.QOS[i]; q.Name == qos && qos != "" {
			return q.Flags
		}
	}
	return nil
}

// limited gives Slurm's reason for a limit that a job would exceed. The first limit of a kind on a resource decides, in the
// order of the partition's QOS and the job's (with OverPartQOS the other way round), and then the associations: the user's,
// and of limits of groups all accounts upwards.
func (v *Virtual) limited(j *work, holds []cluster.Holding) string {
	would := asked(&j.job.Request, holds)
	var qos []string
	if p := v.partition(j.Partition); p != nil {
		qos = append(qos, p.Rules.QOS)
	}
	if qos = append(qos, j.job.QOS); slices.Contains(v.flags(j.job.QOS), cluster.OverPartQOS) {
		slices.Reverse(qos)
	}
	decided := map[string]bool{}
	for _, name := range qos {
		for i := range v.rules.limits.QOS {
			q := &v.rules.limits.QOS[i]
			if q.Name != name || name == "" {
				continue
			}
			for _, c := range q.Caps {
				if !decided[c.Rule+c.TRES] && v.exceedsQOS(j, q.Name, c, would, holds) {
					return "QOS" + c.Rule
				}
			}
			for _, c := range q.Caps {
				decided[c.Rule+c.TRES] = true
				decided[cluster.MaxJobs] = decided[cluster.MaxJobs] || c.Rule == cluster.MaxJobsPerUser || c.Rule == cluster.MaxJobsPerAccount
			}
		}
	}
	line := v.above(j.job.Account)
	for i := range v.rules.limits.Associations {
		a := &v.rules.limits.Associations[i]
		own := a.User != "" && a.User == j.job.User && a.Account == j.job.Account && (a.Partition == "" || a.Partition == j.Partition)
		if !own && (a.User != "" || !slices.Contains(line, a.Account)) {
			continue
		}
		for _, c := range a.Caps {
			if !decided[c.Rule+c.TRES] && v.exceedsAssociation(j, a, c, would, holds) {
				return "Assoc" + c.Rule
			}
		}
	}
	return ""
}

// exceedsQOS tells whether a job would exceed a limit of a QOS. All running jobs count to which the QOS applies: those that have
// it, and those in partitions that have it.
func (v *Virtual) exceedsQOS(j *work, qos string, c cluster.Cap, would use, holds []cluster.Holding) bool {
	counts := func(k user) bool {
		p := v.partition(k.partition)
		return k.qos == qos || p != nil && p.Rules.QOS == qos
	}
	switch c.Rule {
	case cluster.GrpTRES, cluster.GrpJobs:
		return v.rules.full(c, counts, would)
	case cluster.MaxTRESPerUser, cluster.MaxJobsPerUser:
		return v.rules.full(c, func(k user) bool { return counts(k) && k.name == j.job.User }, would)
	case cluster.MaxTRESPerAccount, cluster.MaxJobsPerAccount:
		return v.rules.full(c, func(k user) bool { return counts(k) && k.account == j.job.Account }, would)
	}
	return exceedsEach(j, c, would, holds)
}

// exceedsAssociation tells whether a job would exceed a limit of an association. Limits of an account for each of its users are
// only the users' own.
func (v *Virtual) exceedsAssociation(j *work, a *cluster.Association, c cluster.Cap, would use, holds []cluster.Holding) bool {
	of := func(k user) bool { return slices.Contains(v.above(k.account), a.Account) }
	if a.User != "" {
		of = func(k user) bool {
			return k.account == a.Account && k.name == a.User && (a.Partition == "" || k.partition == a.Partition)
		}
	}
	switch {
	case c.Rule == cluster.GrpTRES || c.Rule == cluster.GrpJobs || c.Rule == cluster.MaxJobs && a.User != "":
		return v.rules.full(c, of, would)
	case a.User == "":
		return false
	}
	return exceedsEach(j, c, would, holds)
}

// exceedsEach tells whether a job alone exceeds a limit.
func exceedsEach(j *work, c cluster.Cap, would use, holds []cluster.Holding) bool {
	switch c.Rule {
	case cluster.MaxTRESPerJob:
		return would[c.TRES] > c.Max
	case cluster.MinTRESPerJob:
		return would[c.TRES] < c.Max
	case cluster.MaxWall:
		return j.job.Limit > cluster.Span(c.Max)*cluster.Minute
	case cluster.MaxTRESPerNode:
		for i := range holds {
			if asked(&j.job.Request, slices.DeleteFunc(slices.Clone(holds), func(h cluster.Holding) bool { return h.Node != holds[i].Node }))[c.TRES] > c.Max {
				return true
			}
		}
	}
	return false
}
