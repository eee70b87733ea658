package sim

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// room is the free capacity of a node.
type room struct {
	gpus   []cluster.GPUs
	shared []sharedGPU // by number; they are not among gpus
	cpus   int
	memory int64
	speed  Speed // relative to other nodes of its models; 0 = equal
}

// sharedGPU is a GPU with jobs that have shards of it.
type sharedGPU struct {
	model       string
	index, jobs int
	used        cluster.MicroGPU
}

// add frees what a job holds of the node, or takes it if sign is -1.
func (r *room) add(h *cluster.Holding, sign int) {
	r.cpus += sign * h.CPUs
	r.memory += int64(sign) * h.MemoryMB
	if !h.Size.IsWhole() {
		r.share(h, sign)
		return
	}
	for i := range r.gpus {
		if r.gpus[i].Model == h.Model {
			r.gpus[i].Count += sign * h.Size.Devices
		}
	}
}

// share frees shards of a GPU, or takes them if sign is -1.
func (r *room) share(h *cluster.Holding, sign int) {
	at, there := slices.BinarySearchFunc(r.shared, h.Index[0], func(g sharedGPU, index int) int { return cmp.Compare(g.index, index) })
	whole := cluster.Holding{Model: h.Model, Size: cluster.Whole(1)}
	if !there {
		r.shared = slices.Insert(r.shared, at, sharedGPU{model: h.Model, index: h.Index[0]})
		r.add(&whole, -1)
	}
	g := &r.shared[at]
	if g.jobs, g.used = g.jobs-sign, g.used-cluster.MicroGPU(sign)*h.Size.Part; g.jobs == 0 {
		r.shared = slices.Delete(r.shared, at, at+1)
		r.add(&whole, 1)
	}
}

// spot gives the number of the GPU that Slurm gives a part of: the first shared one of the model with room, else one more; -1 = none.
func (r *room) spot(model string, idle int, part cluster.MicroGPU) int {
	next := 0
	for i := range r.shared {
		g := &r.shared[i]
		if g.model == model && g.used+part <= cluster.WholeGPU {
			return g.index
		}
		if g.index == next {
			next++
		}
	}
	if idle == 0 {
		return -1
	}
	return next
}

// spreadOf gives Scattered if a gang is on more nodes than it would need on the largest node of its models, AcrossSwitches if these
// are under more switches than so many nodes of its model need, and else "".
func spreadOf(v *Virtual, holds []cluster.Holding) cluster.Kind {
	gpus, size := 0, 1
	for i := range holds {
		gpus, size = gpus+holds[i].Size.Devices, max(size, v.largest[holds[i].Model])
	}
	switch {
	case len(holds) > (gpus+size-1)/size:
		return cluster.Scattered
	case len(holds) > 1 && across(v, holds):
		return cluster.AcrossSwitches
	}
	return ""
}

// across tells whether a gang of one model is under more switches than as many nodes with as many of these GPUs need.
func across(v *Virtual, holds []cluster.Holding) bool {
	most, under, nodes := 0, map[string]bool{}, map[string]int{}
	for i := range holds {
		if holds[i].Model != holds[0].Model {
			return false
		}
		most = max(most, holds[i].Size.Devices)
		under[v.nodes[v.at[holds[i].Node]].Switch] = true
	}
	if len(under) < 2 {
		return false
	}
	for i := range v.nodes {
		if slices.ContainsFunc(v.nodes[i].GPUs, func(g cluster.GPUs) bool { return g.Model == holds[0].Model && g.Count >= most }) {
			nodes[v.nodes[i].Switch]++
		}
	}
	few, left := 0, len(holds)
	for _, n := range slices.Backward(slices.Sorted(maps.Values(nodes))) {
		if left <= 0 {
			break
		}
		few, left = few+1, left-n
	}
	return len(under) > few
}

// Slow gives a node another speed than others of its models, for attempts that begin from now on.
func Slow(v *Virtual, node string, speed Speed) { v.free[v.at[node]].speed = speed }

// SetNode makes a node bad ("" = good again). Its jobs are requeued, or end if that is not
// allowed.
func (v *Virtual) SetNode(name, bad string) {
	if i, ok := v.at[name]; ok {
		v.nodes[i].Bad = bad
		v.nodesVersion++
	}
	for _, j := range v.list.jobs {
		if bad == "" || j.job.State != cluster.Running && j.job.State != cluster.Suspended ||
			!slices.ContainsFunc(j.job.Holds, func(h cluster.Holding) bool { return h.Node == name }) {
			continue
		}
		if j.job.Requeueable && j.job.Batch {
			v.requeue(j, false, false)
		} else {
			v.finish(j, "NODE_FAIL")
		}
	}
	v.changed, v.queue.freed = true, true
}

// Failure is a node that is down from At until Back.
type Failure struct {
	Node     string
	At, Back cluster.Instant
}

// outage is the failure of a node, or its return.
type outage struct {
	at        cluster.Instant
	node, bad string
}

// Fail schedules failures of nodes.
func (v *Virtual) Fail(failures ...Failure) {
	for _, f := range failures {
		v.outages = append(v.outages, outage{f.At, f.Node, "down"}, outage{f.Back, f.Node, ""})
	}
	slices.SortStableFunc(v.outages, func(a, b outage) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node))
	})
}

// Failures draws failures of nodes in a time: each works for between on average and then is down
// for repair on average, both exponentially distributed. Equal seeds give equal failures,
// independent of other nodes.
func Failures(seed uint64, nodes []cluster.Node, from, to cluster.Instant, between, repair cluster.Span) []Failure {
	var out []Failure
	for i := range nodes {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		draw := func(mean cluster.Span) cluster.Span { return 1 + cluster.Span(rng.ExpFloat64()*float64(mean)) }
		for at := from.Add(draw(between)); at < to; {
			back := at.Add(draw(repair))
			out = append(out, Failure{Node: nodes[i].Name, At: at, Back: back})
			at = back.Add(draw(between))
		}
	}
	return out
}
