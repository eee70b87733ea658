package loop

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// preempting is a cluster in which jobs of partition high preempt those of gpu, on the same node.
func preempting(jobs ...cluster.Job) cluster.Observation {
	s := sight(noon, jobs...)
	s.Preemption = cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}
	s.Partitions = []cluster.Partition{{Name: "gpu", Nodes: []string{"n1"}, Preempt: cluster.PartitionPreemption{Tier: 1, Mode: "REQUEUE"}},
		{Name: "high", Nodes: []string{"n1"}, Preempt: cluster.PartitionPreemption{Tier: 9, Mode: "REQUEUE"}}}
	s.License = cluster.License{Name: "fairlease", Total: 9}
	return s
}

// Partitions in which Slurm preempts are only watched, in every mode that acts, and the others are acted on. A job that names both
// kinds is acted on. A site that knows of it acts on all.
func TestPreemptedPartitionsAreWatched(t *testing.T) {
	gpu, high, both := batch(1), batch(2), batch(3)
	high.Partitions, both.Partitions = []string{"high"}, []string{"gpu", "high"}
	act := Rules{Mode: Act, Partitions: []string{"gpu", "high"}, TenantLevel: 1, Cells: &cluster.Cells{}}
	for _, c := range []struct {
		name  string
		rules func(*Rules)
		seen  func(*cluster.Observation)
		want  string // the controls of the jobs in gpu, high and both
		list  string
		gates bool // licences gate jobs
		whole bool // no partition is only watched
	}{
		{"act", nil, nil, "watch act act", "gpu", true, false},
		{"all partitions", func(r *Rules) { r.Partitions = []string{"gpu"} }, nil, "watch leave watch", "gpu", false, false},
		{"canary", func(r *Rules) { r.Mode, r.Canary = Canary, []string{"gpu"} }, nil, "watch watch watch", "gpu", false, false},
		{"canary elsewhere", func(r *Rules) { r.Mode, r.Canary = Canary, []string{"high"} }, nil, "watch act act", "", true, false},
		{"observe", func(r *Rules) { r.Mode = Observe }, nil, "watch watch watch", "", false, false},
		{"known", func(r *Rules) { r.Preemption = PreemptionKnown }, nil, "act act act", "", true, true},
		{"no preemption", nil, func(s *cluster.Observation) { s.Preemption = cluster.Preemption{} }, "act act act", "", true, true},
		{"off in gpu", nil, func(s *cluster.Observation) { s.Partitions[0].Preempt.Mode = "OFF" }, "act act act", "", true, true},
	} {
		rules, seen := act, preempting(gpu, high, both)
		if c.rules != nil {
			c.rules(&rules)
		}
		if c.seen != nil {
			c.seen(&seen)
		}
		before := []cluster.Preempted{{Partition: "old"}}
		s, err := Remember(cluster.State{Preempted: before}, seen, nil, rules, settings)
		if err != nil {
			t.Fatal(err)
		}
		var controls, list []string
		for i := range s.Cases {
			controls = append(controls, string(s.Cases[i].Control))
			if x := &s.Cases[i]; x.Control == cluster.ObserveOnly && c.list != "" && x.Job.ID.ID == 1 && !strings.Contains(x.ControlWhy, "partition gpu is only observed: Slurm may requeue its jobs for jobs of partition high") {
				t.Errorf("%s: job %s: %s", c.name, x.Job.ID, x.ControlWhy)
			}
		}
		for _, p := range s.Preempted {
			list = append(list, p.Partition)
		}
		if got := strings.Join(controls, " "); got != c.want || strings.Join(list, " ") != c.list || (s.License.Total > 0) != c.gates || len(s.WasPreempted) != 1 {
			t.Errorf("%s: %s, partitions %v, licence %+v, before %v; want %s, %s, gates %v", c.name, got, list, s.License, s.WasPreempted, c.want, c.list, c.gates)
		}
		if got := len(s.Managed) > 0; got != c.whole {
			t.Errorf("%s: managed %v", c.name, s.Managed)
		}
	}
}

// An unchanged cluster and rules repeat the list; a change of either is seen.
func TestTheListOfPreemptedPartitionsFollows(t *testing.T) {
	var d desk
	rules, seen := everything, preempting()
	list := func(what string, want int) []cluster.Preempted {
		t.Helper()
		got := d.preempted(&seen, &rules, verdicts{}).preempted
		if len(got) != want {
			t.Errorf("%s: %v", what, got)
		}
		return got
	}
	first := list("first", 1)
	if again := list("again", 1); &again[0] != &first[0] {
		t.Error("it was made again")
	}
	seen.Partitions = preempting().Partitions
	seen.Partitions[0].Preempt.Mode = "OFF"
	list("off here", 0)
	seen.Partitions = preempting().Partitions
	list("on again", 1)
	seen.Preemption.Type, seen.Preemption.QOS = cluster.PreemptByQOS, []cluster.PreemptingQOS{{Name: "low"}, {Name: "normal", Preempts: []string{"low"}}}
	list("by QOS", 1)
	rules.ExcludeQOS = []string{"low"}
	list("a QOS that is not managed", 0)
	rules.ExcludeQOS, rules.QOS = nil, []string{"normal"}
	list("the other QOS alone", 0)
	rules.QOS = nil
	list("all QOS", 1)
	rules.Mode = Observe
	list("observe", 0)
}

// While what decides on a partition has not been read since the start, the last round's verdict holds. It is the same once it has
// been read. Without a verdict a partition is only watched where Slurm is known to preempt.
func TestVerdictsHoldWhileUnread(t *testing.T) {
	byQOS := func(qos ...cluster.PreemptingQOS) func(*cluster.Observation) {
		return func(s *cluster.Observation) {
			s.Preemption = cluster.Preemption{Type: cluster.PreemptByQOS, Mode: "REQUEUE", QOS: qos}
		}
	}
	words := func(p cluster.Preemption) func(*cluster.Observation) {
		return func(s *cluster.Observation) {
			s.Preemption = p
			for i := range s.Partitions {
				s.Partitions[i].Preempt = cluster.PartitionPreemption{}
			}
		}
	}
	watched := []cluster.Preempted{{Partition: "gpu", Why: "Slurm may requeue its jobs"}}
	for _, c := range []struct {
		name  string
		seen  func(*cluster.Observation)
		was   verdicts
		list  string
		clear string
	}{
		{"QOS unread", byQOS(), verdicts{watched, []string{"high"}}, "gpu", "high"},
		{"QOS unread, all clear", byQOS(), verdicts{nil, []string{"gpu", "high"}}, "", "gpu high"},
		{"QOS unread, a new partition", byQOS(), verdicts{nil, []string{"gpu"}}, "high", "gpu"},
		{"QOS unread, first start", byQOS(), verdicts{}, "gpu high", ""},
		{"QOS read, clear", byQOS(cluster.PreemptingQOS{Name: "normal"}), verdicts{watched, nil}, "", "gpu high"},
		{"QOS read, not clear", byQOS(cluster.PreemptingQOS{Name: "low"}, cluster.PreemptingQOS{Name: "urgent", Preempts: []string{"low"}}), verdicts{nil, []string{"gpu", "high"}}, "gpu high", ""},
		{"tiers unread", words(cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}), verdicts{watched, []string{"high"}}, "gpu", "high"},
		{"tiers unread, first start", words(cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}), verdicts{}, "gpu high", ""},
		{"sharing unread", words(cluster.Preemption{Mode: "GANG,SUSPEND"}), verdicts{watched, []string{"high"}}, "gpu", "high"},
		{"tiers read", nil, verdicts{nil, []string{"gpu", "high"}}, "gpu", "high"},
		{"configuration unread", words(cluster.Preemption{Unread: true}), verdicts{watched, []string{"high"}}, "gpu", "high"},
		{"configuration unread, nothing known", words(cluster.Preemption{Unread: true}), verdicts{}, "", ""},
		{"no preemption any more", words(cluster.Preemption{}), verdicts{watched, []string{"high"}}, "", ""},
	} {
		seen := preempting()
		if c.seen != nil {
			c.seen(&seen)
		}
		rules := Rules{Mode: Act, Partitions: []string{"high", "gpu"}, TenantLevel: 1}
		s, err := Remember(cluster.State{Round: 7, Preempted: c.was.preempted, Unpreempted: c.was.clear}, seen, nil, rules, settings)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, p := range s.Preempted {
			list = append(list, p.Partition)
			if len(c.was.preempted) > 0 && p != watched[0] {
				t.Errorf("%s: another verdict: %+v", c.name, p)
			}
		}
		if got, without := strings.Join(list, " "), strings.Join(s.Unpreempted, " "); got != c.list || without != c.clear {
			t.Errorf("%s: %q are watched, %q are clear; want %q, %q", c.name, got, without, c.list, c.clear)
		}
		again, err := Remember(cluster.State{Round: 8, Preempted: s.Preempted, Unpreempted: s.Unpreempted}, seen, nil, rules, settings)
		if err != nil || !reflect.DeepEqual(again.Preempted, s.Preempted) || !slices.Equal(again.Unpreempted, s.Unpreempted) {
			t.Errorf("%s: the next round differs: %+v, %v, %v", c.name, again.Preempted, again.Unpreempted, err)
		}
	}
}
