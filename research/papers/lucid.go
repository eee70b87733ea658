package papers

import "github.com/fairlease/fairlease/sidecar/sim/baseline"

import (
	"cmp"
	"slices"

	"github.com/fairlease/fairlease/sidecar/cluster"
	"github.com/fairlease/fairlease/sidecar/engine/place"
)

// profiling is the longest run of a new job in Lucid's profiler (T_prof), as its authors chose it for Venus.
const profiling = 200 * cluster.Second

// newLucid makes Lucid (Hu et al., ASPLOS'23) without its packing:
//
//   - A new job of at most a node's GPUs first runs on nodes that are set aside, for at most T_prof: the profiler (§3.2),
//     fewest GPUs first. Most debugging jobs end there. Any other job is requeued and waits for its turn.
//   - Waiting jobs start by their predicted run time times their GPUs, least first, and run to their end (§3.4).
//   - The prediction is that of an additive model of what has ended (§3.5), fitted anew as jobs end.
//
// Left out is the binder (§3.3), which lets two jobs with low GPU utilisation share GPUs, with the models of utilisation and
// load behind it: traces do not tell the utilisation. Lucid schedules each virtual cluster alone; here all share the
// cluster, as with qssf.
//
// Left open by the paper, and chosen for the baseline: the profiler has a node of forty, or none in a cluster of less than
// twenty. A job waits for the profiler and for its turn at once, so that it also starts where GPUs are idle. Its work in the
// profiler is kept if it saves at the notice. A job that does not fit is skipped.
func newLucid(baseline.Options) rule {
	var over ended
	model := &additive{}
	return func(r *round) {
		over.learn(r, model.add)
		model.fit()
		for k := range r.Jobs {
			if j := &r.Jobs[k]; j.Lease != nil && j.Runs && j.Lease.End > 0 && j.Lease.End.Sub(r.Now) <= r.Settings.Notice {
				r.Dismiss(j)
			}
		}
		r.Hold()
		if !r.Idle() {
			return
		}
		if aside := r.profiler(); len(aside) > 0 {
			r.profile(aside)
			for _, k := range r.needing(aside) {
				r.Start(&r.Jobs[k], 0, nil)
			}
			for _, name := range aside {
				r.Board.Close(name)
			}
		}
		r.startLeast(model.expect)
	}
}

// profiler gives the nodes that are set aside: the last healthy ones.
func (r *round) profiler() []string {
	var nodes []string
	for i := range r.Snapshot.Nodes {
		if n := &r.Snapshot.Nodes[i]; n.Bad == "" && len(n.GPUs) > 0 {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) < 20 {
		return nil
	}
	return nodes[len(nodes)-(len(nodes)+39)/40:]
}

// needing gives the waiting jobs that could never run beside the nodes that are set aside.
func (r *round) needing(aside []string) []int {
	rest := r.Empty()
	for _, name := range aside {
		rest.Close(name)
	}
	fits := map[int]bool{} // by shape
	r.Line = r.Line[:0]
	for k := range r.Jobs {
		j := &r.Jobs[k]
		if j.Lease != nil {
			continue
		}
		if _, known := fits[j.Shape]; !known {
			fits[j.Shape] = slices.ContainsFunc(j.Pools, func(p int) bool {
				_, ok := rest.Fit(place.Ask{Shape: j.Shape, Pool: p, Now: r.Now, Max: -1})
				return ok
			})
		}
		if !fits[j.Shape] {
			r.Line = append(r.Line, k)
		}
	}
	return r.Line
}

// profile starts new jobs on the nodes that are set aside.
func (r *round) profile(aside []string) {
	r.Line = r.Line[:0]
	for k := range r.Jobs {
		if j := &r.Jobs[k]; j.Lease == nil && j.Movable && r.Alloc(j) == 0 {
			r.Line = append(r.Line, k)
		}
	}
	slices.SortStableFunc(r.Line, func(a, b int) int { return cmp.Compare(r.Jobs[a].GPUs, r.Jobs[b].GPUs) })
	for _, k := range r.Line {
		j := &r.Jobs[k]
		spec := r.Field.Spec(j.Case)
		if len(spec.Require) > 0 {
			continue
		}
		if spec.Require, spec.Others = aside, false; r.Mixed && spec.Request.Model != "" {
			if spec.Require = r.Having(spec.Request.Model, aside); len(spec.Require) == 0 {
				continue
			}
		}
		ask := place.Ask{Shape: r.Site.Shape(spec), Now: r.Now, End: r.Now.Add(profiling), Max: -1}
		fits := false
		for _, ask.Pool = range j.Pools {
			if found, ok := r.Board.Fit(ask); ok {
				r.Take(j, found, ask.End)
				fits = true
				break
			}
		}
		if !fits {
			return
		}
	}
}
