package stride

import (
	"math"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Node is a server with its small jobs.
type Node struct {
	Name string `json:"name"`
	GPUs int    `json:"gpus"`
	Pass Pass   `json:"pass"` // of the aggregate of its small jobs
	Jobs []Job  `json:"jobs"` // passes are comparable on this node only
}

// Part is GPUs of a node.
type Part struct {
	Node int // index
	GPUs int
}

// Large is a job on several servers.
type Large struct {
	Job
	On []Part
}

// Split is the central stride with the local ones. It is a value: methods return a changed copy.
type Split struct {
	Nodes []Node
	Large []Large
}

// Turn lists the running jobs of a quantum: indices of large jobs, and of each node's small jobs.
type Turn struct {
	Large []int
	Small [][]int
}

// central gives the jobs of the central stride: the large ones, then each node's aggregate, which
// has no GPUs if the node has no small jobs. Keys break ties: large jobs first, since they wait
// for several nodes, then aggregates in the order of nodes.
func (s *Split) central() []Job {
	jobs := make([]Job, 0, len(s.Large)+len(s.Nodes))
	for i := range s.Large {
		jobs = append(jobs, s.Large[i].Job)
	}
	for n := range s.Nodes {
		a := Job{Key: math.MaxInt64 - cluster.JobKey(len(s.Nodes)-n), Pass: s.Nodes[n].Pass}
		if len(s.Nodes[n].Jobs) > 0 {
			a.GPUs = s.Nodes[n].GPUs
		}
		jobs = append(jobs, a)
	}
	return jobs
}

// Next gives the running jobs of the next quantum: large jobs and aggregates with the smallest
// passes. A large job needs all its GPUs free. An aggregate gets the free GPUs of its node, for
// its small jobs with the smallest passes.
func (s *Split) Next() Turn {
	free := make([]int, len(s.Nodes))
	for n := range s.Nodes {
		free[n] = s.Nodes[n].GPUs
	}
	turn := Turn{Small: make([][]int, len(s.Nodes))}
	jobs := s.central()
	for _, i := range byPass(jobs) {
		if i >= len(s.Large) {
			n := i - len(s.Large)
			turn.Small[n] = Next(s.Nodes[n].Jobs, free[n])
			for _, k := range turn.Small[n] {
				free[n] -= s.Nodes[n].Jobs[k].GPUs
			}
			continue
		}
		on := s.Large[i].On
		if slices.ContainsFunc(on, func(p Part) bool { return p.GPUs > free[p.Node] }) {
			continue
		}
		for _, p := range on {
			free[p.Node] -= p.GPUs
		}
		turn.Large = append(turn.Large, i)
	}
	return turn
}

// After gives the passes after a turn that lasted for a part of a quantum. An aggregate advances
// by its jobs' GPUs over the tickets of all of them, so on the whole as its jobs do.
func (s *Split) After(turn Turn, ran, quantum cluster.Span) Split {
	next := Split{Nodes: slices.Clone(s.Nodes), Large: slices.Clone(s.Large)}
	for _, i := range turn.Large {
		next.Large[i].Job = s.Large[i].After(ran, quantum)
	}
	for n, run := range turn.Small {
		node := &next.Nodes[n]
		node.Jobs = slices.Clone(node.Jobs)
		used := 0
		for _, k := range run {
			used += node.Jobs[k].GPUs
			node.Jobs[k] = node.Jobs[k].After(ran, quantum)
		}
		if used > 0 {
			node.Pass = Job{Pass: node.Pass, Stride: Stride(used, node.tickets())}.After(ran, quantum).Pass
		}
	}
	return next
}

// tickets are those of all small jobs of a node.
func (n *Node) tickets() cluster.MicroGPU {
	sum := cluster.MicroGPU(0)
	for i := range n.Jobs {
		gpus := int64(n.Jobs[i].GPUs) * int64(cluster.WholeGPU)
		sum += cluster.MicroGPU(cluster.MulDiv(gpus, int64(One), int64(max(n.Jobs[i].Stride, 1))))
	}
	return sum
}

// WithSmall adds a job to a node, with its earlier pass or Never.
func (s *Split) WithSmall(n int, j Job) Split {
	next := Split{Nodes: slices.Clone(s.Nodes), Large: s.Large}
	node := &next.Nodes[n]
	if len(node.Jobs) == 0 {
		node.Pass = Join(node.Pass, s.active())
	}
	j.Pass = Join(j.Pass, node.Jobs)
	node.Jobs = append(slices.Clone(node.Jobs), j)
	return next
}

// WithLarge adds a large job, with its earlier pass or Never.
func (s *Split) WithLarge(l Large) Split {
	l.Pass = Join(l.Pass, s.active())
	return Split{Nodes: s.Nodes, Large: append(slices.Clone(s.Large), l)}
}

// active gives the jobs of the central stride with GPUs.
func (s *Split) active() []Job {
	return slices.DeleteFunc(s.central(), func(j Job) bool { return j.GPUs == 0 })
}
