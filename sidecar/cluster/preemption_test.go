package cluster

import (
	"strings"
	"testing"
)

// Each combination of type, modes, tiers and QOS, by the rules of Slurm's plugins; "" = the partition is managed.
func TestPreemptionByPartition(t *testing.T) {
	all := func(string) bool { return true }
	tier := func(tier int, mode string) PartitionPreemption { return PartitionPreemption{Tier: tier, Mode: mode} }
	part := func(name string, nodes string, p PartitionPreemption) Partition {
		return Partition{Name: name, Nodes: strings.Fields(nodes), Preempt: p}
	}
	const requeueForHigh = "Slurm may requeue its jobs for jobs of partition high (PreemptType=preempt/partition_prio, PreemptMode=REQUEUE, PriorityTier 10 above 1)"
	byTier := func(mode string) Preemption { return Preemption{Type: PreemptByTier, Mode: mode} }
	for _, c := range []struct {
		name  string
		p     Preemption
		parts []Partition
		want  string
	}{
		{"no preemption", Preemption{}, []Partition{part("gpu", "n1", tier(1, "")), part("high", "n1", tier(10, ""))}, ""},
		{"a higher tier", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(1, "REQUEUE")), part("high", "n1", tier(10, "REQUEUE"))}, requeueForHigh},
		{"a higher tier that is not preempted itself", byTier("REQUEUE"), []Partition{part("gpu", "n1 n2", tier(1, "REQUEUE")), part("high", "n2 n3", tier(10, "OFF"))}, requeueForHigh},
		{"off here", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(1, "OFF")), part("high", "n1", tier(10, "REQUEUE"))}, ""},
		{"other nodes", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(1, "REQUEUE")), part("high", "n2", tier(10, "REQUEUE"))}, ""},
		{"other nodes, but licences", Preemption{Type: PreemptByTier, Mode: "REQUEUE", Anywhere: true}, []Partition{part("gpu", "n1", tier(1, "REQUEUE")), part("high", "n2", tier(10, "REQUEUE"))}, requeueForHigh},
		{"the same tier", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(1, "REQUEUE")), part("high", "n1", tier(1, "REQUEUE"))}, ""},
		{"a lower tier", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(10, "REQUEUE")), part("low", "n1", tier(1, "REQUEUE"))}, ""},
		{"cancel here", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(1, "CANCEL")), part("high", "n1", tier(10, "REQUEUE"))}, "Slurm may cancel its jobs"},
		{"suspend", byTier("GANG,SUSPEND"), []Partition{part("gpu", "n1", tier(1, "GANG,SUSPEND")), part("high", "n1", tier(10, "GANG,SUSPEND"))}, "Slurm may suspend its jobs for"},
		{"only if the priority is higher", byTier("PRIORITY,REQUEUE"), []Partition{part("gpu", "n1", tier(1, "PRIORITY,REQUEUE")), part("high", "n1", tier(10, ""))}, "Slurm may requeue its jobs"},
		{"a mode that could not be read", byTier("REQUEUE"), []Partition{part("gpu", "n1", tier(0, ""))}, "its PreemptMode could not be read"},
		{"another partition is missing", byTier("REQUEUE"), []Partition{part("cpu", "n1", tier(1, "REQUEUE")), part("high", "n1", tier(10, "REQUEUE"))}, ""},

		{"time slices", Preemption{Mode: "GANG"}, []Partition{part("gpu", "n1", PartitionPreemption{Mode: "GANG", Sharing: "FORCE:2"})}, "Slurm may suspend its jobs in turns (PreemptMode=GANG, OverSubscribe=FORCE:2)"},
		{"gang scheduling without sharing", Preemption{Mode: "GANG"}, []Partition{part("gpu", "n1", tier(1, "GANG"))}, ""},
		{"sharing without gang scheduling", byTier("REQUEUE"), []Partition{part("gpu", "n1", PartitionPreemption{Mode: "OFF", Sharing: "FORCE:2"})}, ""},
		{"off for a higher tier, but time slices", byTier("GANG,SUSPEND"), []Partition{part("gpu", "n1", PartitionPreemption{Mode: "OFF", Sharing: "YES:4"})}, "in turns"},
	} {
		if got := c.p.Of("gpu", c.parts, all); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A QOS preempts those on its list, and one with WITHIN itself, where both may be used on the same nodes.
func TestPreemptionByQOS(t *testing.T) {
	normal, low, urgent := PreemptingQOS{Name: "normal"}, PreemptingQOS{Name: "low"}, PreemptingQOS{Name: "urgent", Preempts: []string{"low"}}
	mode := func(q PreemptingQOS, mode string) PreemptingQOS { q.Mode = mode; return q }
	gpu := Partition{Name: "gpu", Nodes: []string{"n1"}, Preempt: PartitionPreemption{Mode: "OFF"}} // does not count here
	rules := func(p Partition, r Rules) Partition { p.Rules = r; return p }
	elsewhere := Partition{Name: "cpu", Nodes: []string{"n2"}}
	const lowForUrgent = "Slurm may requeue its jobs of QOS low for jobs of QOS urgent (PreemptType=preempt/qos, PreemptMode=REQUEUE)"
	for _, c := range []struct {
		name  string
		mode  string
		qos   []PreemptingQOS
		parts []Partition
		leave string // a QOS that is not managed
		want  string
	}{
		{"nobody's list", "REQUEUE", []PreemptingQOS{low, normal}, []Partition{gpu}, "", ""},
		{"a list", "REQUEUE", []PreemptingQOS{low, normal, urgent}, []Partition{gpu}, "", lowForUrgent},
		{"a list, of a QOS that is not managed", "REQUEUE", []PreemptingQOS{low, normal, urgent}, []Partition{gpu}, "low", ""},
		{"a list, for a QOS that is not managed", "REQUEUE", []PreemptingQOS{low, normal, urgent}, []Partition{gpu}, "urgent", lowForUrgent},
		{"the preempted one is not allowed", "REQUEUE", []PreemptingQOS{low, urgent}, []Partition{rules(gpu, Rules{AllowQOS: []string{"normal", "urgent"}})}, "", ""},
		{"the preempted one is denied", "REQUEUE", []PreemptingQOS{low, urgent}, []Partition{rules(gpu, Rules{DenyQOS: []string{"low"}})}, "", ""},
		{"the other is denied, and elsewhere on other nodes", "REQUEUE", []PreemptingQOS{low, urgent}, []Partition{rules(gpu, Rules{DenyQOS: []string{"urgent"}}), elsewhere}, "", ""},
		{"the other is denied, but not in a partition with the same nodes", "REQUEUE", []PreemptingQOS{low, urgent},
			[]Partition{rules(gpu, Rules{DenyQOS: []string{"urgent"}}), {Name: "all", Nodes: []string{"n1", "n2"}}}, "", lowForUrgent},
		{"the mode is the preempted one's", "REQUEUE", []PreemptingQOS{mode(low, "CANCEL"), mode(urgent, "REQUEUE")}, []Partition{gpu}, "", "Slurm may cancel its jobs of QOS low"},
		{"within each", "WITHIN,REQUEUE", []PreemptingQOS{normal}, []Partition{gpu}, "", "Slurm may requeue its jobs of QOS normal for others of that QOS (PreemptType=preempt/qos, PreemptMode=WITHIN,REQUEUE)"},
		{"within one", "REQUEUE", []PreemptingQOS{mode(low, "WITHIN,REQUEUE"), normal}, []Partition{gpu}, "", "of QOS low for others of that QOS"},
		{"within one that is not managed", "REQUEUE", []PreemptingQOS{mode(low, "WITHIN,REQUEUE"), normal}, []Partition{gpu}, "low", ""},
		{"unknown", "REQUEUE", nil, []Partition{gpu}, "", "the QOS could not be read"},
	} {
		p := Preemption{Type: PreemptByQOS, Mode: c.mode, QOS: c.qos}
		if got := p.Of("gpu", c.parts, func(qos string) bool { return qos != c.leave }); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
