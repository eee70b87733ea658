package ltgf_test

import (
	"maps"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/ltgf"
)

// Idle GPUs are stranded if the CPUs or the memory that go with them are missing, and only then.
func TestStranded(t *testing.T) {
	on := func(gpus, cpus int, memory int64) []cluster.Holding {
		h := cluster.Holding{Node: "n1", Size: cluster.Whole(gpus), CPUs: cpus, MemoryMB: memory}
		if gpus > 0 {
			h.Model = "v100"
		}
		return []cluster.Holding{h}
	}
	whole := func(n cluster.MicroGPU) cluster.MicroGPU { return n * cluster.WholeGPU }
	for name, c := range map[string]struct {
		holds  [][]cluster.Holding // of running jobs
		change func(*cluster.Snapshot)
		want   map[int]cluster.MicroGPU // by case
	}{
		"nothing runs":                   {nil, nil, nil},
		"jobs that hold their part":      {[][]cluster.Holding{on(1, 4, 100), on(2, 8, 200)}, nil, nil},
		"all memory":                     {[][]cluster.Holding{on(0, 1, 400)}, nil, map[int]cluster.MicroGPU{0: whole(4)}},
		"all CPUs, with a GPU":           {[][]cluster.Holding{on(1, 16, 1)}, nil, map[int]cluster.MicroGPU{0: whole(3)}},
		"less than goes with a GPU":      {[][]cluster.Holding{on(0, 3, 99)}, nil, nil},
		"more than goes with two":        {[][]cluster.Holding{on(0, 11, 1)}, nil, map[int]cluster.MicroGPU{0: whole(2)}},
		"no GPU idles":                   {[][]cluster.Holding{on(4, 1, 1), on(0, 15, 399)}, nil, nil},
		"two that share it":              {[][]cluster.Holding{on(0, 1, 300), on(0, 1, 100)}, nil, map[int]cluster.MicroGPU{0: whole(3), 1: whole(1)}},
		"another that takes little":      {[][]cluster.Holding{on(0, 1, 200), on(2, 1, 0)}, nil, nil},
		"a job that waits":               {[][]cluster.Holding{on(0, 1, 400)}, func(s *cluster.Snapshot) { s.Cases[0].Job.State = cluster.Waiting }, nil},
		"a node that takes no jobs":      {[][]cluster.Holding{on(0, 1, 400)}, func(s *cluster.Snapshot) { s.Nodes[0].Busy = "maintenance" }, nil},
		"a node that is down":            {[][]cluster.Holding{on(0, 1, 400)}, func(s *cluster.Snapshot) { s.Nodes[0].Bad = "down" }, nil},
		"a node without numbers":         {[][]cluster.Holding{on(0, 1, 400)}, func(s *cluster.Snapshot) { s.Nodes[0].MemoryMB = 0 }, nil},
		"GPUs that are granted":          {[][]cluster.Holding{on(0, 1, 400)}, granted(3, 3), map[int]cluster.MicroGPU{0: whole(1)}},
		"granted, and the job has begun": {[][]cluster.Holding{on(3, 1, 400)}, granted(1, 3), map[int]cluster.MicroGPU{0: whole(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster.Snapshot{Nodes: []cluster.Node{{Name: "n1", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, CPUs: 16, MemoryMB: 400}}}
			for i, h := range c.holds {
				s.Cases = append(s.Cases, cluster.Case{Job: cluster.Job{State: cluster.Running, Holds: h}, Record: cluster.Record{Key: cluster.JobKey(i + 1)}})
			}
			if c.change != nil {
				c.change(&s)
			}
			got := map[int]cluster.MicroGPU{}
			for _, x := range ltgf.Stranded(&s) {
				if x.Pool != "v100" {
					t.Errorf("pool %q", x.Pool)
				}
				got[x.Case] += x.GPUs
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// granted gives a lease that was granted to a job.
func granted(job cluster.JobKey, gpus int) func(*cluster.Snapshot) {
	return func(s *cluster.Snapshot) {
		s.Leases = []cluster.Lease{{Job: job, State: cluster.Granted, Size: cluster.Whole(gpus), Nodes: []cluster.Holding{{Node: "n1", Model: "v100", Size: cluster.Whole(gpus)}}}}
	}
}
