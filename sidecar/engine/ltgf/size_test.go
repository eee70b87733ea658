package ltgf

import (
	"slices"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// TestPartsOfGPUsCountAsTheirPart: a job with half a GPU is charged half of what one with a GPU is, and its
// demand is half.
func TestPartsOfGPUsCountAsTheirPart(t *testing.T) {
	t.Parallel()
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	sized := func(c cluster.Case, size cluster.Size) cluster.Case {
		c.Job.Request.Size = size
		for i := range c.Job.Holds {
			c.Job.Holds[i].Size = size
		}
		return c
	}
	for _, x := range []struct {
		size cluster.Size
		part cluster.GPUTime // of 1000
	}{{cluster.Whole(1), 1000}, {half, 500}, {cluster.Size{Devices: 2, Part: cluster.WholeGPU / 4}, 500}, {cluster.Size{Devices: 1, Part: 1000}, 1}} {
		b := open(t, 8)
		run := sized(running(1, 1, begin), x.size)
		b.look(0, run)
		b.pass(10*second, run)
		b.charged(1, 10*x.part)
		b.due(8*gpu, run)
		if got, want := b.row("t").Demand, cluster.MicroGPU(x.part)*1000; got != want {
			t.Errorf("a job that asks for %v has a demand of %d, want %d", x.size, got, want)
		}
		b.pass(10*second, run)
		b.charged(1, 20*x.part)
		if got := b.record(1).Due; got != 10*x.part {
			t.Errorf("a job that asks for %v is due %d in 10 s, want %d", x.size, got, 10*x.part)
		}
		b.balanced()
	}
}

// TestTheRestOfASharedGPU: what no job has of a GPU that jobs have parts of counts for their tenants in proportion, and for no job.
func TestTheRestOfASharedGPU(t *testing.T) {
	t.Parallel()
	on := func(id int64, tenant string, node string, index int, part cluster.MicroGPU) cluster.Case {
		c := running(cluster.JobKey(id), 1, begin)
		c.Record.Tenant = tenant
		c.Job.Holds = []cluster.Holding{{Node: node, Model: "v100", Size: cluster.Size{Devices: 1, Part: part * cluster.WholeGPU / 8}, Index: []int{index}}}
		return c
	}
	nodes := []cluster.Node{{Name: "a", Shards: 8, GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}, CPUs: 64, MemoryMB: 64}, {Name: "b", GPUs: []cluster.GPUs{{Model: "v100", Count: 4}}}}
	whole := running(9, 1, begin)
	for _, c := range []struct {
		name  string
		cases []cluster.Case
		want  []cluster.MicroGPU // by case, in eighths of a GPU
	}{
		{"one alone", []cluster.Case{on(1, "a", "a", 0, 1)}, []cluster.MicroGPU{7}},
		{"two on one GPU", []cluster.Case{on(1, "a", "a", 0, 1), on(2, "b", "a", 0, 3)}, []cluster.MicroGPU{1, 3}},
		{"a full one", []cluster.Case{on(1, "a", "a", 0, 4), on(2, "b", "a", 0, 4)}, []cluster.MicroGPU{0, 0}},
		{"on two GPUs", []cluster.Case{on(1, "a", "a", 0, 2), on(2, "b", "a", 1, 6)}, []cluster.MicroGPU{6, 2}},
		{"of several GPUs", []cluster.Case{func() cluster.Case {
			c := on(1, "a", "a", 0, 1)
			c.Job.Holds[0].Size.Devices, c.Job.Holds[0].Index = 2, []int{0, 1}
			return c
		}(), on(2, "b", "a", 1, 3)}, []cluster.MicroGPU{8, 3}},
		{"of GPUs that Slurm does not name", []cluster.Case{func() cluster.Case {
			c := on(1, "a", "a", 0, 2)
			c.Job.Holds[0].Index = nil
			return c
		}(), on(2, "b", "a", 0, 2)}, []cluster.MicroGPU{6, 6}},
		{"beside a whole one", []cluster.Case{on(1, "a", "a", 0, 2), whole}, []cluster.MicroGPU{6, 0}},
	} {
		s := cluster.Snapshot{Nodes: nodes, Cases: c.cases}
		var x Nodes
		x.open(&s)
		got := make([]cluster.MicroGPU, len(c.cases))
		for _, g := range withRests(&s, nil, &x, nil) {
			got[g.Case] += g.GPUs * 8 / cluster.WholeGPU
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d eighths, want %d", c.name, got, c.want)
		}
	}
}

// TestSharedGPUsAreNotStranded: GPUs that jobs share are not idle. On a node whose CPUs they hold, what is left of each counts once.
func TestSharedGPUsAreNotStranded(t *testing.T) {
	t.Parallel()
	s := cluster.Snapshot{Nodes: []cluster.Node{{Name: "a", Shards: 8, GPUs: []cluster.GPUs{{Model: "v100", Count: 8}}, CPUs: 63, MemoryMB: 64}}}
	for i := range 7 {
		c := running(cluster.JobKey(i+1), 1, begin)
		c.Job.Holds = []cluster.Holding{{Node: "a", Model: "v100", Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 8}, Index: []int{i}, CPUs: 9}}
		s.Cases = append(s.Cases, c)
	}
	var x Nodes
	x.open(&s)
	var rests, strands cluster.MicroGPU
	for _, g := range withRests(&s, nil, &x, stranded(&s, &x)) {
		if g.Rest {
			rests += g.GPUs
		} else {
			strands += g.GPUs
		}
	}
	if eighths := rests * 8 / cluster.WholeGPU; eighths != 49 || strands < cluster.WholeGPU-10 || strands > cluster.WholeGPU {
		t.Errorf("%d eighths of shared GPUs are left, and %d millionths of the eighth GPU are stranded; want 49, and that GPU", eighths, strands)
	}
}

// Jobs whose turns are not equal are charged for their parts from the look on that finds them together, until the next one finds another or none beside
// them. No GPU counts twice, also if jobs come and go in between.
func TestTurnsAreCharged(t *testing.T) {
	half := cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}
	const minute = cluster.Minute
	for _, worths := range [][]cluster.Worth{nil, {{Model: "1g.10gb", Worth: cluster.WholeGPU / 7}}} { // of other devices
		b := open(t, 1)
		b.s.Settings.Worths = worths
		b.s.Settings.Slices = &cluster.Slices{Quantum: minute}
		b.s.Tenants = []cluster.Tenant{{Name: "nlp", Weight: 2}, {Name: "vision", Weight: 1}}
		b.s.Nodes[0].Shards = 2
		on := func(key cluster.JobKey, tenant string, start cluster.Instant) cluster.Case {
			c := running(key, 1, start)
			c.Job.Holds[0].Size, c.Job.Holds[0].Index, c.Record.Tenant = half, []int{0}, tenant
			if key < 3 {
				c.Record.Slice = &cluster.Slice{Shards: 1}
			}
			return c
		}
		ended := func(c cluster.Case, at cluster.Instant) cluster.Case {
			c.Job.State, c.Job.End, c.Job.Holds = cluster.Done, at, nil
			return c
		}
		heavy, light := on(1, "nlp", begin), on(2, "vision", begin)
		b.look(0, heavy, light)
		seconds := func(key int) int { return int(b.s.Cases[key-1].Record.Alloc+500) / 1000 }
		b.look(minute, heavy, light)
		if got := [2]int{seconds(1), seconds(2)}; got != [2]int{40, 20} {
			t.Errorf("after a minute with weights 2 and 1 jobs are charged %d s of a GPU, want 40 and 20", got)
		}
		gone := ended(light, begin.Add(minute+minute/2))
		other := on(3, "vision", begin.Add(minute+minute/2))
		b.look(minute, heavy, gone, other)
		if got := [3]int{seconds(1), seconds(2), seconds(3)}; got != [3]int{70, 30, 15} {
			t.Errorf("when another job has taken the shards of the light one, jobs are charged %d s, want 70, 30 and 15", got)
		}
		if p := b.s.Ledger.Pools[0]; p.Tenants > p.Capacity || p.Idle < 0 || p.Tenants+p.Idle != p.Capacity {
			t.Errorf("the pool has %+v", p)
		}
	}
}

// Where a job is not acted on, or has notice, all jobs of its GPU run and share it. So their parts are equal then, whatever their weights.
func TestTurnsOfJobsThatAllRun(t *testing.T) {
	const minute = cluster.Minute
	for name, change := range map[string]func(*cluster.Snapshot){
		"a site that only observes": func(s *cluster.Snapshot) { s.Cases[0].Control = cluster.ObserveOnly },
		"an exempt job": func(s *cluster.Snapshot) {
			s.Overrides = []cluster.Override{{Kind: cluster.Exempt, Scope: "job", Name: "1", Until: begin.Add(cluster.Hour)}}
		},
		"a job that has notice": func(s *cluster.Snapshot) {
			s.Leases = []cluster.Lease{{Job: 1, State: cluster.Noticed, Pool: "v100", Size: cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}}}
		},
		"an owner that resumes a job": func(s *cluster.Snapshot) { s.Cases[0].Record.Slice = &cluster.Slice{Shards: 1, Taken: 3} },
	} {
		b := open(t, 1)
		b.s.Settings.Slices = &cluster.Slices{Quantum: minute}
		b.s.Tenants = []cluster.Tenant{{Name: "nlp", Weight: 5}, {Name: "vision", Weight: 1}}
		b.s.Nodes[0].Shards = 2
		var cases []cluster.Case
		for k, tenant := range []string{"nlp", "vision"} {
			c := running(cluster.JobKey(k+1), 1, begin)
			c.Job.Holds[0].Size, c.Job.Holds[0].Index = cluster.Size{Devices: 1, Part: cluster.WholeGPU / 2}, []int{0}
			c.Record.Tenant, c.Record.Slice = tenant, &cluster.Slice{Shards: 1}
			cases = append(cases, c)
		}
		b.look(0, cases...)
		b.look(minute, cases...)
		before := [2]cluster.GPUTime{b.record(1).Alloc, b.record(2).Alloc}
		if before[0] < 4*before[1] {
			t.Errorf("with weights 5 and 1 jobs are charged %d", before)
		}
		change(&b.s)
		cases[0].Control = b.s.Cases[0].Control
		b.look(0, cases...)
		b.look(minute, cases...)
		if got := [2]cluster.GPUTime{b.record(1).Alloc - before[0], b.record(2).Alloc - before[1]}; got != [2]cluster.GPUTime{30_000, 30_000} {
			t.Errorf("%s: jobs that all run are charged %d in a minute, want half of it each", name, got)
		}
	}
}
