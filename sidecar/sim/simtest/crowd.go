package simtest

import (
	"fmt"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine"
)

// Crowd makes the hard case: a boundary at which every lease ends, on a full cluster of 8-GPU
// nodes of four models, with waiting jobs of all sizes, some with a model, and multi-node gangs.
// njobs is the number of running and waiting jobs; there is one node for every five jobs.
func Crowd(njobs, ntenants int) cluster.Snapshot { return CrowdOn(njobs/5, njobs, ntenants) }

// CrowdOn is Crowd on so many nodes.
func CrowdOn(nodes, njobs, ntenants int) cluster.Snapshot {
	s := cluster.Snapshot{Round: 7, Now: Start.Add(14 * cluster.Minute), Settings: Product()}
	s.Settings.Notice = cluster.Minute
	for t := range ntenants {
		s.Tenants = append(s.Tenants, cluster.Tenant{Name: tenantName(t), Weight: int64(1 + t%7)})
	}
	s.Nodes = crowdNodes(nodes)
	rng := uint64(42)
	next := func(n int) int {
		rng = rng*6364136223846793005 + 1442695040888963407
		return int(rng>>33) % n
	}
	node, used := 0, 0
	for i := range njobs {
		key := cluster.JobKey(i + 1)
		size := crowdSizes[next(len(crowdSizes))]
		tenant := s.Tenants[next(ntenants)].Name
		req := crowdRequest(size)
		if next(4) == 0 {
			req.Model = crowdModels[next(4)]
		}
		c := cluster.Case{Control: cluster.FullControl, Job: cluster.Job{ID: cluster.JobID{ID: int64(key)}, Record: int64(key), User: tenant,
			Account: tenant, Partitions: []string{"gpu"}, State: cluster.Waiting, Batch: true, Requeueable: true, Request: req,
			Submit: s.Now - cluster.Instant(1e7), Eligible: s.Now + cluster.Instant(1e6)},
			Record: cluster.Record{Key: key, ID: cluster.JobID{ID: int64(key)}, Tenant: tenant, User: tenant, State: cluster.Waiting,
				Submit: s.Now - cluster.Instant(1e7), First: s.Now - cluster.Instant(1e7-int64(i)), Due: cluster.GPUTime(next(1e9)),
				DueRate: cluster.MicroGPU(next(4e6)), ChargedTo: s.Now - 10000}}
		if size <= 8 && node < len(s.Nodes) && next(3) > 0 { // runs
			if used+size > 8 {
				node, used = node+1, 0
			}
			if node < len(s.Nodes) {
				used += size
				start := s.Now.Add(-14 * cluster.Minute)
				c.Job.Request.Model = ""
				c.Job.State, c.Job.Start, c.Job.Eligible = cluster.Running, start, start
				c.Job.Holds = []cluster.Holding{{Node: s.Nodes[node].Name, Model: s.Nodes[node].GPUs[0].Model, Size: cluster.Whole(size), CPUs: 4 * size, MemoryMB: int64(size) * 16384}}
				c.Record.State, c.Record.HeldSince, c.Record.Held = cluster.Running, start, []cluster.ModelSize{{Model: s.Nodes[node].GPUs[0].Model, Size: cluster.Whole(size)}}
				c.Record.Alloc, c.Record.Terms = cluster.GPUTime(next(1e9)), 1+next(20)
				s.Leases = append(s.Leases, cluster.Lease{Job: key, Term: 1, State: cluster.Active, Class: cluster.Shared, Pool: s.Nodes[node].GPUs[0].Model,
					Size: cluster.Whole(size), Nodes: c.Job.Holds, Granted: start, Start: start, End: Start.Add(15 * cluster.Minute)})
			}
		}
		s.Cases = append(s.Cases, c)
	}
	s.NextKey = cluster.JobKey(njobs + 1)
	s.Ledger.At = s.Now.Add(-10 * cluster.Second)
	return s
}

// Models of a crowd's nodes, and the numbers of GPUs that its jobs want.
var (
	crowdModels = []string{"a100", "h100", "k80", "v100"}
	crowdSizes  = []int{1, 1, 2, 1, 4, 8, 1, 2, 16, 1, 4, 32}
)

func tenantName(t int) string { return fmt.Sprintf("t%03d", t) }

func crowdNodes(n int) []cluster.Node {
	out := make([]cluster.Node, n)
	for i := range out {
		out[i] = cluster.Node{Name: fmt.Sprintf("n%05d", i), CPUs: 128, MemoryMB: 1 << 20,
			GPUs: []cluster.GPUs{{Model: crowdModels[i%4], Count: 8}}, Partitions: []string{"gpu"}}
	}
	return out
}

func crowdRequest(gpus int) cluster.Request {
	return cluster.Request{Size: cluster.Whole(gpus), Nodes: max(1, gpus/8), PerNode: min(gpus, 8), CPUs: 4 * gpus, MemoryMB: int64(gpus) * 16384}
}

// Opened opens the accounts of a snapshot by a first decision, and gives that.
func Opened(d *engine.Decider, s *cluster.Snapshot) cluster.Plan {
	at, p := s.Ledger.At, d.Decide(*s)
	s.Ledger = p.State.Ledger
	s.Ledger.At = at
	return p
}

// Report gives the jobs of a snapshot types with some observations, and adds reports of running jobs: each tenant has jobs of 20 types that
// were measured on two models of four.
func Report(s *cluster.Snapshot) {
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Job.Hints = &cluster.Hints{Kind: fmt.Sprintf("k%02d", i%20)}
		if c.Job.State == cluster.Running {
			s.Progress = append(s.Progress, cluster.Progress{Job: c.Job.ID, Steps: float64(i), At: s.Now})
		}
	}
	for _, t := range s.Tenants {
		for k := range 20 {
			for _, gang := range []int{1, 2, 4, 8} {
				for m, model := range crowdModels {
					if (k+m)%2 == 0 {
						s.Profiles = append(s.Profiles, cluster.Profile{Kind: cluster.KindOf(t.Name, fmt.Sprintf("k%02d", k)), Model: model, Gang: gang,
							Rate: float64(1+k%5+m) * float64(gang), Source: cluster.Observed, Samples: 5, Spread: 0.1, At: s.Now})
					}
				}
			}
		}
	}
}

// CrowdInCells is Crowd with racks of 50 nodes of a model, sockets and pairs of GPUs inside them,
// and a virtual cluster for each of 100 tenants: as many cells of every level and model as fit on
// a hundredth of its nodes. njobs is a multiple of 1,000.
func CrowdInCells(njobs int) cluster.Snapshot {
	s := Crowd(njobs, 100)
	s.Settings.Preset, s.Settings.Chooser = "hived", "astraea"
	d := &cluster.Cells{}
	s.Cells = d
	racks := map[string]*cluster.TopCell{}
	for i := range s.Nodes {
		model := s.Nodes[i].GPUs[0].Model
		r := racks[model]
		if r == nil {
			for k, name := range []string{"rack", "node", "socket", "pair", "gpu"} {
				t := cluster.CellType{Name: model + "." + name, Split: []int{50, 2, 2, 2, 0}[k], Node: name == "node"}
				if name == "gpu" {
					t.Model = model
				} else {
					t.Child = model + "." + []string{"node", "socket", "pair", "gpu"}[k]
				}
				d.Types = append(d.Types, t)
			}
		}
		if r == nil || len(r.Nodes) == 50 {
			r = &cluster.TopCell{Name: fmt.Sprintf("%s.rack%05d", model, i), Type: model + ".rack"}
			racks[model] = r
		}
		if r.Nodes = append(r.Nodes, s.Nodes[i].Name); len(r.Nodes) == 50 {
			d.Tops = append(d.Tops, *r)
		}
	}
	each := len(s.Nodes) / 4 / 100 // nodes of a model per tenant
	for t := range s.Tenants {
		v := cluster.VC{Name: s.Tenants[t].Name}
		for _, model := range []string{"a100", "h100", "k80", "v100"} {
			for _, level := range []struct {
				name  string
				cells int
			}{{"node", each - 3}, {"socket", 2}, {"pair", 4}, {"gpu", 8}} {
				if level.cells > 0 {
					v.Cells = append(v.Cells, cluster.CellQuota{Type: model + "." + level.name, Cells: level.cells})
				}
			}
		}
		d.VCs = append(d.VCs, v)
	}
	return s
}
