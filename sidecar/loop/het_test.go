package loop

import (
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// One component of a heterogeneous job waits for the lease of all that ask for GPUs in managed partitions.
func TestCarriers(t *testing.T) {
	component := func(record int64, partition string, gpus int, state cluster.JobState) cluster.Job {
		j := batch(record)
		j.Het, j.Record, j.Partitions, j.Request.Size, j.State = 5, record, []string{partition}, cluster.Whole(gpus), state
		return j
	}
	const waiting, running, done = cluster.Waiting, cluster.Running, cluster.Done
	for name, c := range map[string]struct {
		jobs        []cluster.Job
		want, parts int64
		gpus        int
	}{
		"the first":                     {[]cluster.Job{component(5, "gpu", 2, waiting), component(6, "gpu", 3, waiting)}, 5, 2, 5},
		"the first has no GPUs":         {[]cluster.Job{component(5, "gpu", 0, waiting), component(6, "gpu", 3, waiting), component(7, "gpu", 1, waiting)}, 6, 2, 4},
		"the first is elsewhere":        {[]cluster.Job{component(5, "cpu", 2, waiting), component(6, "gpu", 3, waiting)}, 6, 1, 3},
		"another one is elsewhere":      {[]cluster.Job{component(5, "gpu", 2, waiting), component(6, "cpu", 3, waiting)}, 5, 1, 2},
		"all run":                       {[]cluster.Job{component(5, "gpu", 2, running), component(6, "gpu", 3, running)}, 5, 1, 2},
		"the first has ended by itself": {[]cluster.Job{component(5, "gpu", 2, done), component(6, "gpu", 3, running)}, 6, 1, 3},
	} {
		seen := 0
		of := carriers(c.jobs, everything.Partitions)
		for _, j := range c.jobs {
			carries := of[j.Het]
			carries.carry(&j)
			if j.Parts == 0 {
				continue
			}
			seen++
			if j.Record != c.want || int64(j.Parts) != c.parts || j.Request.Size.Devices != c.gpus {
				t.Errorf("%s: component %d waits for %d components and %d GPUs", name, j.Record, j.Parts, j.Request.Size.Devices)
			}
		}
		if seen != 1 {
			t.Errorf("%s: %d components have the lease", name, seen)
		}
	}
	if of := carriers([]cluster.Job{batch(1)}, everything.Partitions); of != nil {
		t.Errorf("other jobs: %v", of)
	}
}

// Where a component takes whole nodes, the carrier asks for whole nodes for all components. Else it asks for GPUs on any nodes.
func TestCarriersOfWholeNodes(t *testing.T) {
	const whole = true
	component := func(record int64, nodes int, exclusive bool) cluster.Job {
		j := batch(record)
		j.Het, j.Record, j.State = 5, record, cluster.Waiting
		j.Request = cluster.Request{Size: cluster.Whole(1), Nodes: nodes, PerNode: 1, Exclusive: exclusive}
		return j
	}
	for name, c := range map[string]struct {
		jobs      []cluster.Job
		nodes     int
		exclusive bool
	}{
		"all":        {[]cluster.Job{component(5, 1, whole), component(6, 2, whole)}, 3, true},
		"the first":  {[]cluster.Job{component(5, 2, whole), component(6, 0, false)}, 3, true},
		"the last":   {[]cluster.Job{component(5, 1, false), component(6, 1, false), component(7, 2, whole)}, 4, true},
		"none":       {[]cluster.Job{component(5, 2, false), component(6, 2, false)}, 1, false},
		"the only":   {[]cluster.Job{component(5, 2, whole)}, 2, true},
		"the middle": {[]cluster.Job{component(5, 1, false), component(6, 1, whole), component(7, 1, false)}, 3, true},
	} {
		of, j := carriers(c.jobs, everything.Partitions), c.jobs[0]
		carries := of[5]
		carries.carry(&j)
		if j.Request.Exclusive != c.exclusive || j.Request.Nodes != c.nodes || j.Request.Size.Devices != len(c.jobs) {
			t.Errorf("%s: %+v", name, j.Request)
		}
	}
}
