package slurm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// request gives the job's resource request in our terms. Slurm has half a dozen options for it,
// and each sets another field.
func request(w *wireJob) cluster.Request {
	want := parseTres(w.wanted)
	q := cluster.Request{
		Nodes:     max(want.nodes, 1),
		MaxNodes:  w.maxNodes,
		CPUs:      cmp.Or(want.cpus, w.cpus),
		Features:  w.features,
		Exclusive: slices.Contains(w.shared, "none") || apart(w),
	}
	if q.MaxNodes == anyWidth {
		q.MaxNodes = 0
	}
	job, err1 := gresList(w.perJob)
	node, err2 := gresList(w.perNode)
	socket, err3 := gresList(w.perSocket)
	task, err4 := gresList(w.perTask)

	perJob, perNode, perTask := count(job, "gpu"), count(node, "gpu"), count(task, "gpu")
	tasks := max(w.taskCount, 1)
	if slices.Contains(w.flags, "EXACT_TASK_COUNT_REQUESTED") && (q.MaxNodes == 0 || q.MaxNodes > tasks) {
		q.MaxNodes = max(tasks, q.Nodes) // every node needs a task
	}
	if perNode > 0 || w.nodeCount == q.MaxNodes {
		// node_count is what Slurm will take: as many nodes as the tasks' CPUs need, and the
		// maximum of a range like -N1-2, even if it is pinned to fewer.
		q.Nodes = max(q.Nodes, w.nodeCount)
	}
	switch {
	case perJob > 0 && perNode > 0:
		q.Size, q.PerNode = cluster.Whole(perJob), perNode
		q.Nodes = (perJob + perNode - 1) / perNode
		q.MaxNodes = q.Nodes
	case perJob > 0:
		q.Size = cluster.Whole(perJob)
	case perNode > 0:
		q.Size, q.PerNode = cluster.Whole(things(perNode, q.Nodes)), perNode
	case perTask > 0:
		q.Size = cluster.Whole(things(perTask, tasks))
		if w.tasksNode > 0 {
			q.PerNode = things(perTask, w.tasksNode)
		}
	}
	if want.gpus > 0 && q.PerNode == 0 {
		q.Size = cluster.Whole(want.gpus)
	}
	all := slices.Concat(job, node, socket, task)
	shards := things(count(task, "shard"), tasks) + count(job, "shard") + count(node, "shard")
	mps := things(count(task, "mps"), tasks) + count(job, "mps") + count(node, "mps")
	if shards+mps > 0 && q.Size.Devices == 0 && q.MostNodes() == 1 && !q.Exclusive && !has(socket, "shard") && !has(socket, "mps") {
		q.Size, q.Shards, q.MPS = cluster.Whole(1), min(cmp.Or(shards, mps), mostThings), shards == 0
	}
	if q.Size.Devices > 0 {
		q.Features = also(q.Features, slices.Concat(others(w.perJob, "gres/"), others(w.perNode, "gres/"), others(w.perSocket, "gres/"), others(w.perTask, "gres/")))
	}
	var several bool
	q.Model, several = model(want, all)
	q.MemoryMB = memory(w, want, q)
	switch {
	case cmp.Or(err1, err2, err3, err4) != nil:
		q.Unplaceable = cluster.Unread
	case has(all, "shard") && q.Shards == 0 || has(all, "mps") && !q.MPS:
		q.Unplaceable = cluster.PartsOfGPUs
	case w.cron: // before all that can be leased: Slurm refuses every change of such a job
		q.Unplaceable = cluster.Cron
	case apart(w):
		q.Unplaceable = cluster.Apart + strings.Join(w.shared, ",")
	case has(socket, "gpu"):
		q.Unplaceable = "gpus-per-socket"
	case several:
		q.Unplaceable = cluster.Several
	case w.contig && q.MostNodes() != 1: // one node is contiguous. The last: it can be taken away, the others cannot
		q.Unplaceable = cluster.Contiguous
	}
	return q
}

// oneGPU gives Slurm's words for the one GPU that a job asks for, if it asks for it by --gres or --gpus-per-node alone; "" = it does not.
func oneGPU(w *wireJob, q *cluster.Request) string {
	list, err := gresList(w.perNode)
	if err != nil || len(list) != 1 || list[0].name != "gpu" || list[0].count != 1 || w.perJob+w.perSocket+w.perTask+w.perGPU != "" ||
		q.Size != cluster.Whole(1) || q.MostNodes() != 1 || q.Exclusive || q.Loose() {
		return ""
	}
	return w.perNode
}

// apart reports whether the job's nodes are closed to other users, or to other groups of users (--exclusive=user, =mcs, =topo).
func apart(w *wireJob) bool {
	return len(w.shared) > 0 && w.shared[0] != "oversubscribe" && !slices.Contains(w.shared, "none")
}

// count gives how much a list has of a generic resource.
func count(list []gres, name string) int {
	n := 0
	for _, g := range list {
		if g.name == name {
			n = min(n+g.count, mostThings)
		}
	}
	return n
}

func things(a, b int) int { return int(product(int64(a), int64(b), mostThings)) }

func has(list []gres, name string) bool {
	return slices.ContainsFunc(list, func(g gres) bool { return g.name == name && g.count > 0 })
}

// model gives the requested GPU model, and whether there are several.
func model(want tres, list []gres) (name string, several bool) {
	var named []string
	for m, n := range want.models {
		if n > 0 {
			named = append(named, m)
		}
	}
	for _, g := range list {
		if concernsGPUs(g.name) && g.model != "" {
			named = append(named, g.model)
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	if len(named) != 1 {
		return "", len(named) > 1
	}
	return named[0], false
}

func memory(w *wireJob, want tres, q cluster.Request) int64 {
	switch {
	case w.memCPU > 0:
		return max(want.memoryMB, product(w.memCPU, int64(q.CPUs), mostMemory))
	case want.memoryMB > 0: // for the number of nodes beside it
		return min(cluster.MulDiv(want.memoryMB, int64(q.Nodes), int64(max(want.nodes, 1))), mostMemory)
	}
	return product(w.memNode, int64(q.Nodes), mostMemory)
}
