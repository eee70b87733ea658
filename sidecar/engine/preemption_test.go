package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
)

// preempts makes Slurm preempt jobs of the world's partition by itself, or end that.
func (w *world) preempts(on bool) {
	w.alter = func(s *cluster.Observation) {
		s.Unchanged = false
		if !on {
			return
		}
		s.Preemption = cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}
		s.Partitions = []cluster.Partition{{Name: "gpu", Nodes: []string{"n01"}, Preempt: cluster.PartitionPreemption{Tier: 1, Mode: "REQUEUE"}},
			{Name: "high", Nodes: []string{"n01"}, Preempt: cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}}}
	}
}

// When Slurm begins to preempt jobs of a partition, the jobs that wait there go back to Slurm, those that run lose the gate and
// are charged on, and nothing else changes. When it ends, they are managed again. Each change is one event.
func TestSlurmBeginsToPreempt(t *testing.T) {
	for _, gate := range []string{"licence", "begin times"} {
		t.Run(gate, func(t *testing.T) {
			w := withLicense(t, true, []int{8}, "a", "b")
			if gate == "begin times" {
				w.License = 0
			}
			w.Run(10 * second)
			first := w.submit("a", 8, 100*hour, nil)
			w.Run(minute)
			waits := w.submit("b", 8, hour, func(j *sim.Work) { j.NodeList = []string{"n01"} })
			w.Run(20 * second)
			w.state(first, cluster.Running)
			w.state(waits, cluster.Waiting)
			if j := w.Job(waits); !j.Locked && j.Eligible <= w.Now() {
				t.Fatalf("it has no gate: %+v", j)
			}
			w.preempts(true)
			w.Run(20 * second)
			if j := w.Job(waits); j.Locked || j.Eligible > w.Now() {
				t.Errorf("it still has its gate: %+v", j)
			}
			if j := w.Job(first); j.Locked {
				t.Errorf("the running job has the licence: %+v", j)
			}
			late := w.submit("b", 8, hour, nil) // the plugin of a host whose heartbeat lasts still gates it
			w.Run(10 * second)
			if j := w.Job(late); j.Locked || j.Eligible > w.Now() {
				t.Errorf("a new job has a gate: %+v", j)
			}
			before := len(w.did)
			w.Run(hour)
			for _, d := range w.did[before:] {
				if !d.Suppressed && d.ID != (cluster.JobID{}) {
					t.Errorf("%s of job %s", d.Verb, d.ID)
				}
			}
			w.state(first, cluster.Running)
			if n := w.told("preemption"); n != 1 {
				t.Errorf("%d events", n)
			}
			if len(w.Last.State.Preempted) != 1 || !strings.Contains(w.Last.State.Preempted[0].Why, "partition high") {
				t.Errorf("remembered: %+v", w.Last.State.Preempted)
			}
			if used := w.Record(first).Alloc; used < cluster.GPUTime(8*55*minute) {
				t.Errorf("it is charged only %v", used)
			}
			w.preempts(false)
			w.Run(20 * second)
			if j := w.Job(waits); !j.Locked && j.Eligible <= w.Now() && len(w.done(cluster.Notify, first)) == 0 && j.State == cluster.Waiting {
				t.Errorf("it has no gate: %+v", j)
			}
			w.Run(hour)
			if n := len(w.done(cluster.Reclaim, first)); n == 0 {
				t.Error("it was never stopped for the other tenant")
			}
			if n := w.told("preemption"); n != 2 {
				t.Errorf("%d events", n)
			}
			w.books()
		})
	}
}

// A job that names a partition in which Slurm preempts and another keeps its gate, and starts only in the other: not in idle nodes
// of the first.
func TestPreemptedPartitionIsOneOfSeveral(t *testing.T) {
	for _, gate := range []string{"licence", "begin times"} {
		t.Run(gate, func(t *testing.T) {
			nodes := simtest.Nodes("n", "v100", 2, 8)
			nodes[1].Partitions = []string{"high"}
			w := newWorldOn(t, simtest.Product(), nodes, "a", "b")
			w.Gate = w.Settings.GateTTL
			if gate == "licence" {
				w.License = 1_000_000
			}
			w.Rules.Partitions = []string{"gpu", "high"}
			w.alter = func(s *cluster.Observation) {
				s.Unchanged = false
				s.Preemption = cluster.Preemption{Type: cluster.PreemptByTier, Mode: "REQUEUE"}
				s.Partitions = []cluster.Partition{{Name: "gpu", Nodes: []string{"n01"}, Preempt: cluster.PartitionPreemption{Tier: 1, Mode: "REQUEUE"}},
					{Name: "high", Nodes: []string{"n02"}, Preempt: cluster.PartitionPreemption{Tier: 2, Mode: "REQUEUE"}},
					{Name: "top", Nodes: []string{"n01"}, Preempt: cluster.PartitionPreemption{Tier: 2, Mode: "OFF"}}}
				for i := range s.Jobs {
					if s.Jobs[i].State == cluster.Waiting {
						s.Jobs[i].Partitions = []string{"gpu", "high"}
					}
				}
			}
			w.Run(10 * second)
			in := func(j *sim.Work) { j.Partition = "high" }
			first := w.submit("a", 8, 20*minute, in)
			w.Run(minute)
			w.state(first, cluster.Running)
			both := w.submit("b", 8, 100*hour, in)
			w.Run(5 * minute)
			if j := w.Job(both); j.State != cluster.Waiting || !j.Locked && j.Eligible <= w.Now() {
				t.Fatalf("it has no gate: %+v", j)
			}
			if n := len(w.done(cluster.Open, both)) + len(w.done(cluster.Grant, both)); n > 0 {
				t.Errorf("it was opened, or granted nodes of the partition that is only observed: %d actions", n)
			}
			w.Run(hour)
			if j := w.Job(both); j.State != cluster.Running || j.Holds[0].Node != "n02" {
				t.Errorf("it does not run in the other partition: %+v", j)
			}
			for _, d := range w.done(cluster.Grant, both) {
				if !slices.Equal(d.Nodes, []string{"n02"}) {
					t.Errorf("it is granted %v", d.Nodes)
				}
			}
			w.books()
		})
	}
}

// A partition that leaves the canary has no gates after the time of a gate, though the lock lasts for the other partition.
func TestGatesEndOutsideTheCanary(t *testing.T) {
	w := newWorldOn(t, simtest.Product(), simtest.Nodes("n", "v100", 2, 4), "a", "b")
	w.License, w.Gate = 1_000_000, w.Settings.GateTTL
	w.Rules.Partitions = []string{"gpu", "test"}
	w.Run(10 * second)
	w.submit("a", 4, 100*hour, nil)
	w.submit("a", 4, 100*hour, nil)
	w.Run(minute)
	waits := w.submit("b", 8, hour, func(j *sim.Work) { j.Request.Nodes, j.Request.PerNode = 2, 4 })
	stays := w.submit("b", 8, hour, func(j *sim.Work) { j.Request.Nodes, j.Request.PerNode, j.Partition = 2, 4, "test" })
	w.Run(20 * second)
	if !w.Job(waits).Locked || !w.Job(stays).Locked {
		t.Fatalf("they have no gates: %+v, %+v", w.Job(waits), w.Job(stays))
	}
	w.Rules.Mode, w.Rules.Canary = loop.Canary, []string{"test"}
	w.Run(w.Settings.GateTTL + minute)
	if j := w.Job(waits); j.Locked {
		t.Errorf("it still has its gate: %+v", j)
	}
	if j := w.Job(stays); j.State == cluster.Waiting && !j.Locked {
		t.Errorf("the other partition's job lost its gate: %+v", j)
	}
}
