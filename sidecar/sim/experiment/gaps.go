package experiment

import (
	"github.com/fairlease/fairlease/sidecar/cluster"
)

// gaps tracks idle GPUs and the requests of waiting jobs, to count the idle GPUs that none of
// them can use.
type gaps struct {
	set    cluster.Settings
	pool   map[string]int // by model
	pools  []pool
	node   map[string]int // by name
	nodes  []spot
	wanted map[shape]int // waiting jobs
	full   int           // healthy GPUs
	held   []int         // by pool: GPUs of jobs that fit and are held back by the limit of jobs that cannot be stopped
}

// pool is the nodes for one gang.
type pool struct {
	idle   int   // GPUs
	counts []int // nodes by the number of their idle GPUs
}

type spot struct {
	pool, size, free int
	bad              bool
	shared           map[int]int // jobs by the number of the GPU that they share; nil = none yet
}

// shape is the relevant part of a request.
type shape struct {
	gpus, nodes, per int
	model            string
}

func shapeOf(r *cluster.Request) shape {
	return shape{r.Size.Devices, max(r.Nodes, 1), max(r.PerNode, (r.Size.Devices+max(r.Nodes, 1)-1)/max(r.Nodes, 1)), r.Model}
}

func newGaps(f Fleet, set cluster.Settings, mixed bool) *gaps {
	g := &gaps{set: set, pool: map[string]int{}, node: map[string]int{}, wanted: map[shape]int{}}
	largest := 0
	for _, r := range f.Racks {
		largest = max(largest, r.GPUs)
	}
	for _, n := range f.Nodes() {
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

// count adds a node to its pool, or removes it.
func (g *gaps) count(n *spot, sign int) {
	p := &g.pools[n.pool]
	p.idle += sign * n.free
	p.counts[n.free] += sign
}

// take records that GPUs are held, or released. It gives the GPUs that are in use by that, negative if they become free.
func (g *gaps) take(h *cluster.Holding, sign int) int {
	n, gpus := &g.nodes[g.node[h.Node]], sign*h.Size.Devices
	if !h.Size.IsWhole() {
		gpus = n.share(h.Index[0], sign)
	}
	if n.bad {
		n.free -= gpus
		return gpus
	}
	g.count(n, -1)
	n.free -= gpus
	g.count(n, 1)
	return gpus
}

// share records a job on a shared GPU, or that it leaves. It gives the GPUs that are taken by that, negative if they become free.
func (n *spot) share(index, sign int) int {
	if n.shared == nil {
		n.shared = map[int]int{}
	}
	n.shared[index] += sign
	if jobs := n.shared[index]; jobs == 0 || jobs == 1 && sign == 1 {
		return sign
	}
	return 0
}

// wants records that a job of a shape waits, or no longer.
func (g *gaps) wants(s shape, sign int) {
	if g.wanted[s] += sign; g.wanted[s] == 0 {
		delete(g.wanted, s)
	}
}

// healthy reads the nodes, if given, and counts the GPUs of healthy ones.
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

// holdBack reads which jobs are held back by bind.max although they fit.
func (g *gaps) holdBack(statuses []cluster.JobStatus) {
	g.held = append(g.held[:0], make([]int, len(g.pools))...)
	for i := range statuses {
		if r := &statuses[i].Reason; r.Code == cluster.ReasonBound && r.Free >= r.Need {
			g.held[g.pool[r.Pool]] += int(r.Need / cluster.CountOf(1))
		}
	}
}

// boundIdle counts the idle GPUs that these jobs would hold.
func (g *gaps) boundIdle() int {
	sum := 0
	for i := range g.held {
		sum += min(g.held[i], g.pools[i].idle)
	}
	return sum
}

// fragmented counts the GPUs of pools in which waiting jobs request at most the idle number, but
// none of them can be placed.
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
