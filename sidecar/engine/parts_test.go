package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim"
	"github.com/fairlease/fairlease/sidecar/sim/simtest"
	"github.com/fairlease/fairlease/tests/seeds"
)

// sharded returns a world of one node of eight GPUs with eight shards each, and the tenants x and y.
func sharded(t *testing.T, set cluster.Settings) *simtest.World {
	nodes := simtest.Nodes("n", "v100", 1, 8)
	nodes[0].Shards = 8
	return simtest.New(t, set, nodes, "x", "y")
}

// Parts of GPUs do not shield their tenant from stops: within an hour as many GPUs may be taken from it as if it held whole ones.
func TestStopsOfPartsCountAsParts(t *testing.T) {
	for _, shards := range []int{0, 8} {
		set := simtest.Product()
		set.StopsPerHour = cluster.StopsPerHour{Site: 50}
		w := sharded(t, set)
		for range 8 * max(shards, 1) {
			request := cluster.Request{Size: cluster.Whole(1), Nodes: 1}
			if shards > 0 {
				request = simtest.Shard(1, shards)
				request.CPUs, request.MemoryMB = 0, 0
			}
			w.Virtual.Submit(sim.Work{User: "u", Account: "x", Partition: "gpu", Command: cluster.Untyped, Request: request, Runs: 100 * cluster.Hour, Saves: sim.AtNotice})
		}
		w.Run(2 * cluster.Hour)
		var ids []cluster.JobID
		for range 4 {
			ids = append(ids, w.Virtual.Submit(sim.Work{User: "v", Account: "y", Partition: "gpu", Command: cluster.Untyped, Request: cluster.Request{Size: cluster.Whole(1), Nodes: 1}, Runs: 100 * cluster.Hour, Saves: sim.AtNotice}))
			w.Run(17 * cluster.Minute)
		}
		runs := 0
		for _, id := range ids {
			if w.Job(id).State == cluster.Running {
				runs++
			}
		}
		if runs < 2 {
			t.Errorf("where the other tenant has %d shards of each GPU, %d of 4 jobs run after 68 minutes; want 2 at least", shards, runs)
		}
	}
}

// Jobs that are charged to nobody take the GPUs off that they share, not a GPU for each of them.
func TestPartsOfNobodyTakeTheirGPUsOff(t *testing.T) {
	w := sharded(t, simtest.Product())
	for range 16 {
		request := simtest.Shard(1, 8)
		request.CPUs, request.MemoryMB = 0, 0
		w.Virtual.Submit(sim.Work{User: "u", Account: "stranger", Partition: "gpu", Request: request, Runs: 100 * cluster.Hour})
	}
	w.Virtual.Submit(sim.Work{User: "u", Account: "x", Partition: "gpu", Request: simtest.Gang(1), Runs: cluster.Hour})
	w.Run(10 * cluster.Minute)
	for i := range w.Last.State.Ledger.Tenants {
		if row := &w.Last.State.Ledger.Tenants[i]; row.Entitlement != 3*cluster.WholeGPU {
			t.Errorf("%s is due %d millionths of GPUs, want half of the six that 16 shards leave", row.Tenant, row.Entitlement)
		}
	}
}

// A tenant with one shard on each GPU has them: nobody else can. It is ahead by them, and the other tenant's jobs get GPUs first.
func TestOneShardOfEachGPU(t *testing.T) {
	s := boundary(8)
	s.Nodes[0].Shards = 8
	for i := range 4 {
		c := runsOn(cluster.JobKey(i+1), "a", 1, "n01")
		c.Job.Request.Size, c.Job.Request.Shards, c.Job.Request.PerNode = cluster.Size{Devices: 1, Part: cluster.WholeGPU / 8}, 1, 0
		c.Job.Holds[0].Size, c.Job.Holds[0].Index = c.Job.Request.Size, []int{i}
		s.Cases = append(s.Cases, c)
	}
	p := engine.Decide(s)
	sum := cluster.MicroGPU(0)
	for _, x := range p.State.Ledger.Stranded {
		sum += x.GPUs
	}
	if sum != 4*7*cluster.WholeGPU/8 {
		t.Errorf("%d millionths count besides the shards, want seven eighths of four GPUs", sum)
	}
}

// Jobs that ask for parts by MPS are charged by part, and are beside jobs of their user alone, on one GPU of each node.
func TestPartsByMPS(t *testing.T) {
	for seed := range seeds.Of(t, 20) {
		draw := rand.New(rand.NewPCG(seed, 39))
		nodes := simtest.Nodes("n", "v100", 3, 2)
		for i := range nodes[:2] {
			nodes[i].Shards, nodes[i].MPS = 100, true
		}
		set := simtest.Product()
		set.Across = []cluster.Across{cluster.AnyUser, cluster.SameTenant}[draw.IntN(2)]
		w := simtest.New(t, set, nodes, "x", "y")
		w.Gate = cluster.Hour
		var ids []cluster.JobID
		for range 12 {
			request := simtest.Shard(10*(1+draw.IntN(9)), 100)
			request.CPUs, request.MemoryMB, request.MPS = 0, 0, true
			user := []string{"ann", "ben", "cem"}[draw.IntN(3)]
			ids = append(ids, w.Virtual.Submit(sim.Work{User: user, Account: []string{"x", "y"}[draw.IntN(2)], Partition: "gpu", Command: cluster.Untyped, Request: request,
				Runs: 100 * cluster.Hour, Saves: sim.AtNotice}))
		}
		w.Check = func(r loop.Report) {
			on := map[string]string{} // by node: its user, and the GPU
			for _, l := range r.Plan.State.Leases {
				if l.State == cluster.Ending || l.State == cluster.Over { // others may start beside it until it is gone
					continue
				}
				h := &l.Nodes[0]
				now, was := w.Job(ids[l.Job-1]).User, on[h.Node]
				if was != "" && was != now || h.Node == nodes[2].Name || len(h.Index) > 0 && h.Index[0] != 0 {
					t.Fatalf("seed %d: %s has %+v, where %q is", seed, now, h, was)
				}
				on[h.Node] = now
			}
		}
		w.Run(24 * cluster.Hour)
		used := cluster.GPUTime(0)
		for _, id := range ids {
			r, most := w.Record(id), w.Job(id).Request.Size.Part.At(cluster.MicroGPU(24*cluster.Hour))
			if used += r.Alloc; r.Alloc > cluster.GPUTime(most) {
				t.Errorf("seed %d: a job with %v of a GPU was charged %v within a day", seed, w.Job(id).Request.Size, r.Alloc)
			}
		}
		if used < cluster.GPUTime(24*cluster.Hour) {
			t.Errorf("seed %d: the jobs used %v of two GPUs within a day", seed, used)
		}
	}
}
