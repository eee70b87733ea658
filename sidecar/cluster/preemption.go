package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// Preemption is what Slurm's configuration says about the preemption of jobs by Slurm itself. The zero value means that
// there is none.
type Preemption struct {
	Type string `json:"type,omitempty"` // PreemptType, as "preempt/qos"; "" = none
	Mode string `json:"mode,omitempty"` // the cluster's PreemptMode, as Slurm writes it: "REQUEUE", "GANG,SUSPEND"
	// Anywhere is true if jobs are also preempted for their licences, on whichever nodes they run
	// (PreemptParameters=reclaim_licenses).
	Anywhere bool `json:"anywhere,omitempty"`
	// Unread is true while Slurm's configuration has not been read since the start: then nothing of this is known.
	Unread bool `json:"unread,omitempty"`
	// QOS are all QOS, by name. They are read if Type is PreemptByQOS; empty = they could not be read yet.
	QOS []PreemptingQOS `json:"qos,omitempty"`
}

// The types of preemption.
const (
	PreemptByTier = "preempt/partition_prio"
	PreemptByQOS  = "preempt/qos"
)

// PreemptingQOS is what a QOS says about preemption.
type PreemptingQOS struct {
	Name     string   `json:"name"`
	Mode     string   `json:"mode,omitempty"`     // its PreemptMode; "" or "OFF" = the cluster's
	Preempts []string `json:"preempts,omitempty"` // the QOS whose jobs its jobs may preempt, sorted
}

// PartitionPreemption is what a partition says about preemption. It is read if the cluster has preemption.
type PartitionPreemption struct {
	Tier int    `json:"tier,omitempty"` // PriorityTier
	Mode string `json:"mode,omitempty"` // the PreemptMode in force, the cluster's if it has none of its own; "" = unknown
	// Sharing is its OverSubscribe if several jobs may share a CPU, as "FORCE:2"; "" = they may not.
	Sharing string `json:"sharing,omitempty"`
}

// Preempted is a managed partition whose jobs Slurm may stop by itself, and why.
type Preempted struct {
	Partition string `json:"partition"`
	Why       string `json:"why"`
}

// Says gives the reason for which a partition is only observed, in words.
func (p *Preempted) Says() string { return "partition " + p.Partition + " is only observed: " + p.Why }

// None tells whether there is no preemption. It is false while nothing is known.
func (p *Preemption) None() bool { return !p.Unread && p.Type == "" && !hasWord(p.Mode, "GANG") }

// Known tells whether all that Of needs for a partition has been read. Without that, Of gives a guess.
func (p *Preemption) Known(name string, all []Partition) bool {
	if p.Unread || p.Type == PreemptByQOS && len(p.QOS) == 0 {
		return false
	}
	at := slices.IndexFunc(all, func(x Partition) bool { return x.Name == name })
	needed := p.Type == PreemptByTier || hasWord(p.Mode, "GANG")
	return at < 0 || !needed || all[at].Preempt.Mode != "" // a partition's words are read together
}

// Of tells why Slurm may requeue, cancel or suspend jobs of a partition by itself; "" = it does not. all are the cluster's
// partitions. managed tells whether jobs of a QOS are managed: only those count. The rules are those of Slurm's
// plugins preempt/partition_prio and preempt/qos, and of its gang scheduler.
func (p *Preemption) Of(name string, all []Partition, managed func(qos string) bool) string {
	at := slices.IndexFunc(all, func(x Partition) bool { return x.Name == name })
	if at < 0 || p.None() {
		return ""
	}
	here, why := &all[at], ""
	switch p.Type {
	case PreemptByTier:
		why = p.byTier(here, all)
	case PreemptByQOS:
		why = p.byQOS(here, all, managed)
	}
	if why == "" && hasWord(p.Mode, "GANG") && here.Preempt.Sharing != "" {
		why = fmt.Sprintf("Slurm may suspend its jobs in turns (PreemptMode=%s, OverSubscribe=%s)", p.Mode, here.Preempt.Sharing)
	}
	return why
}

// byTier finds a partition of a higher tier. The mode of the partition in which a job runs says what becomes of the job.
func (p *Preemption) byTier(here *Partition, all []Partition) string {
	if here.Preempt.Mode == "" {
		return fmt.Sprintf("Slurm may preempt its jobs (PreemptType=%s; its PreemptMode could not be read)", p.Type)
	}
	stop := stopWord(here.Preempt.Mode)
	if stop == "" {
		return ""
	}
	for i := range all {
		if other := &all[i]; other.Preempt.Tier > here.Preempt.Tier && (p.Anywhere || shareNodes(here, other)) {
			return fmt.Sprintf("Slurm may %s its jobs for jobs of partition %s (PreemptType=%s, PreemptMode=%s, PriorityTier %d above %d)",
				stop, other.Name, p.Type, here.Preempt.Mode, other.Preempt.Tier, here.Preempt.Tier)
		}
	}
	return ""
}

// byQOS finds a QOS that preempts one of the partition's. The QOS of a job says what becomes of it; PreemptMode of a
// partition does not count.
func (p *Preemption) byQOS(here *Partition, all []Partition, managed func(string) bool) string {
	if len(p.QOS) == 0 {
		return fmt.Sprintf("Slurm may preempt its jobs (PreemptType=%s; the QOS could not be read)", p.Type)
	}
	for i := range p.QOS {
		victim := &p.QOS[i]
		if !here.Rules.admits(victim.Name) || !managed(victim.Name) {
			continue
		}
		mode := victim.Mode
		if stopWord(mode) == "" {
			mode = p.Mode
		}
		stop := stopWord(mode)
		if stop == "" {
			continue
		}
		if hasWord(victim.Mode, "WITHIN") || hasWord(p.Mode, "WITHIN") {
			if !hasWord(mode, "WITHIN") {
				mode += ",WITHIN"
			}
			return fmt.Sprintf("Slurm may %s its jobs of QOS %s for others of that QOS (PreemptType=%s, PreemptMode=%s)", stop, victim.Name, p.Type, mode)
		}
		for k := range p.QOS {
			other := &p.QOS[k]
			if _, found := slices.BinarySearch(other.Preempts, victim.Name); found && p.runsBeside(other.Name, here, all) {
				return fmt.Sprintf("Slurm may %s its jobs of QOS %s for jobs of QOS %s (PreemptType=%s, PreemptMode=%s)", stop, victim.Name, other.Name, p.Type, mode)
			}
		}
	}
	return ""
}

// runsBeside tells whether jobs of a QOS may use nodes of a partition, there or in another partition.
func (p *Preemption) runsBeside(qos string, here *Partition, all []Partition) bool {
	return slices.ContainsFunc(all, func(x Partition) bool { return x.Rules.admits(qos) && (p.Anywhere || shareNodes(here, &x)) })
}

// admits tells whether jobs of a QOS may use the partition.
func (r *Rules) admits(qos string) bool {
	return (len(r.AllowQOS) == 0 || slices.Contains(r.AllowQOS, qos)) && !slices.Contains(r.DenyQOS, qos)
}

// shareNodes tells whether two partitions have a node in common. Their nodes are sorted.
func shareNodes(a, b *Partition) bool {
	for i, k := 0, 0; i < len(a.Nodes) && k < len(b.Nodes); {
		switch strings.Compare(a.Nodes[i], b.Nodes[k]) {
		case 0:
			return true
		case -1:
			i++
		default:
			k++
		}
	}
	return false
}

// stopWord gives what a PreemptMode does to a job; "" = nothing.
func stopWord(mode string) string {
	for word := range strings.SplitSeq(mode, ",") {
		switch word {
		case "REQUEUE", "CANCEL", "SUSPEND":
			return strings.ToLower(word)
		}
	}
	return ""
}

func hasWord(mode, word string) bool { return slices.Contains(strings.Split(mode, ","), word) }
