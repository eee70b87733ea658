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
	Nodes, GPUs  int    // so many parts of so many GPUs each
	Model        string // "" = any
	Soft         bool   // any GPUs will do where the parts cannot be had
}

// Gangs makes the jobs of a trace gangs on nodes of so many GPUs: on the fewest nodes, as
// many GPUs on each, one more where they do not divide evenly.
func Gangs(jobs []trace.Job, node int) []Job {
	out := make([]Job, len(jobs))
	for i, j := range jobs {
		nodes := (j.GPUs + node - 1) / node
		out[i] = Job{Tenant: j.Tenant, Submit: j.Submit, Runs: j.Runs, Nodes: nodes, GPUs: (j.GPUs + nodes - 1) / nodes}
	}
	return out
}

// World is cells, and the rule by which tenants have them.
type World struct {
	Cells  cluster.Cells
	one    string         // the VC that is everybody's; "" = each tenant has its own
	shares map[string]int // GPUs that a tenant may have as guaranteed ones; its weight in what is lent
	whole  int            // GPUs of a node
	lend   bool
	alone  bool // one tenant: nothing to note by the hour
}

// Site is a cluster and what its tenants have of it.
type Site struct {
	Types []cluster.CellType
	Tops  []cluster.TopCell
	VCs   []cluster.VC
}

// HiveD lets each tenant have the cells of its VC, which are bound dynamically.
func (s Site) HiveD() World {
	w := World{Cells: cluster.Cells(s), shares: s.Shares(), lend: true}
	for _, t := range s.Types {
		if t.Node {
			w.whole = s.GPUs(t.Name)
		}
	}
	return w
}

// Quota lets each tenant have as many GPUs as its VC has, anywhere, packed as well as cells
// of whole nodes are.
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

// Private is a tenant's own cluster: the cells of its VC, and nothing is lent. Results have no Hours.
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
			return 0 // cells.New says so
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
