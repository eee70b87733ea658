package cellworld

import (
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// Job is a gang that runs to its end.
type Job struct {
	Tenant       string
	Submit, Runs cluster.Span
	Nodes, GPUs  int    // parts, and GPUs of each part
	Model        string // "" = any
	Soft         bool   // any GPUs suffice if the parts are not available
}

// Gangs makes gangs of a trace's jobs on nodes of so many GPUs: on the fewest nodes, equal
// numbers on each, one more if they do not divide evenly.
func Gangs(jobs []trace.Job, node int) []Job {
	out := make([]Job, len(jobs))
	for i, j := range jobs {
		nodes := (j.GPUs + node - 1) / node
		out[i] = Job{Tenant: j.Tenant, Submit: j.Submit, Runs: j.Runs, Nodes: nodes, GPUs: (j.GPUs + nodes - 1) / nodes}
	}
	return out
}

// World is cells, and the rule by which tenants get them.
type World struct {
	Cells  cluster.Cells
	one    string         // the VC that all share; "" = each tenant has its own
	shares map[string]int // GPUs that a tenant may have guaranteed; its weight for lent GPUs
	whole  int            // GPUs of a node
	lend   bool
	alone  bool // one tenant: no hourly records
}

// Site is a cluster with the reservations of its tenants.
type Site struct {
	Types []cluster.CellType
	Tops  []cluster.TopCell
	VCs   []cluster.VC
}

// HiveD gives each tenant the cells of its VC, bound dynamically.
func (s Site) HiveD() World {
	w := World{Cells: cluster.Cells(s), shares: s.Shares(), lend: true}
	for _, t := range s.Types {
		if t.Node {
			w.whole = s.GPUs(t.Name)
		}
	}
	return w
}

// Quota gives each tenant as many GPUs as its VC has, anywhere, packed as well as cells of whole
// nodes.
func (s Site) Quota() World {
	w := s.HiveD()
	w.one = "all"
	all := cluster.VC{Name: w.one}
	for _, t := range s.Tops {
		all.Cells = append(all.Cells, cluster.CellQuota{Chain: t.Chain, Type: t.Type, Cells: 1})
	}
	w.Cells.VCs = []cluster.VC{all}
	return w
}

// Private is a tenant's own cluster: the cells of its VC, without lending. Results have no Hours.
func (s Site) Private(tenant string) World {
	w := s.HiveD()
	w.lend, w.alone = false, true
	w.Cells.VCs = slices.DeleteFunc(slices.Clone(s.VCs), func(v cluster.VC) bool { return v.Name != tenant })
	return w
}

// Shares counts the GPUs of each VC.
func (s Site) Shares() map[string]int {
	out := map[string]int{}
	for _, v := range s.VCs {
		for _, q := range v.Cells {
			out[v.Name] += q.Cells * s.GPUs(q.Type)
		}
	}
	return out
}

// GPUs counts the GPUs of a cell of a type.
func (s Site) GPUs(name string) int {
	n := 1
	for name != "" {
		i := slices.IndexFunc(s.Types, func(t cluster.CellType) bool { return t.Name == name })
		if i < 0 {
			return 0 // cells.New reports it
		}
		n *= max(s.Types[i].Split, 1)
		name = s.Types[i].Child
	}
	return n
}

// node tells whether cells of a type are nodes.
func (w *World) node(name string) bool {
	return slices.ContainsFunc(w.Cells.Types, func(t cluster.CellType) bool { return t.Node && t.Name == name })
}
