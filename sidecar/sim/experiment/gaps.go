package experiment

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// gaps knows where GPUs are idle and what the jobs that wait ask for, as far as it takes to
// tell how many GPUs are of no use to any of them.
type gaps struct {
	pool   map[string]int // by model
	pools  []pool
	node   map[string]int // by name
	nodes  []spot
	wanted map[shape]int // jobs that wait
	full   int           // healthy GPUs
}

// pool is the nodes among which a gang must be placed.
type pool struct {
	idle   int   // GPUs
	counts []int // nodes by the number of their idle GPUs
}

type spot struct {
	pool, size, free int
	bad              bool
}

// shape is what matters of a request here.
type shape struct {
	gpus, nodes, per int
	model            string
}

func shapeOf(r *cluster.Request) shape {
	return shape{r.GPUs, max(r.Nodes, 1), max(r.PerNode, (r.GPUs+max(r.Nodes, 1)-1)/max(r.Nodes, 1)), r.Model}
}

func newGaps(f Fleet, mixed bool) *gaps {
	g := &gaps{pool: map[string]int{}, node: map[string]int{}, wanted: map[shape]int{}}
	largest := 0
	for _, r := range f.Racks {
		largest = max(largest, r.GPUs)
	}
	for _, n := range f.nodes() {
		model, size := n.GPUs[0].Model, n.GPUs[0].Count
		p, ok := g.pool[model]
		if !ok {
			if p = len(g.pools); mixed && p > 0 {
				p = 0
			} else {
				g.pools = append(g.pools, pool{counts: make([]int, largest+1)})
			}
			g.pool[model] = p
		}
		g.node[n.Name] = len(g.nodes)
		g.nodes = append(g.nodes, spot{pool: p, size: size, free: size})
		g.count(&g.nodes[len(g.nodes)-1], 1)
		g.full += size
	}
	return g
}

// count adds a node to its pool, or takes it away.
func (g *gaps) count(n *spot, sign int) {
	p := &g.pools[n.pool]
	p.idle += sign * n.free
	p.counts[n.free] += sign
}

// take notes that GPUs are held, or no longer.
func (g *gaps) take(h *cluster.Holding, sign int) {
	n := &g.nodes[g.node[h.Node]]
	if n.bad {
		n.free -= sign * h.GPUs
		return
	}
	g.count(n, -1)
	n.free -= sign * h.GPUs
	g.count(n, 1)
}

// wants notes that a job of a shape waits, or no longer.
func (g *gaps) wants(s shape, sign int) {
	if g.wanted[s] += sign; g.wanted[s] == 0 {
		delete(g.wanted, s)
	}
}

// healthy looks at the nodes, where they are told, and gives the GPUs of those that are not bad.
func (g *gaps) healthy(nodes []cluster.Node) int {
	for i := range nodes {
		n := &g.nodes[i] // both are by name
		if bad := nodes[i].Bad != ""; bad != n.bad {
			if bad {
				g.count(n, -1)
				g.full -= n.size
			} else {
				g.count(n, 1)
				g.full += n.size
			}
			n.bad = bad
		}
	}
	return g.full
}

// fragmented gives the GPUs of the pools in which jobs wait that ask for no more than is
// idle there, though none of them can be placed.
func (g *gaps) fragmented() int {
	sum := 0
	for i := range g.pools {
		p := &g.pools[i]
		if p.idle == 0 {
			continue
		}
		wanted, fits := false, false
		for s := range g.wanted { // in any order: the answer is the same
			if s.gpus > p.idle || s.model != "" && g.pool[s.model] != i {
				continue
			}
			wanted = true
			if fits = p.fits(s); fits {
				break
			}
		}
		if wanted && !fits {
			sum += p.idle
		}
	}
	return sum
}

func (p *pool) fits(s shape) bool {
	nodes := 0
	for free := len(p.counts) - 1; free >= s.per && nodes < s.nodes; free-- {
		nodes += p.counts[free]
	}
	return nodes >= s.nodes
}
