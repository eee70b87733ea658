package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// anyModel is the single pool if the scheduler ignores models.
const anyModel = "any"

// merged makes a site with all GPUs in one pool.
func (r *round) merged() *place.Site {
	nodes := slices.Clone(r.s.Nodes)
	for i := range nodes {
		n := 0
		for _, g := range nodes[i].GPUs {
			n += g.Count
		}
		nodes[i].GPUs = []cluster.GPUs{{Model: anyModel, Count: n}}
	}
	return place.Survey([]string{anyModel}, nodes, r.s.Reservations, r.now)
}

var onePool = []int{0}

// merge puts a job on the merged site. A job that names a model may use only nodes of that model.
func (r *round) merge(j *job) {
	spec := r.f.Spec(j.at)
	if model := spec.Request.Model; model != "" {
		spec.Require = r.having(model, spec.Require)
	}
	j.shape, j.pools = r.site.Shape(spec), onePool
}

// having gives the nodes with GPUs of a model, of those listed; none listed = of all.
func (r *round) having(model string, of []string) (have []string) {
	for k := range r.s.Nodes {
		n := &r.s.Nodes[k]
		has := slices.ContainsFunc(n.GPUs, func(g cluster.GPUs) bool { return g.Model == model })
		if has && (len(of) == 0 || slices.Contains(of, n.Name)) {
			have = append(have, n.Name)
		}
	}
	return have
}

// onSite converts holdings to the merged site.
func (r *round) onSite(holds []cluster.Holding) []cluster.Holding {
	if !r.mixed {
		return holds
	}
	out := slices.Clone(holds)
	for i := range out {
		out[i].Model = anyModel
	}
	return out
}

// offSite restores the nodes' models in holdings on the merged site.
func (r *round) offSite(holds []cluster.Holding) []cluster.Holding {
	out := slices.Clone(holds)
	for i := range out {
		k, ok := slices.BinarySearchFunc(r.s.Nodes, out[i].Node, func(n cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
		if ok {
			out[i].Model = r.s.Nodes[k].GPUs[0].Model
		}
	}
	return out
}
