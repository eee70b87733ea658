package baseline

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// AnyModel is the single pool if the scheduler ignores models.
const AnyModel = "any"

// merged makes a site with all GPUs in one pool.
func (r *Round) merged() *place.Site {
	nodes := slices.Clone(r.Snapshot.Nodes)
	for i := range nodes {
		n := 0
		for _, g := range nodes[i].GPUs {
			n += g.Count
		}
		nodes[i].GPUs = []cluster.GPUs{{Model: AnyModel, Count: n}}
	}
	return place.Survey([]string{AnyModel}, nodes, r.Snapshot.Reservations, r.Now)
}

var onePool = []int{0}

// merge puts a job on the merged site. A job that names a model may use only nodes of that model.
func (r *Round) merge(j *Job) {
	spec := r.Field.Spec(j.Case)
	if model := spec.Request.Model; model != "" {
		spec.Require, spec.Others = r.Having(model, spec.Require), false
	}
	j.Shape, j.Pools = r.Site.Shape(spec), onePool
}

// Having gives the nodes with GPUs of a model, of those listed; none listed = of all.
func (r *Round) Having(model string, of []string) (have []string) {
	for k := range r.Snapshot.Nodes {
		n := &r.Snapshot.Nodes[k]
		has := slices.ContainsFunc(n.GPUs, func(g cluster.GPUs) bool { return g.Model == model })
		if has && (len(of) == 0 || slices.Contains(of, n.Name)) {
			have = append(have, n.Name)
		}
	}
	return have
}

// onSite converts holdings to the merged site.
func (r *Round) onSite(holds []cluster.Holding) []cluster.Holding {
	if !r.Mixed {
		return holds
	}
	out := slices.Clone(holds)
	for i := range out {
		out[i].Model = AnyModel
	}
	return out
}

// offSite restores the nodes' models in holdings on the merged site.
func (r *Round) offSite(holds []cluster.Holding) []cluster.Holding {
	out := slices.Clone(holds)
	for i := range out {
		k, ok := slices.BinarySearchFunc(r.Snapshot.Nodes, out[i].Node, func(n cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
		if ok {
			out[i].Model = r.Snapshot.Nodes[k].GPUs[0].Model
		}
	}
	return out
}
