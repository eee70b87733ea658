package loop

import "github.com/fairlease/fairlease/sidecar/cluster"

// carrier is the component of a heterogeneous job that waits for the lease of all: Slurm starts all components or none, so one
// gate keeps them all.
type carrier struct {
	record  int64
	parts   int
	nodes   int // of all components, if each has nodes of its own
	request cluster.Request
}

// carriers gives the carrier of each heterogeneous job: its first component if that asks for GPUs in a managed partition, since
// Slurm takes licences only there, else the next one that does. Its request is that of all such components that wait.
func carriers(jobs []cluster.Job, managed []string) map[int64]carrier {
	var of map[int64]carrier
	for i := range jobs {
		j := &jobs[i]
		if j.Het == 0 || j.State == cluster.Done || j.Request.Size.Devices == 0 && j.GPUsHeld() == 0 || !overlap(j.Partitions, managed) {
			continue
		}
		c, ok := of[j.Het]
		switch {
		case of == nil:
			of = map[int64]carrier{j.Het: {j.Record, 1, max(j.Request.Nodes, 1), j.Request}}
		case !ok:
			of[j.Het] = carrier{j.Record, 1, max(j.Request.Nodes, 1), j.Request}
		case j.State == cluster.Waiting:
			of[j.Het] = c.with(&j.Request)
		}
	}
	return of
}

// with adds a component. Only Slurm can choose the nodes of several. Where one takes whole nodes, all count as if they did, each on
// nodes of its own: rather too many than too few.
func (c carrier) with(b *cluster.Request) carrier {
	a := &c.request
	model, nodes := a.Model, 1
	if model != b.Model {
		model = ""
	}
	c.parts, c.nodes = c.parts+1, c.nodes+max(b.Nodes, 1)
	exclusive := a.Exclusive || b.Exclusive
	if exclusive {
		nodes = c.nodes
	}
	why := cluster.HetParts
	if a.Shards+b.Shards > 0 || a.Unplaceable == cluster.PartsOfGPUs {
		why = cluster.PartsOfGPUs
	}
	c.request = cluster.Request{Size: a.Size.And(b.Size), Nodes: nodes, Model: model, CPUs: a.CPUs + b.CPUs, MemoryMB: a.MemoryMB + b.MemoryMB,
		Exclusive: exclusive, Unplaceable: why}
	return c
}

// carry makes the carrier of a heterogeneous job ask for the GPUs of all components.
func (c *carrier) carry(j *cluster.Job) {
	if j.Record != c.record {
		return
	}
	j.Parts = c.parts
	if j.State == cluster.Waiting {
		j.Request = c.request
	}
}
