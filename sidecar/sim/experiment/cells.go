package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/config"
	"github.com/fairlease/fairlease/sidecar/loop"
	"github.com/fairlease/fairlease/sidecar/sim/trace"
)

// everybody manages all jobs and nodes.
var everybody = loop.Rules{Mode: loop.Act, Partitions: []string{partition}, TenantLevel: 1}

// cells gives the virtual clusters of a setup; nil = it has none.
func (s *Setup) cells() (*cluster.Cells, error) {
	if s.Cells != nil {
		return s.Cells, s.fits(s.Cells)
	}
	if !slices.Contains(Cellular(), s.Scheduler) {
		return nil, nil
	}
	return CellsByWeight(s.Fleet, s.Weights)
}

// CellsByWeight gives the virtual clusters that `fairlease cells init` proposes: whole nodes of
// each model by weight, largest remainder first. A tenant without a node uses lent GPUs.
func CellsByWeight(f Fleet, weights map[string]int64) (*cluster.Cells, error) {
	s := Setup{Weights: weights}
	seen := &cluster.Observation{Nodes: f.Nodes(), Accounts: s.accounts()}
	slices.SortFunc(seen.Accounts, func(a, b cluster.Account) int { return cmp.Compare(a.Name, b.Name) })
	text, err := config.ProposeCells(seen, &everybody, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("no virtual clusters by weight: %w", err)
	}
	file, err := config.ParseCells("cells by weight", []byte(text))
	if err != nil {
		return nil, err
	}
	return file.Cells, nil
}

// fits says how a description contradicts the fleet and the tenants.
func (s *Setup) fits(d *cluster.Cells) error {
	nodes := s.Fleet.Nodes()
	for _, t := range d.Tops {
		is := rack(d, t.Type)
		for _, name := range t.Nodes {
			i := slices.IndexFunc(nodes, func(n cluster.Node) bool { return n.Name == name })
			if i < 0 {
				return fmt.Errorf("the cells have a node %s, which is none of the cluster %s: its nodes are %s to %s", name, s.Fleet, nodes[0].Name, nodes[len(nodes)-1].Name)
			}
			if has := nodes[i].GPUs[0]; has.Model != is.Model || has.Count != is.GPUs {
				return fmt.Errorf("node %s has %d GPUs of model %s in the cluster %s, but in the cells %d of model %s", name, has.Count, has.Model, s.Fleet, is.GPUs, is.Model)
			}
		}
	}
	for _, vc := range d.VCs {
		if _, ok := s.Weights[tenantOf(vc.Name)]; !ok {
			return fmt.Errorf("the cells have a VC %s, but no tenant of that name has a weight", vc.Name)
		}
	}
	return nil
}

// tenantOf gives the tenant of an account.
func tenantOf(name string) string {
	if name == account("root") {
		return "root"
	}
	return name
}

// privateVCs makes a private fleet of each tenant's cells, all in its VC. It omits jobs that are
// too large for their VC, or would be spread otherwise there.
func (s *Setup) privateVCs(d *cluster.Cells) []private {
	var out []private
	for _, t := range Survey(s.Load).Tenants {
		i := slices.IndexFunc(d.VCs, func(vc cluster.VC) bool { return vc.Name == account(t.Tenant) })
		if i < 0 {
			continue
		}
		p := private{setup: *s, tenant: t.Tenant}
		p.setup.Weights, p.setup.Audit, p.setup.Cells = map[string]int64{t.Tenant: 1}, false, nil
		p.setup.Fleet.Racks = s.racks(d, &d.VCs[i])
		_, p.gpus = p.setup.Fleet.Count()
		p.share, p.setup.Load = float64(p.gpus), s.alike(s.Load.of(t.Tenant), p.setup.Fleet)
		out = append(out, p)
	}
	return out
}

// racks gives a VC's cells as nodes.
func (s *Setup) racks(d *cluster.Cells, vc *cluster.VC) []Rack {
	var out []Rack
	add := func(typ string, n int) {
		r := rack(d, typ)
		if r.Nodes *= n; !s.Fleet.named() {
			r.Model = ""
		}
		if i := slices.IndexFunc(out, func(o Rack) bool { return o.GPUs == r.GPUs && o.Model == r.Model }); i >= 0 {
			out[i].Nodes += r.Nodes
			return
		}
		out = append(out, r)
	}
	for _, q := range vc.Cells {
		add(q.Type, q.Cells)
	}
	for _, pin := range vc.Pins {
		add(pin.Type, 1)
	}
	return out
}

// rack gives a cell as nodes; a cell smaller than a node is a small node.
func rack(d *cluster.Cells, typ string) Rack {
	r := Rack{Nodes: 1, GPUs: 1}
	for typ != "" {
		t := d.Types[slices.IndexFunc(d.Types, func(t cluster.CellType) bool { return t.Name == typ })]
		if t.Node { // the parts so far are nodes
			r.Nodes, r.GPUs = r.GPUs, 1
		}
		r.GPUs *= max(t.Split, 1)
		r.Model, typ = t.Model, t.Child
	}
	return r
}

// alike gives the jobs of a load whose requests are equal on a fleet and on the setup's.
func (s *Setup) alike(load Load, fleet Fleet) Load {
	jobs := load.Jobs
	load.Jobs = func(yield func(trace.Job) bool) {
		for j := range jobs {
			here, _ := s.Fleet.gang(&j, false)
			there, why := fleet.gang(&j, false)
			if why == "" && here.Nodes == there.Nodes && here.PerNode == there.PerNode && !yield(j) {
				return
			}
		}
	}
	return load
}
