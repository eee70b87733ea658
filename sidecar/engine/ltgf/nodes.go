package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Nodes finds nodes by name, and counts their idle GPUs. It is kept from round to round, so that nodes are numbered anew only if they are
// others.
type Nodes struct {
	nodes []cluster.Node
	at    map[string]int
	names []string // by node
	first []int    // by node: the place of its first GPUs in idle
	idle  []int    // GPUs that no job holds, by node and entry of its GPUs
	none  int      // instead, of GPUs that no node has
	held  []int    // nodes of all holdings, in the order of cases; -1 = unknown
	sites []site   // by node, of those with idle GPUs that jobs could start on; without a Node the others
}

// open takes the nodes of a snapshot, and counts the GPUs that no job holds, without bad nodes.
func (x *Nodes) open(s *cluster.Snapshot) {
	x.nodes = s.Nodes
	if !slices.EqualFunc(x.names, s.Nodes, func(name string, n cluster.Node) bool { return name == n.Name }) {
		x.names, x.at = x.names[:0], make(map[string]int, len(s.Nodes))
		for i := range s.Nodes {
			x.names = append(x.names, s.Nodes[i].Name)
			x.at[s.Nodes[i].Name] = i
		}
	}
	x.first, x.idle, x.held = x.first[:0], x.idle[:0], x.held[:0]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		x.first = append(x.first, len(x.idle))
		for range n.GPUs {
			x.idle = append(x.idle, 0)
		}
		for k := range n.GPUs {
			if n.Bad == "" {
				*x.free(i, n.GPUs[k].Model) += n.GPUs[k].Count
			}
		}
	}
	for i := range s.Cases {
		if !occupies(&s.Cases[i]) {
			continue
		}
		holds := s.Cases[i].Job.Holds
		for k := range holds {
			n := x.find(holds[k].Node)
			x.held = append(x.held, n)
			*x.free(n, holds[k].Model) -= holds[k].GPUs
		}
	}
}

// find returns the number of a node, or -1.
func (x *Nodes) find(name string) int {
	if i, ok := x.at[name]; ok {
		return i
	}
	return -1
}

// free returns the count of a node's idle GPUs of a model.
func (x *Nodes) free(node int, model string) *int {
	if node >= 0 {
		gpus := x.nodes[node].GPUs
		for k := range gpus {
			if gpus[k].Model == model {
				return &x.idle[x.first[node]+k]
			}
		}
	}
	x.none = 0
	return &x.none
}

// openSites finds the nodes with idle GPUs that jobs could start on, and tells whether there are any.
func (x *Nodes) openSites(s *cluster.Snapshot) (found bool) {
	x.sites = slices.Grow(x.sites[:0], len(s.Nodes))[:len(s.Nodes)]
	for i := range s.Nodes {
		n, at := &s.Nodes[i], &x.sites[i]
		*at = site{index: i, cpus: n.CPUs, memory: n.MemoryMB}
		for k := range n.GPUs {
			at.gpus += n.GPUs[k].Count
			at.idle += max(*x.free(i, n.GPUs[k].Model), 0)
		}
		if n.Bad == "" && n.Busy == "" && at.idle > 0 && n.CPUs > 0 && n.MemoryMB > 0 {
			at.Node, found = n, true
		}
	}
	return found
}
