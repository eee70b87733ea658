package slurm

import (
	"context"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Slurm's own preemption: its type and mode come with the configuration, the modes of partitions with their list, and
// those of QOS with the account tree. The API lacks PreemptMode of partitions before v0.0.45, has OverSubscribe only
// before that, and never has WITHIN of a QOS: so scontrol tells these. It runs only where there is preemption.

// preempts reads the configuration. The account tree comes with the QOS: it is read soon if they count
// only now.
func (s *seen) preempts(conf map[string]string) {
	p := cluster.Preemption{Type: conf[ConfPreempt], Mode: conf[ConfPreemptMode], Anywhere: strings.Contains(conf[ConfPreemptParameters], "reclaim_licenses")}
	if p.Type == "(null)" || p.Type == "preempt/none" {
		p.Type = ""
	}
	switch {
	case p.None():
		p = cluster.Preemption{}
	case p.Type == cluster.PreemptByQOS:
		if p.QOS = s.last.Preemption.QOS; len(p.QOS) == 0 {
			s.accountsDue = 0
		}
	}
	if was := &s.last.Preemption; p.Type != was.Type || p.Mode != was.Mode {
		s.partitions = listing{} // their words count now
	}
	replace(&s.last.Preemption, p, &s.changed)
}

// lookPartitionPreemption completes partitions by what they say about preemption. Where that cannot be read, the last known
// words hold, and the next look tries again.
func (c site) lookPartitionPreemption(ctx context.Context, partitions []cluster.Partition) {
	if p := &c.seen.last.Preemption; p.None() || p.Unread {
		return
	}
	all, err := c.partitionPreemption(ctx)
	if err != nil {
		c.notes.add("PreemptMode of partitions could not be read, the last ones are used: %v", err)
		c.seen.partitions = listing{}
		all = map[string]cluster.PartitionPreemption{}
		for i := range c.seen.last.Partitions {
			all[c.seen.last.Partitions[i].Name] = c.seen.last.Partitions[i].Preempt
		}
	}
	for i := range partitions {
		partitions[i].Preempt = all[partitions[i].Name]
	}
}

// partitionPreemption gives what partitions say, by name.
func (c site) partitionPreemption(ctx context.Context) (map[string]cluster.PartitionPreemption, error) {
	out, err := c.scontrol(ctx, "show", "partition")
	if err != nil {
		return nil, err
	}
	return parsePartitionPreemption(out), nil
}

func parsePartitionPreemption(text string) map[string]cluster.PartitionPreemption {
	all, name := map[string]cluster.PartitionPreemption{}, ""
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		p := all[name]
		switch key {
		case "PartitionName":
			name, p = value, cluster.PartitionPreemption{}
		case "PriorityTier":
			p.Tier = atoi(value)
		case "PreemptMode":
			p.Mode = value
		case "OverSubscribe":
			if kind, jobs, _ := strings.Cut(value, ":"); (kind == "FORCE" || kind == "YES") && jobs != "1" {
				p.Sharing = value
			}
		default:
			continue
		}
		all[name] = p
	}
	return all
}

// preemptingQOS adds the modes of QOS, which scontrol tells, to who preempts whom. Where they cannot be read, the last known
// ones hold; nil = there are none.
func (c accounting) preemptingQOS(ctx context.Context, all []cluster.PreemptingQOS) []cluster.PreemptingQOS {
	modes := map[string]string{}
	out, err := c.scontrol(ctx, "show", "assoc_mgr", "flags=qos")
	if err != nil {
		c.notes.add("PreemptMode of QOS could not be read, the last ones are used: %v", err)
		if len(c.seen.last.Preemption.QOS) == 0 {
			return nil // a guess could clear a partition
		}
		for _, q := range c.seen.last.Preemption.QOS {
			modes[q.Name] = q.Mode
		}
	} else {
		modes = parseQOSModes(out)
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Mode = modes[all[i].Name]
	}
	return all
}

func parseQOSModes(text string) map[string]string {
	modes, name := map[string]string{}, ""
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "QOS":
			name = value
			if i := strings.LastIndexByte(value, '('); i >= 0 {
				name = value[:i]
			}
		case "PreemptMode":
			if value != "OFF" {
				modes[name] = value
			}
		}
	}
	return modes
}
