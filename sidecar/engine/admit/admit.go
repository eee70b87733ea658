// Package admit tells which waiting jobs Slurm's own rules let start: the access lists and the limits of partitions, the
// limits of associations and QOS, and licences, with what is in use of them. Jobs that a rule forbids are due nothing.
package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/lease"
	"github.com/fairlease/fairlease/sidecar/engine/round"
)

// Book is the rules of a round, and what is in use of its limits. It keeps a class for all jobs that the rules treat alike, so
// that 50,000 jobs cost little more than a comparison each. The zero value has no rules. It is not safe for concurrent use.
type Book struct {
	rules   *cluster.Admission
	watched []cluster.Preempted // partitions that are only observed
	limits  bool                // of associations or QOS
	users   bool                // they, or the groups of a partition, distinguish users
	parent  map[string]string
	classes map[key]*class
	cases   []*class     // cache, by case
	recent  [4096]*class // cache: the last class of jobs with similar names
	meters  []meter
	byKey   map[meterKey]int
	facts   *round.Facts
	ending  []int // cases whose leases may end now
	site    licenses
}

// key is what the access lists and limits look at. Users matter to limits and groups only.
type key struct{ account, user, qos, partitions string }

// class is all jobs with the same key.
type class struct {
	key
	list  []string // the partitions of its jobs, as the first one has them
	doors []door   // by partition
	all   round.Gate
	open  int // doors whose lists let its jobs in
}

// door is a partition for the jobs of a class.
type door struct {
	name    string
	no      string             // why its lists let none of them in; "" = they do
	watched bool               // that is, since it is only observed
	rule    *cluster.Partition // nil = it has no rules
	free    []string           // flags of the QOS of its jobs: limits of the partition that these may exceed
	why     []string           // cache, by limit
	each    []each             // limits for each job
	counts  []int              // meters that its jobs use
	checks  []int              // of these, the ones that decide whether they start
	exempt  []int              // the others
}

// Open takes the rules of a round, and the partitions that are only observed. A job that names others too starts only in those.
func (b *Book) Open(now cluster.Instant, a *cluster.Admission, watched []cluster.Preempted) {
	b.watched = watched
	if b.rules = a; a.Empty() {
		if b.rules, b.limits, b.users = nil, false, false; len(watched) == 0 {
			b.site.open(now, nil)
			return
		}
		a = &cluster.Admission{}
		b.rules = a
	}
	b.site.open(now, a.Licenses)
	if b.classes == nil {
		b.classes, b.parent, b.byKey = map[key]*class{}, map[string]string{}, map[meterKey]int{}
	}
	b.limits = len(a.Associations)+len(a.QOS) > 0
	b.users = b.limits || slices.ContainsFunc(a.Partitions, func(p cluster.Partition) bool { return len(p.Rules.Outside) > 0 })
	clear(b.classes)
	clear(b.recent[:])
	b.cases = b.cases[:0]
	clear(b.parent)
	clear(b.byKey)
	b.meters = b.meters[:0]
	for i := range a.Accounts {
		b.parent[a.Accounts[i].Name] = a.Accounts[i].Parent
	}
}

// Of gives the partitions in which Slurm's rules let a job start now, or else the rule that forbids it, in words. The gate is
// nil if no rule concerns it.
func (b *Book) Of(j *cluster.Job) (*round.Gate, string) {
	if b.rules == nil || len(j.Partitions) == 0 {
		return nil, ""
	}
	c := b.class(j)
	why, passes, weak := "", 0, true
	for i := range c.doors {
		no := b.stops(&c.doors[i], j)
		if no == "" {
			passes++
		} else if weak { // the first rule of Slurm's, else that a partition is only observed
			why, weak = no, c.doors[i].watched
		}
	}
	if passes == 0 {
		return nil, why
	}
	if n := b.site.of(j); n != nil {
		if why = b.site.refuses(n, j); why != "" {
			return nil, why
		}
	}
	if passes == c.open {
		return &c.all, ""
	}
	var some round.Gate
	for i := range c.doors {
		if b.stops(&c.doors[i], j) == "" {
			add(&some, &c.doors[i])
		}
	}
	return &some, ""
}

// stops gives the rule that keeps a job from starting in a partition; "" = none.
func (b *Book) stops(d *door, j *cluster.Job) string {
	if d.no != "" {
		return d.no
	}
	if no := d.exceeds(j); no != "" {
		return no
	}
	if !b.limits {
		return ""
	}
	if no := b.exceeds(d, j); no != "" {
		return no
	}
	if room, full := b.room(d, j); room == lease.Never {
		return b.meters[full].says()
	}
	return ""
}

// add adds a partition to a gate.
func add(g *round.Gate, d *door) {
	first := len(g.Partitions) == 0
	g.Partitions = append(g.Partitions, d.name)
	most := 0
	if d.rule != nil && !slices.Contains(d.free, cluster.PartitionMaxNodes) {
		most = d.rule.Rules.MaxNodes
	}
	if first || most == 0 || g.MaxNodes > 0 && most > g.MaxNodes {
		g.MaxNodes = most
	}
}

// class gives the class of a job.
func (b *Book) class(j *cluster.Job) *class {
	last := &b.recent[spot(j)]
	if c := *last; c != nil && c.account == j.Account && c.qos == j.QOS && (!b.users || c.user == j.User) && slices.Equal(c.list, j.Partitions) {
		return c
	}
	k := key{account: j.Account, qos: j.QOS, partitions: j.Partitions[0]}
	if b.users {
		k.user = j.User
	}
	if len(j.Partitions) > 1 {
		k.partitions = strings.Join(j.Partitions, ",")
	}
	c := b.classes[k]
	if c == nil {
		c = b.newClass(k, j.Partitions)
		b.classes[k] = c
	}
	*last = c
	return c
}

// spot gives the cache index of a job; several classes may share one.
func spot(j *cluster.Job) int {
	at := uint32(0)
	for _, s := range [...]string{j.Account, j.User, j.QOS, j.Partitions[0]} {
		for i := max(len(s)-3, 0); i < len(s); i++ {
			at = 31*at + uint32(s[i])
		}
	}
	return int(at * 0x9e3779b1 >> 20)
}

func (b *Book) newClass(k key, partitions []string) *class {
	c := &class{key: k, list: partitions, doors: make([]door, len(partitions))}
	others := slices.ContainsFunc(partitions, func(name string) bool { return among(b.watched, name) == nil })
	for i, name := range partitions {
		d := &c.doors[i]
		d.name = name
		at, ok := slices.BinarySearchFunc(b.rules.Partitions, name, func(p cluster.Partition, name string) int { return strings.Compare(p.Name, name) })
		if ok {
			d.rule = &b.rules.Partitions[at]
			d.no = b.refuses(d.rule, k)
		}
		if b.limits {
			b.limit(d, k)
		}
		if p := among(b.watched, name); p != nil && others && d.no == "" {
			d.no, d.watched = p.Says(), true
		}
		if d.no == "" {
			c.open++
			add(&c.all, d)
		}
	}
	return c
}

// among finds a partition in a list; nil = it is not there.
func among(list []cluster.Preempted, name string) *cluster.Preempted {
	for i := range list {
		if list[i].Partition == name {
			return &list[i]
		}
	}
	return nil
}

// refuses gives the rule by which a partition refuses all jobs of a class; "" = it does not.
func (b *Book) refuses(p *cluster.Partition, k key) string {
	r := &p.Rules
	switch {
	case r.Closed != "":
		return partitionRule(p, r.ClosedBy())
	case r.NamedOnly:
		return partitionRule(p, "ReqResv=YES")
	case len(r.AllowAccounts) > 0 && !b.under(k.account, r.AllowAccounts):
		return partitionRule(p, "AllowAccounts="+strings.Join(r.AllowAccounts, ","))
	case len(r.AllowAccounts) == 0 && b.under(k.account, r.DenyAccounts): // Slurm ignores DenyAccounts beside AllowAccounts
		return partitionRule(p, "DenyAccounts="+strings.Join(r.DenyAccounts, ","))
	case slices.Contains(r.Outside, k.user):
		return "user " + k.user + " is in no group of " + partitionRule(p, "AllowGroups="+strings.Join(r.AllowGroups, ","))
	case k.qos == "":
	case len(r.AllowQOS) > 0 && !slices.Contains(r.AllowQOS, k.qos):
		return partitionRule(p, "AllowQos="+strings.Join(r.AllowQOS, ","))
	case len(r.AllowQOS) == 0 && slices.Contains(r.DenyQOS, k.qos):
		return partitionRule(p, "DenyQos="+strings.Join(r.DenyQOS, ","))
	}
	return ""
}

// under tells whether an account, or one above it, is in a list.
func (b *Book) under(account string, list []string) bool {
	for range len(b.parent) + 1 { // a broken tree has no end
		if account == "" || slices.Contains(list, account) {
			return account != ""
		}
		account = b.parent[account]
	}
	return false
}

func partitionRule(p *cluster.Partition, set string) string {
	return "partition " + p.Name + " has " + set + "; an administrator can change it (scontrol update partition)"
}

// The limits of a partition for each of its jobs.
const (
	maxTime = iota
	minNodes
	maxNodes
	cpusPerNode
	limits
)

// exceeds gives the limit of a partition that a job exceeds, in words; "" = none. The same job exceeds it always.
func (d *door) exceeds(j *cluster.Job) string {
	if d.rule == nil {
		return ""
	}
	p, q, shortest := d.rule, &j.Request, j.ShortestLimit()
	r := &p.Rules
	switch {
	case p.MaxTime > 0 && !slices.Contains(d.free, cluster.PartitionTimeLimit) && (shortest == 0 || shortest > p.MaxTime):
		return d.because(maxTime, func() string { return "MaxTime=" + p.MaxTime.Slurm() })
	case r.MaxNodes > 0 && !slices.Contains(d.free, cluster.PartitionMaxNodes) && q.Nodes > r.MaxNodes:
		return d.because(maxNodes, func() string { return fmt.Sprintf("MaxNodes=%d", r.MaxNodes) })
	case q.Nodes < r.MinNodes && !slices.Contains(d.free, cluster.PartitionMinNodes) && q.MaxNodes < r.MinNodes:
		return d.because(minNodes, func() string { return fmt.Sprintf("MinNodes=%d", r.MinNodes) })
	case r.CPUsPerNode > 0 && cpusOnANode(q) > r.CPUsPerNode:
		return d.because(cpusPerNode, func() string { return fmt.Sprintf("MaxCPUsPerNode=%d", r.CPUsPerNode) })
	}
	return ""
}

// because gives the rule for a limit, which all jobs that exceed it share.
func (d *door) because(limit int, set func() string) string {
	if d.why == nil {
		d.why = make([]string, limits)
	}
	if d.why[limit] == "" {
		d.why[limit] = partitionRule(d.rule, set())
	}
	return d.why[limit]
}

// cpusOnANode gives the CPUs that a job needs on one of its nodes, at least.
func cpusOnANode(q *cluster.Request) int {
	switch {
	case q.PerNode > 0:
		return q.CPUs * q.PerNode / max(q.Size.Devices, q.PerNode)
	case q.MaxNodes > 0:
		return (q.CPUs + q.MaxNodes - 1) / q.MaxNodes
	}
	return 0
}
