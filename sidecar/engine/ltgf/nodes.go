package ltgf

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
)

// Nodes counts what jobs leave of nodes. It is kept from round to round: only what jobs hold that are not as they were is counted
// anew, or all of it if the nodes are others.
type Nodes struct {
	nodes   []cluster.Node     // copies
	version int64              // of them: see cluster.Observation
	at      map[string]int     // by name
	models  []string           // that some node has
	gpus    int                // of all nodes
	bad     bool               // some node is
	sites   []site             // by node
	idle    []cluster.MicroGPU // GPUs that no job holds, by node and entry of its GPUs
	shards  bool               // some node has shards of GPUs
	short   int                // how many sites are

	holds, last [][]hold // by case, now and at the last look: what the job holds
	block       []hold   // memory for more
	stays       []bool   // by case of the last look: it is as it was
	taken       []hold   // GPUs that are neither held nor idle
}

// hold is a part of a node that is taken.
type hold struct {
	node, slot int // slot is a place in idle; -1 = unknown
	gpus       cluster.MicroGPU
	cpus       int
	memory     int64
}

// site is what jobs leave of a node.
type site struct {
	first, gpus int   // its first place in Nodes.idle, and its GPUs
	cpus        int   // left
	memory      int64 // left
	short       bool  // GPUs would be stranded, if none were granted or gathered
	// Of the present look, where GPUs are stranded.
	idle     cluster.MicroGPU
	stranded int64
	excess   cluster.MicroGPU // of all jobs
}

// open takes the nodes of a snapshot, and counts what no job holds, without the GPUs of bad nodes. It tells whether the nodes are those of the
// last look.
func (x *Nodes) open(s *cluster.Snapshot) (same bool) {
	for _, h := range x.taken {
		x.idle[h.slot] += h.gpus
	}
	x.taken = x.taken[:0]
	same = s.NodesVersion != 0 && s.NodesVersion == x.version || sameNodes(x.nodes, s.Nodes)
	if !same {
		x.survey(s.Nodes)
	}
	x.version = s.NodesVersion
	again := same && s.Follows
	x.holds, x.last = slices.Grow(x.last[:0], len(s.Cases))[:len(s.Cases)], x.holds
	if !again {
		x.empty(s.Nodes)
	}
	x.stays = slices.Grow(x.stays[:0], len(x.last))[:len(x.last)]
	clear(x.stays)
	for i := range s.Cases {
		if before := s.Before(i); again && before >= 0 {
			x.stays[before], x.holds[i] = true, x.last[before]
			continue
		}
		x.holds[i] = x.of(&s.Cases[i])
		x.take(x.holds[i], 1, again)
	}
	for k, stays := range x.stays {
		if !stays {
			x.take(x.last[k], -1, true)
		}
	}
	for i := 0; !again && i < len(x.sites); i++ {
		x.measure(i)
	}
	return same
}

// sameNodes tells whether nodes have what they had.
func sameNodes(old, now []cluster.Node) bool {
	same := len(old) == len(now)
	for i := 0; same && i < len(old); i++ {
		a, b := &old[i], &now[i]
		same = a.Name == b.Name && a.CPUs == b.CPUs && a.MemoryMB == b.MemoryMB && a.Bad == b.Bad && a.Shards == b.Shards && a.MPS == b.MPS && slices.Equal(a.GPUs, b.GPUs)
	}
	return same
}

// survey takes other nodes.
func (x *Nodes) survey(nodes []cluster.Node) {
	x.nodes, x.at = slices.Clone(nodes), make(map[string]int, len(nodes))
	x.models, x.gpus, x.bad, x.shards, x.short, x.sites = nil, 0, false, false, 0, make([]site, len(nodes))
	slots := 0
	for i := range nodes {
		n := &x.nodes[i]
		n.GPUs = slices.Clone(n.GPUs) // their owner may modify them
		x.at[n.Name] = i
		x.bad, x.shards = x.bad || n.Bad != "", x.shards || n.Shards > 0
		x.sites[i].first = slots
		for _, g := range n.GPUs {
			x.sites[i].gpus += g.Count
			if !slices.Contains(x.models, g.Model) {
				x.models = append(x.models, g.Model)
			}
		}
		slots += len(n.GPUs)
		x.gpus += x.sites[i].gpus
	}
	x.idle = make([]cluster.MicroGPU, slots)
}

// empty counts nodes as if no job held any of them.
func (x *Nodes) empty(nodes []cluster.Node) {
	clear(x.idle)
	x.last = x.last[:0]
	for i := range nodes {
		n, at := &nodes[i], &x.sites[i]
		at.cpus, at.memory = n.CPUs, n.MemoryMB
		for k := range n.GPUs {
			if n.Bad == "" {
				x.idle[x.slot(i, n.GPUs[k].Model)] += cluster.Micro(n.GPUs[k].Count)
			}
		}
	}
}

// of returns what a job holds of nodes.
func (x *Nodes) of(c *cluster.Case) []hold {
	if !occupies(c) || len(c.Job.Holds) == 0 {
		return nil
	}
	n := len(c.Job.Holds)
	if len(x.block) < n {
		x.block = make([]hold, max(n, 64))
	}
	out := x.block[:n:n]
	x.block = x.block[n:]
	for k := range out {
		h := &c.Job.Holds[k]
		node := x.find(h.Node)
		out[k] = hold{node, x.slot(node, h.Model), h.Size.Amount(), h.CPUs, h.MemoryMB}
	}
	return out
}

// take counts what a job holds, times 1 or -1.
func (x *Nodes) take(holds []hold, times int, measure bool) {
	for k := range holds {
		h := &holds[k]
		if h.node < 0 {
			continue
		}
		if h.slot >= 0 {
			x.idle[h.slot] -= cluster.MicroGPU(times) * h.gpus
		}
		at := &x.sites[h.node]
		at.cpus, at.memory = at.cpus-times*h.cpus, at.memory-int64(times)*h.memory
		if measure {
			x.measure(h.node)
		}
	}
}

// measure finds out whether a node has stranded GPUs.
func (x *Nodes) measure(node int) {
	at := &x.sites[node]
	if at.short {
		x.short--
	}
	if at.short = x.stranded(node, x.idleOn(node)) > 0; at.short {
		x.short++
	}
}

// find returns the number of a node, or -1.
func (x *Nodes) find(name string) int {
	if i, ok := x.at[name]; ok {
		return i
	}
	return -1
}

// slot returns the place of a node's GPUs of a model in idle, or -1.
func (x *Nodes) slot(node int, model string) int {
	if node >= 0 {
		gpus := x.nodes[node].GPUs
		for k := range gpus {
			if gpus[k].Model == model {
				return x.sites[node].first + k
			}
		}
	}
	return -1
}

// idleOn counts the idle GPUs of a node.
func (x *Nodes) idleOn(node int) (sum cluster.MicroGPU) {
	first := x.sites[node].first
	for k := range x.nodes[node].GPUs {
		sum += max(x.idle[first+k], 0)
	}
	return sum
}

// reserve takes GPUs off a node's idle ones until the next look.
func (x *Nodes) reserve(slot int, gpus cluster.MicroGPU) {
	x.idle[slot] -= gpus
	x.taken = append(x.taken, hold{slot: slot, gpus: gpus})
}
