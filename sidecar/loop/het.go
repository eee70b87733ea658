package loop

import "github.com/fairlease/fairlease/sidecar/cluster"

// carrier is the component of a heterogeneous job that waits for the lease of all: Slurm starts all components or none, so one
// gate keeps them all.
type carrier struct {
	record  int64
	parts   int
	request cluster.Request
}

// carriers gives the carrier of each heterogeneous job: its first component if that asks for GPUs in a managed partition, since
// Slurm takes licences only there, else the next one that does. Its request is that of all such components that wait.
func carriers(jobs []cluster.Job, managed []string) map[int64]carrier {
	var of map[int64]carrier
	for i := range jobs {
		j := &jobs[i]
		if j.Het == 0 || j.State == cluster.Done || j.Request.GPUs == 0 && j.GPUsHeld() == 0 || !overlap(j.Partitions, managed) {
			continue
		}
		c, ok := of[j.Het]
		switch {
		case of == nil:
			of = map[int64]carrier{j.Het: {j.Record, 1, j.Request}}
		case !ok:
			of[j.Het] = carrier{j.Record, 1, j.Request}
		case j.State == cluster.Waiting:
			of[j.Het] = carrier{c.record, c.parts + 1, together(&c.request, &j.Request)}
		}
	}
	return of
}

// together is the request of several components, whose nodes only Slurm can choose.
func together(a, b *cluster.Request) cluster.Request {
	model := a.Model
	if model != b.Model {
		model = ""
	}
	return cluster.Request{GPUs: a.GPUs + b.GPUs, Nodes: 1, Model: model, CPUs: a.CPUs + b.CPUs, MemoryMB: a.MemoryMB + b.MemoryMB, Unplaceable: cluster.HetParts}
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
